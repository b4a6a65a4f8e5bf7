// Package draw puts text, lists and dots on the cells of a terminal. It knows cells
// and no packets.
//
//	c := draw.NewCanvas(screen, theme)
//	c.Rule(0, "packets", true)
//	row := c.Part(0, 1, c.W, 1)
//	row.Text(1, 0, draw.SideA, "10.0.0.1:40000")
//	row.Right(c.W, 0, draw.Dim, "of 2,387")
//
// What a piece of text means is its Role; a Theme says what that looks like. What does
// not fit its canvas is cut, and what a terminal would obey is escaped.
package draw
