// Package screens is the screens of the terminal UI: flows, packets, the state of both
// sides, ladder, graphs, messages, findings, autopsy and replay.
//
//	set := screens.NewSet(br, nil)
//	screen := set.Screen(br.View)   // of where the user is
//	screen.Move(br, 10)             // ten rows down
//	screen.Draw(br, canvas)
//
// A browser.Browser says where the user is; every screen shows that in one way, and keeps
// only what belongs to that way, such as the order of a table. Keys, the mouse and the
// command line are package tui's affair.
// Everything wants the store's lock held.
package screens
