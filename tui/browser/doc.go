// Package browser is where a user is in a capture: which view, flow and packet, by which
// filter, and the way back. It knows no screen.
//
//	br := browser.New(store, table, &browser.Layout{})
//	br.Open(1)                   // the packets of flow 1
//	br.Step(5)                   // five packets of the flow on
//	br.JumpSettled()             // to the packet that acked this one; br.JumpBack() returns
//	br.Say("marked frame %s", br.SelectedFrame())
//
// Screens read it and move it by its methods. Everything wants the store's lock held.
package browser
