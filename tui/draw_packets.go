package tui

import (
	"fmt"
)

// drawPackets draws list, tree and bytes, and where there is room what both
// sides knew.
func (m *Model) drawPackets(c canvas) {
	if m.alone() {
		m.drawPane(m.packet.pane, c)
		return
	}
	left := c
	if m.wide() {
		width := min(max(c.w*56/100, 70), c.w-66)
		left = c.part(0, 0, width, c.h)
		c.column(width, 0, c.h)
		m.drawPane(paneState, c.part(width+1, 0, c.w-width-1, c.h))
	}
	height := min(max(left.h*50/100+m.config.List, 3), left.h-4)
	m.drawPane(paneList, left.part(0, 0, left.w, height))
	tree := m.treeWidth(left.w)
	below := left.part(0, height, left.w, left.h-height)
	m.drawPane(paneTree, below.part(0, 0, tree, below.h))
	below.column(tree, 0, below.h)
	m.drawPane(paneHex, below.part(tree+1, 0, left.w-tree-1, below.h))
}

// alone reports whether one pane has all the room: since it was asked for, or
// since there is no more.
func (m *Model) alone() bool { return m.config.Maximised || m.h < leastParts+4 }

func (m *Model) drawPane(p pane, c canvas) {
	focused := m.packet.pane == p
	inside := c.part(0, 1, c.w, c.h-1)
	switch p {
	case paneList:
		title := "packets"
		if m.packet.follow {
			title += ", following"
		}
		m.packet.settle(m, inside.h)
		c.rule(0, title, focused)
		m.drawList(inside, focused)
	case paneTree:
		m.detail.fill(m, c.w)
		c.rule(0, "frame "+m.selectedRef(), focused)
		m.drawTree(inside, focused)
	case paneHex:
		if m.alone() {
			m.detail.fill(m, c.w)
		}
		_, title, bit, bits := m.detail.lit()
		if bits > 0 {
			title += " · " + bitsText(bit, bits)
		}
		c.rule(0, title, focused)
		m.drawHex(inside)
	case paneState:
		m.text.lines = m.sides.lines(m, c.w-2, max((c.h-16)/4, 1))
		c.rule(0, m.statesTitle(), focused)
		m.drawText(c.part(1, 1, c.w-1, c.h-1))
	case paneCount:
	}
}

// bitsText says which bytes, or bits, are lit.
func bitsText(bit, bits int) string {
	if bit%8 == 0 && bits%8 == 0 {
		if bits == 8 {
			return fmt.Sprintf("byte %d", bit/8)
		}
		return fmt.Sprintf("bytes %d–%d", bit/8, (bit+bits)/8-1)
	}
	if bits == 1 {
		return fmt.Sprintf("bit %d", bit)
	}
	return fmt.Sprintf("bits %d–%d", bit, bit+bits-1)
}

func (m *Model) drawList(c canvas, focused bool) {
	p := &m.packet
	n := p.rows(m)
	columns := m.columnsShown(c.w)
	for y := range c.h {
		entry, ok := p.entry(m, p.list.top+y)
		if !ok {
			break
		}
		over := roleText
		if p.list.top+y == p.list.cursor {
			over = roleBold
			if focused || m.view != viewPackets {
				over = roleSelected
			}
		}
		m.drawRow(c.part(0, y, c.w, 1), entry, columns, over)
	}
	if n == 0 {
		text := "no packet yet"
		switch {
		case p.sieve != nil && p.sieve.done:
			text = "no packet passes the filter"
		case p.sieve != nil:
			text = "looking for packets that pass …"
		case m.store.pass == 3:
			text = "the capture has no packets"
		}
		c.text(2, 0, roleDim, text)
	}
}

// drawRow draws a packet's row; over, where it is not roleText, is used for all of it.
func (m *Model) drawRow(c canvas, n int, columns []string, over role) {
	if over != roleText {
		c.fill(0, over)
	}
	cells := m.row(n, columns)
	fixed := 0
	for _, x := range cells {
		if x.width > 0 {
			fixed += x.width + 1
		}
	}
	at := 0
	for _, x := range cells {
		width := x.width
		if width == 0 {
			width = max(c.w-fixed-1, 0)
		}
		r := x.role
		if over != roleText {
			r = over
		}
		room := c.part(at, 0, width, 1)
		if x.right {
			room.right(width, 0, r, x.text)
		} else {
			room.text(0, 0, r, x.text)
		}
		at += width + 1
	}
	if over != roleText {
		c.text(0, 0, over, "▶")
	}
}

func (m *Model) drawTree(c canvas, focused bool) {
	d := &m.detail
	if d.err != nil {
		c.text(1, 0, roleError, d.err.Error())
		return
	}
	d.list.cursor = d.row()
	d.list.fit(len(d.shown), c.h)
	for y := range c.h {
		if d.list.top+y >= len(d.shown) {
			break
		}
		i := d.shown[d.list.top+y]
		over := roleText
		if i == d.cursor {
			over = roleBold
			if focused {
				over = roleSelected
			}
			c.fill(y, over)
		}
		c.part(1, 0, c.w-1, c.h).sgr(0, y, over, d.lineText(i))
		if d.folds(i) && d.folded[d.foldName(i)] {
			r := roleMark
			if over != roleText {
				r = over
			}
			c.text(0, y, r, "+")
		}
	}
}

// drawHex draws the bytes, with those of the selected field lit: whole bytes for
// a field of bits, since bytes are what stands here.
func (m *Model) drawHex(c canvas) {
	d := &m.detail
	data, _, bit, bits := d.lit()
	per := 8
	if c.w >= 73 {
		per = 16
	}
	from, to := bit/8, (bit+bits+7)/8
	if bits == 0 {
		from, to = -1, -1
	}
	d.hexRows = (len(data) + per - 1) / per
	d.hex.height = max(c.h, 1)
	if bits > 0 && (from/per < d.hex.top || from/per >= d.hex.top+c.h) && m.packet.pane != paneHex {
		d.hex.top = max(from/per-1, 0)
	}
	d.hex.top = min(max(d.hex.top, 0), max(d.hexRows-c.h, 0))
	for y := range c.h {
		at := (d.hex.top + y) * per
		if at >= len(data) {
			break
		}
		x := c.text(0, y, roleDim, fmt.Sprintf("%04x ", at))
		for i := range per {
			if at+i >= len(data) {
				break
			}
			b := data[at+i]
			r := roleText
			if at+i >= from && at+i < to {
				r = roleLit
			}
			hx := x + 3*i
			if i >= 8 {
				hx++
			}
			c.text(hx, y, r, fmt.Sprintf("%02x", b))
			if r == roleLit && at+i+1 < to && i+1 < per && i != 7 {
				c.text(hx+2, y, r, " ")
			}
			if b < 0x20 || b > 0x7e {
				b = '.'
			}
			c.text(x+3*per+per/16+1+i, y, r, string(rune(b)))
		}
	}
}

// treeWidth is the columns of the decode tree, beside the bytes.
func (m *Model) treeWidth(width int) int {
	bytes := 39 // eight in a row
	if width >= 124 {
		bytes = 76 // sixteen
	}
	return min(max(width-bytes+m.config.Tree, 24), width-16)
}
