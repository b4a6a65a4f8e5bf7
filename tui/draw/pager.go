package draw

import "fmt"

// Pager is a text of lines and the reader's position in it.
type Pager struct {
	Lines []string
	List  List
}

// Scroll moves the window by lines.
func (p *Pager) Scroll(by int) { p.List.Scroll(by, len(p.Lines)) }

// Draw draws the lines that fit, and the number of lines below them.
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
