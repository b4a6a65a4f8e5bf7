package draw

import "github.com/ackscope/ackscope/scale"

// Braille is a canvas of dots. Each cell holds two columns of four dots.
type Braille struct {
	W, h  int // in cells
	cells []rune
	roles []Role
}

// NewBraille returns an empty canvas of w by h cells.
func NewBraille(w, h int) *Braille {
	return &Braille{
		W: max(w, 0), h: max(h, 0), cells: make([]rune, max(w, 0)*max(h, 0)),
		roles: make([]Role, max(w, 0)*max(h, 0)),
	}
}

// brailleBits maps a dot's row and column in its cell to its bit.
var brailleBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// dot sets a dot. It ignores places outside the canvas.
func (b *Braille) dot(x, y int, r Role) {
	if x < 0 || y < 0 || x >= 2*b.W || y >= 4*b.h {
		return
	}
	i := y/4*b.W + x/2
	b.cells[i] |= brailleBits[y%4][x%2]
	if r != Text || b.roles[i] == Text {
		b.roles[i] = r
	}
}

// Line sets the dots between two places. every is the distance between dots: 1
// sets all, 2 every other one. Line first clips to the canvas, since the ends
// may be years apart.
func (b *Braille) Line(x0, y0, x1, y1 int64, r Role, every int64) {
	scale.Line(x0, y0, x1, y1, 2*b.W, 4*b.h, func(x, y int, step int64) {
		if step%every == 0 {
			b.dot(x, y, r)
		}
	})
}

// Paint draws the dots.
func (b *Braille) Paint(c Canvas) {
	for i, r := range b.cells {
		if r != 0 {
			c.Text(i%b.W, i/b.W, b.roles[i], string(0x2800+r))
		}
	}
}
