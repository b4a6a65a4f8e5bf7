// Package tui is the terminal UI. It shows flows, packets down to the bit, what
// both sides of a flow knew at any packet, ladders, graphs, messages and
// findings.
//
//	s := store.New(in, analyze.Options{Registry: registry}, false)
//	next, err := tui.Run(s, tui.Options{Table: table}) // until the user leaves
//
// Its packages, each of which imports only those above it:
//
//	draw      text and lists on the cells of a terminal
//	store     the capture: an index that grows while the file is read, and jobs
//	browser   the user's position: view, flow, packet, filter, the way back
//	screens   one screen for each view
//	tui       keys, prompt, command line, mouse, files, and the terminal
//
// Model is all of the UI except the terminal, which only app.go uses. So tests
// need no terminal.
package tui
