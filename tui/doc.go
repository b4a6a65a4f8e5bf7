// Package tui is the terminal UI: flows, packets down to the bit, what both
// sides of a flow knew at any packet, ladders, graphs, messages and findings.
//
//	s := store.New(in, analyze.Options{Registry: registry}, false)
//	next, err := tui.Run(s, tui.Options{Table: table}) // until the user leaves
//
// Its rooms, each of which knows only those before it:
//
//	draw      text and lists on the cells of a terminal
//	store     the capture: an index that grows while the file is read, and jobs
//	browser   where the user is: view, flow, packet, filter, the way back
//	screens   what is shown of that, a screen each
//	tui       keys, prompt, command line, mouse, files, and the terminal
//
// Model is all of it but the terminal, so that everything but app.go is tested without
// one. Ring 5 of the house.
package tui
