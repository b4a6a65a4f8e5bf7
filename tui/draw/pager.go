package draw

import "fmt"

// Pager is lines that are read, with where one reads.
type Pager struct {
	Lines []string
	List  List
}

// Scroll shows other lines.
func (p *Pager) Scroll(by int) { p.List.Scroll(by, len(p.Lines)) }

// Draw draws the lines that fit, and how many more there are.
func (p *Pager) Draw(c Canvas) {
	l := &p.List
	l.Height = max(c.H, 1)
	l.Top = min(max(l.Top, 0), max(len(p.Lines)-l.Height, 0))
	for y := range c.H {
		if i := l.Top + y; i < len(p.Lines) {
			c.SGR(0, y, Text, p.Lines[i])
		}
	}
	if more := len(p.Lines) - l.Top - c.H; more > 0 && c.H > 1 {
		c.Right(c.W-1, c.H-1, Dim, fmt.Sprintf(" %d more ▾", more))
	}
}
