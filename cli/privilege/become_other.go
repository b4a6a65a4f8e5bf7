//go:build libpcap && cgo && !unix

package privilege

// become does nothing: processes of this system have no user ids.
func become(identity) error { return nil }
