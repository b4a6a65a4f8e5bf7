// Package terminal holds the command tui. For example, `ackscope tui
// match.pcapng` opens the capture in package tui. Several captures are open one
// at a time.
package terminal
