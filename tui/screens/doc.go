// Package screens draws the screens of the terminal UI: flows, packets, the
// state of both sides, ladder, graphs, messages, findings, autopsy and replay.
//
//	set := screens.NewSet(br, nil)
//	screen := set.Screen(br.View)   // the screen that the user sees
//	screen.Move(br, 10)             // ten rows down
//	screen.Draw(br, canvas)
//
// A browser.Browser holds the user's position. Each screen shows it in one way,
// and keeps only what that way needs, such as the order of a table. Package tui
// handles keys, the mouse and the command line. The caller of any method holds
// the store's lock.
package screens
