//go:build libpcap && cgo && !unix

package privilege

// become has nothing to do where processes have no user ids.
func become(identity) error { return nil }
