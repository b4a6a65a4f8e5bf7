//go:build !unix

package cli

// ignoreSizeSignal does nothing: the system has no such signal.
func ignoreSizeSignal() {}
