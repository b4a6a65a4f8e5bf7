//go:build !unix

package tui

// stopProcess does nothing: this system cannot stop a process.
func stopProcess() {}
