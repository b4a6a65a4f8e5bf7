package tui

import "github.com/ackscope/ackscope/scale"

// braille is a canvas of dots: two by four in a cell.
type braille struct {
	w, h  int // in cells
	cells []rune
	roles []role
}

func newBraille(w, h int) *braille {
	return &braille{w: max(w, 0), h: max(h, 0), cells: make([]rune, max(w, 0)*max(h, 0)), roles: make([]role, max(w, 0)*max(h, 0))}
}

// brailleBits gives the dot of a place in a cell.
var brailleBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// dot sets a dot; places outside are left out.
func (b *braille) dot(x, y int, r role) {
	if x < 0 || y < 0 || x >= 2*b.w || y >= 4*b.h {
		return
	}
	i := y/4*b.w + x/2
	b.cells[i] |= brailleBits[y%4][x%2]
	if r != roleText || b.roles[i] == roleText {
		b.roles[i] = r
	}
}

// line sets the dots between two places; every skips dots: 1 for none, 2 for
// every other one. A line is cut to the canvas before it is drawn: its ends may
// lie years away.
func (b *braille) line(x0, y0, x1, y1 int64, r role, every int64) {
	scale.Line(x0, y0, x1, y1, 2*b.w, 4*b.h, func(x, y int, step int64) {
		if step%every == 0 {
			b.dot(x, y, r)
		}
	})
}

// paint draws the dots.
func (b *braille) paint(c canvas) {
	for i, r := range b.cells {
		if r != 0 {
			c.text(i%b.w, i/b.w, b.roles[i], string(0x2800+r))
		}
	}
}
