package tui

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
// every other one.
func (b *braille) line(x0, y0, x1, y1 int, r role, every int) {
	n := max(abs(x1-x0), abs(y1-y0), 1)
	for i := 0; i <= n; i++ {
		if i%every == 0 {
			b.dot(x0+(x1-x0)*i/n, y0+(y1-y0)*i/n, r)
		}
	}
}

func abs(n int) int { return max(n, -n) }

// paint draws the dots.
func (b *braille) paint(c canvas) {
	for i, r := range b.cells {
		if r != 0 {
			c.text(i%b.w, i/b.w, b.roles[i], string(0x2800+r))
		}
	}
}
