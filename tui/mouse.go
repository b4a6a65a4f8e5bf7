package tui

import (
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/screens"
)

// rowAt returns how far below the cursor of the view's table a place of the screen is;
// false for none, such as what stands beside or below the rows.
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

// click selects what is at a place of the screen; the head of a column of the
// flows sorts by it, and turns the order around.
func (m *Model) click(x, y int) {
	m.Note = ""
	m.Store.Turn()
	if m.help || m.prompt.kind != promptNone {
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

// doubleClick opens what is at a place of the screen.
func (m *Model) doubleClick(x, y int) {
	m.Store.Turn()
	if m.help || m.prompt.kind != promptNone {
		return
	}
	if m.isTable() {
		if _, ok := m.rowAt(x, y); !ok {
			return
		}
	}
	m.screen().Enter(m.Browser)
}

// wheel scrolls what is at a place of the screen.
func (m *Model) wheel(x, y, by int) {
	m.Store.Turn()
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
