//go:build !unix

package main

// ignoreSizeSignal does nothing: the system has no such signal.
func ignoreSizeSignal() {}
