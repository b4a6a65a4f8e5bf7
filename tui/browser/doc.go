// Package browser holds a user's position in a capture: view, flow, packet,
// filter, and the way back.
//
//	br := browser.New(store, table, &browser.Layout{})
//	br.Open(1)                   // the packets of flow 1
//	br.Step(5)                   // five packets of the flow on
//	br.JumpSettled()             // to the packet that acked this one; br.JumpBack() returns
//	br.Say("marked frame %s", br.SelectedFrame())
//
// Screens read it and change it through its methods. The caller of any method
// holds the store's lock. The package does not draw.
package browser
