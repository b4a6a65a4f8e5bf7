package tui

import "github.com/ackscope/ackscope/tui/draw"

// paneAt says which pane of the packets view is at a place of the screen, and
// how many rows below its title.
func (m *Model) paneAt(x, y int) (pane, int) {
	y -= 2
	h := m.h - 3
	if m.alone() {
		return m.packet.pane, y - 1
	}
	left := m.w
	if m.wide() {
		left = min(max(m.w*56/100, 70), m.w-66)
		if x > left {
			return paneState, y - 1
		}
	}
	height := min(max(h*50/100+m.config.List, 3), h-4)
	if y < height {
		return paneList, y - 1
	}
	if x < m.treeWidth(left) {
		return paneTree, y - height - 1
	}
	return paneHex, y - height - 1
}

// rowsAt is the screen's row at which the rows of a table begin.
var rowsAt = map[view]int{viewFlows: 4, viewFindings: 3, viewReplay: 4, viewMessages: 4}

// table is the list of a view that is a table; nil for other views.
func (m *Model) table() *draw.List {
	switch m.view {
	case viewFlows:
		return &m.flows.list
	case viewFindings:
		return &m.findings.list
	case viewReplay:
		return &m.replay.list
	case viewMessages:
		return &m.messages.list
	}
	return nil
}

// rowAt gives the row of the view's table at a place of the screen; false for
// none, such as what stands beside or below the table.
func (m *Model) rowAt(x, y int) (int, bool) {
	l, from := m.table(), rowsAt[m.view]
	if l == nil || y < from || y >= from+l.Height || m.view == viewFindings && x > m.findings.width {
		return 0, false
	}
	return l.Top + y - from, true
}

// click selects what is at a place of the screen; the head of a column of the
// flows sorts by it, and turns the order around.
func (m *Model) click(x, y int) {
	m.note = ""
	m.store.Turn()
	if m.help || m.prompt.kind != promptNone {
		return
	}
	if m.view == viewPackets {
		p, row := m.paneAt(x, y)
		m.packet.pane = p
		switch {
		case row < 0:
		case p == paneList:
			if n, ok := m.packet.entry(m, m.packet.list.Top+row); ok {
				m.packet.selected, m.packet.follow = n, false
			}
		case p == paneTree:
			m.detail.cursor = m.detail.shownAt(m.detail.list.Top + row)
		}
		return
	}
	if m.view == viewFlows && y == rowsAt[viewFlows]-2 {
		m.flows.clickHead(m, x)
		return
	}
	if row, ok := m.rowAt(x, y); ok {
		m.move(row - m.table().Cursor)
	}
}

// doubleClick opens what is at a place of the screen.
func (m *Model) doubleClick(x, y int) {
	m.store.Turn()
	if m.help || m.prompt.kind != promptNone {
		return
	}
	if m.table() != nil {
		if _, ok := m.rowAt(x, y); !ok {
			return
		}
	}
	m.enter()
}

// wheel scrolls what is at a place of the screen.
func (m *Model) wheel(x, y, by int) {
	m.store.Turn()
	if m.help {
		m.text.Scroll(by)
		return
	}
	switch _, ok := m.rowAt(x, y); {
	case m.view == viewPackets:
		had := m.packet.pane
		m.packet.pane, _ = m.paneAt(x, y)
		m.move(by)
		m.packet.pane = had
	case m.table() != nil && !ok && m.view != viewFlows:
		m.scrollText(by)
	default:
		m.move(by)
	}
}
