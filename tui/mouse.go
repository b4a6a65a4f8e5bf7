package tui

import (
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/screens"
)

// rowAt returns the distance of a screen position from the cursor of the view's
// table, in rows. It returns false for a position outside the rows.
func (m *Model) rowAt(x, y int) (by int, ok bool) {
	t, ok := m.screen().(screens.Table)
	if !ok {
		return 0, false
	}
	rows, line, width := t.Area()
	if y < line || y >= line+rows.Height || width > 0 && x > width {
		return 0, false
	}
	return rows.Top + y - line - rows.Cursor, true
}

// isTable reports whether the view is a table.
func (m *Model) isTable() bool {
	_, ok := m.screen().(screens.Table)
	return ok
}

// click selects the item at a position of the screen. A click on the head of a
// column of the flows sorts by it, and one on a key of the last line presses it.
func (m *Model) click(x, y int) {
	m.Note = ""
	m.Store.Turn()
	if m.palette.open {
		m.paletteClick(x, y)
		return
	}
	if m.prompt.kind != promptNone || m.clickBar(x, y) || m.help {
		return
	}
	if m.View == browser.Packets {
		m.screens.Packets.Click(m.Browser, x, y)
		return
	}
	if m.View == browser.Flows && m.screens.Flows.ClickHead(m.Browser, x, y) {
		return
	}
	if by, ok := m.rowAt(x, y); ok {
		m.move(by)
	}
}

// doubleClick opens the item at a position of the screen.
func (m *Model) doubleClick(x, y int) {
	m.Store.Turn()
	if m.help || m.palette.open || m.prompt.kind != promptNone {
		return
	}
	if m.isTable() {
		if _, ok := m.rowAt(x, y); !ok {
			return
		}
	}
	m.screen().Enter(m.Browser)
}

// wheel scrolls the part of the screen under the mouse.
func (m *Model) wheel(x, y, by int) {
	m.Store.Turn()
	if m.palette.open {
		m.palette.list.Scroll(by, len(m.palette.found))
		return
	}
	if m.help {
		m.Text.Scroll(by)
		return
	}
	switch _, ok := m.rowAt(x, y); {
	case m.View == browser.Packets:
		m.screens.Packets.Wheel(m.Browser, x, y, by)
	case m.isTable() && !ok && m.View != browser.Flows:
		m.Text.Scroll(by)
	default:
		m.move(by)
	}
}
