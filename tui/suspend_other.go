//go:build !unix

package tui

// stopProcess does nothing: programs cannot be stopped here.
func stopProcess() {}
