// Package terminal holds the command tui: it opens captures for the screens of package
// tui, one at a time.
package terminal
