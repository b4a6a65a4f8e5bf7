//go:build !unix

package cli

// ignoreSizeSignal does nothing: this system has no such signal.
func ignoreSizeSignal() {}
