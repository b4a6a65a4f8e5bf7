// Package draw puts text, lists and dots on the cells of a terminal.
//
//	c := draw.NewCanvas(screen, theme)
//	c.Rule(0, "packets", true)
//	row := c.Part(0, 1, c.W, 1)
//	row.Text(1, 0, draw.SideA, "10.0.0.1:40000")
//	row.Right(c.W, 0, draw.Dim, "of 2,387")
//
// A Role says what a piece of text means. A Theme gives each role a style. A
// canvas clips what does not fit, and escapes control characters. The package
// does not know packets.
package draw
