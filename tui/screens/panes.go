package screens

import (
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// area is the rectangle of a pane in the view. Its first row is the pane's title. A pane without
// rows is not shown.
type area struct{ x, y, w, h int }

// Sizes from which the state has a pane. Beside the packets, both sides need 65 columns. Below
// them, their windows need 13 rows, and the list, the tree and the bytes still have 22.
const (
	stateBeside = 136 // columns of the screen
	stateBelow  = 100 // columns of the screen, where it has stateRows
	stateRows   = 38
)

// isBeside reports whether there is room for the state beside the packets.
func isBeside(br *browser.Browser) bool { return br.W >= stateBeside }

// isBelow reports whether the state is below the tree and the bytes.
func isBelow(br *browser.Browser) bool {
	return !isBeside(br) && br.W >= stateBelow && br.H >= stateRows
}

// hasState reports whether the state has a pane.
func hasState(br *browser.Browser) bool { return isBeside(br) || isBelow(br) }

// areas returns where the panes are in a view of so many columns and rows.
func (p *PacketView) areas(br *browser.Browser, w, h int) (at [paneCount]area) {
	if p.alone(br) {
		at[p.pane] = area{0, 0, w, h}
		return at
	}
	if isBeside(br) {
		left := min(max(w*56/100, 70), w-66)
		at[paneState] = area{left + 1, 0, w - left - 1, h}
		w = left
	}
	if isBelow(br) {
		rows := max(h*38/100, 14)
		at[paneState] = area{0, h - rows, w, rows}
		h -= rows
	}
	list := min(max(h*50/100+br.Layout.List, 3), h-4)
	tree := p.treeWidth(br, w)
	at[paneList] = area{0, 0, w, list}
	at[paneTree] = area{0, list, tree, h - list}
	at[paneHex] = area{tree + 1, list, w - tree - 1, h - list}
	return at
}

// Draw draws list, tree and bytes. On a large screen it draws the state of both sides too.
func (p *PacketView) Draw(br *browser.Browser, c draw.Canvas) {
	for which, a := range p.areas(br, c.W, c.H) {
		if a.h == 0 {
			continue
		}
		if a.x > 0 {
			c.Column(a.x-1, a.y, a.h)
		}
		p.drawPane(br, pane(which), c.Part(a.x, a.y, a.w, a.h))
	}
}

// paneAt returns the pane at a position of the screen, and the row below the
// pane's title.
func (p *PacketView) paneAt(br *browser.Browser, x, y int) (pane, int) {
	y -= 2 // the lines above the view
	for which, a := range p.areas(br, br.W, br.H-3) {
		if a.h > 0 && x >= a.x && x < a.x+a.w && y >= a.y && y < a.y+a.h {
			return pane(which), y - a.y - 1
		}
	}
	return p.pane, -1 // a line between two panes
}
