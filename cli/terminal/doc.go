// Package terminal holds the command tui, which opens captures for package tui,
// one at a time.
package terminal
