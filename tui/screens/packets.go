package screens

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// pane is a part of the packets view that can receive keys.
type pane uint8

const (
	paneList pane = iota
	paneTree
	paneHex
	paneState
	paneCount
)

// PacketView lists the packets of the flow that pass the filter. The selected
// packet's tree and bytes are below the list. The state of both sides is beside
// them, or below.
type PacketView struct {
	list      draw.List
	refilters int // Browser.Refilters when the list was drawn
	pane      pane
	detail    detail // tree and bytes of the selected packet
	state     *StateView
	reader    *store.Reader
	columns   []*filter.Column // fields that the user chose, by position; nil for built-in columns
	chosen    string           // the names that columns was made for
}

// settle synchronises cursor and selection before drawing. With no height it
// does not scroll the list.
func (p *PacketView) settle(br *browser.Browser, height int) {
	if p.refilters != br.Refilters {
		p.refilters, p.list.Top = br.Refilters, 0
	}
	br.Settle()
	p.list.Cursor = br.SelectedRow()
	if height > 0 {
		p.list.Fit(br.Rows(), height)
	}
	br.SkipHidden(p.list.Cursor)
}

// Move moves the cursor of the active pane.
func (p *PacketView) Move(br *browser.Browser, by int) {
	switch p.pane {
	case paneTree:
		p.detail.moveBy(by)
	case paneHex:
		p.detail.hex.Scroll(by, p.detail.hexRows)
	case paneState:
		br.Text.Scroll(by)
	case paneList, paneCount:
		br.MoveBy(by)
	}
}

// End goes to the first or last row of the active pane.
func (p *PacketView) End(br *browser.Browser, way int) { p.Move(br, way*far) }

// Page returns the number of rows of the active pane.
func (p *PacketView) Page(br *browser.Browser) int {
	switch p.pane {
	case paneList:
		return p.list.Height
	case paneHex:
		return p.detail.hex.Height
	case paneTree:
		return p.detail.list.Height
	case paneState, paneCount:
	}
	return br.Text.List.Height
}

// Enter folds the line at the cursor of the tree, or shows the packet's state.
func (p *PacketView) Enter(br *browser.Browser) {
	if p.pane == paneTree {
		p.Fold()
		return
	}
	br.Show(browser.State)
}

// Back activates the list. It returns false if the list is active already.
func (p *PacketView) Back() bool {
	had := p.pane
	p.pane = paneList
	return had != paneList
}

// NextPane activates the next pane, or the previous one.
func (p *PacketView) NextPane(br *browser.Browser, by int) {
	n := int(p.pane)
	for range paneCount {
		n = (n + by + int(paneCount)) % int(paneCount)
		if pane(n) != paneState || hasState(br) {
			break
		}
	}
	p.pane = pane(n)
}

// Click activates the pane at a position of the screen, and selects the row
// there.
func (p *PacketView) Click(br *browser.Browser, x, y int) {
	var row int
	p.pane, row = p.paneAt(br, x, y)
	switch {
	case row < 0:
	case p.pane == paneList:
		br.SelectRow(p.list.Top + row)
	case p.pane == paneTree:
		p.detail.cursor = p.detail.shownAt(p.detail.list.Top + row)
	}
}

// Wheel scrolls the pane at a position of the screen.
func (p *PacketView) Wheel(br *browser.Browser, x, y, by int) {
	had := p.pane
	p.pane, _ = p.paneAt(br, x, y)
	p.Move(br, by)
	p.pane = had
}

// Matches searches the rows of the active pane.
func (p *PacketView) Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	if p.pane == paneTree {
		d := &p.detail
		return len(d.shown), d.row(), func(row int) bool { return s.finds(draw.StripStyles(d.lineText(d.shown[row]))) }
	}
	return p.matches(br, s)
}

// matches searches the packets.
func (p *PacketView) matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return br.Rows(), br.SelectedRow(), func(row int) bool {
		n, ok := br.EntryOf(row)
		return ok && s.findsPacket(br, n)
	}
}

// GoTo moves the cursor of the active pane to a row.
func (p *PacketView) GoTo(br *browser.Browser, row int) {
	if p.pane == paneTree {
		p.detail.cursor = p.detail.shownAt(row)
		return
	}
	br.SelectRow(row)
}

// Copy returns the row, the line of the tree, or the highlighted bytes.
func (p *PacketView) Copy(br *browser.Browser) string {
	d := &p.detail
	switch {
	case p.pane == paneTree && d.cursor < len(d.tree.Lines):
		return strings.TrimSpace(draw.StripStyles(d.lineText(d.cursor)))
	case p.pane == paneHex:
		data, _, bit, bits := d.lit()
		if bits > 0 {
			data = data[min(bit/8, len(data)):min((bit+bits+7)/8, len(data))]
		}
		return fmt.Sprintf("%x", data)
	}
	return p.rowText(br, br.Selected)
}
