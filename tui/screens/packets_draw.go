package screens

import (
	"fmt"

	"github.com/ackscope/ackscope/show/table"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// alone reports whether one pane has the whole screen, by choice or for lack of
// room.
func (p *PacketView) alone(br *browser.Browser) bool {
	return br.Layout.Maximised || br.H < leastParts+4
}

func (p *PacketView) drawPane(br *browser.Browser, which pane, c draw.Canvas) {
	focused := p.pane == which
	inside := c.Part(0, 1, c.W, c.H-1)
	switch which {
	case paneList:
		title := "packets"
		if br.Follow {
			title += ", following"
		}
		p.settle(br, inside.H)
		c.Rule(0, title, focused)
		p.drawList(br, inside, focused)
	case paneTree:
		p.detail.fill(br, c.W)
		c.Rule(0, "frame "+br.SelectedFrame(), focused)
		p.drawTree(inside, focused)
	case paneHex:
		if p.alone(br) {
			p.detail.fill(br, c.W)
		}
		_, title, bit, bits := p.detail.lit()
		if bits > 0 {
			title += " · " + bitsText(bit, bits)
		}
		c.Rule(0, title, focused)
		p.drawHex(inside)
	case paneState:
		br.Text.Lines = p.state.text(br, c.W-2, max((c.H-16)/4, 1))
		c.Rule(0, p.state.title(br), focused)
		br.Text.Draw(c.Part(1, 1, c.W-1, c.H-1))
	case paneCount:
	}
}

// bitsText names the highlighted bytes or bits.
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

func (p *PacketView) drawList(br *browser.Browser, c draw.Canvas, focused bool) {
	n := br.Rows()
	columns := columnsShown(br, c.W)
	for y := range c.H {
		entry, ok := br.EntryOf(p.list.Top + y)
		if !ok {
			break
		}
		over := draw.Text
		if p.list.Top+y == p.list.Cursor {
			over = draw.Bold
			if focused {
				over = draw.Selected
			}
		}
		p.drawRow(br, c.Part(0, y, c.W, 1), entry, columns, over)
	}
	if n == 0 {
		text := "no packet yet"
		switch {
		case br.FilterJob != nil && br.FilterJob.Done():
			text = "no packet matches the filter"
		case br.FilterJob != nil:
			text = "looking for packets that match …"
		case br.Store.Settled():
			text = "the capture has no packets"
		}
		c.Text(2, 0, draw.Dim, text)
	}
}

// drawRow draws a packet's row. A role over other than draw.Text replaces all
// others.
func (p *PacketView) drawRow(br *browser.Browser, c draw.Canvas, n int, columns []string, over draw.Role) {
	if over != draw.Text {
		c.Fill(0, over)
	}
	cells := p.row(br, n, columns)
	fitted := make([]table.Column, len(cells))
	for i, x := range cells {
		fitted[i] = table.Column{Right: x.right, Min: x.width, Max: x.width, Fill: x.width == 0}
	}
	t := table.New(fitted, 1)
	t.Fit(c.W - 1)
	for _, place := range t.Places() {
		x := &cells[place.Column]
		r := x.role
		if over != draw.Text {
			r = over
		}
		c.Part(place.At, 0, place.Width, 1).Text(place.Start(draw.TextWidth(x.text))-place.At, 0, r, x.text)
	}
	if over != draw.Text {
		c.Text(0, 0, over, "▶")
	}
}

func (p *PacketView) drawTree(c draw.Canvas, focused bool) {
	d := &p.detail
	if d.err != nil {
		c.Text(1, 0, draw.Error, d.err.Error())
		return
	}
	d.list.Cursor = d.row()
	d.list.Fit(len(d.shown), c.H)
	for y := range c.H {
		if d.list.Top+y >= len(d.shown) {
			break
		}
		i := d.shown[d.list.Top+y]
		over := draw.Text
		if i == d.cursor {
			over = draw.Bold
			if focused {
				over = draw.Selected
			}
			c.Fill(y, over)
		}
		c.Part(1, 0, c.W-1, c.H).SGR(0, y, over, d.lineText(i))
		if d.folds(i) && d.isFolded(i) {
			r := draw.Mark
			if over != draw.Text {
				r = over
			}
			c.Text(0, y, r, "+")
		}
	}
}

// drawHex draws the bytes, and highlights those of the selected field. A field
// of bits highlights its whole bytes.
func (p *PacketView) drawHex(c draw.Canvas) {
	d := &p.detail
	data, _, bit, bits := d.lit()
	per := 8
	if c.W >= 73 {
		per = 16
	}
	from, to := bit/8, (bit+bits+7)/8
	if bits == 0 {
		from, to = -1, -1
	}
	d.hexRows = (len(data) + per - 1) / per
	d.hex.Height = max(c.H, 1)
	if bits > 0 && (from/per < d.hex.Top || from/per >= d.hex.Top+c.H) && p.pane != paneHex {
		d.hex.Top = max(from/per-1, 0)
	}
	d.hex.Top = min(max(d.hex.Top, 0), max(d.hexRows-c.H, 0))
	for y := range c.H {
		at := (d.hex.Top + y) * per
		if at >= len(data) {
			break
		}
		x := c.Text(0, y, draw.Dim, fmt.Sprintf("%04x ", at))
		for i := range per {
			if at+i >= len(data) {
				break
			}
			b := data[at+i]
			r := draw.Text
			if at+i >= from && at+i < to {
				r = draw.Lit
			}
			hx := x + 3*i
			if i >= 8 {
				hx++
			}
			c.Text(hx, y, r, fmt.Sprintf("%02x", b))
			if r == draw.Lit && at+i+1 < to && i+1 < per && i != 7 {
				c.Text(hx+2, y, r, " ")
			}
			if b < 0x20 || b > 0x7e {
				b = '.'
			}
			c.Text(x+3*per+per/16+1+i, y, r, string(rune(b)))
		}
	}
}

// treeWidth returns the columns of the decode tree, which is beside the bytes.
func (p *PacketView) treeWidth(br *browser.Browser, width int) int {
	bytes := 39 // eight bytes a row
	if width >= 124 {
		bytes = 76 // sixteen bytes a row
	}
	return min(max(width-bytes+br.Layout.Tree, 24), width-16)
}
