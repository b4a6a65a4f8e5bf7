package tui

// paneAt says which pane of the packets view is at a place of the screen, and
// how many rows below its title.
func (m *Model) paneAt(x, y int) (pane, int) {
	y -= 2
	h := m.h - 3
	if m.config.Maximised {
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

// click selects what is at a place of the screen.
func (m *Model) click(x, y int) {
	m.note = ""
	switch m.view {
	case viewFlows:
		if y >= 4 {
			m.flows.list.cursor = m.flows.list.top + y - 4
		}
	case viewFindings:
		if y >= 3 {
			m.findings.list.cursor = m.findings.list.top + y - 3
		}
	case viewReplay:
		if y >= 4 && y-4 < m.replay.list.height {
			m.replay.list.cursor, m.replay.frame = m.replay.list.top+y-4, 0
		}
	case viewMessages:
		if y >= 4 {
			m.messages.list.cursor = m.messages.list.top + y - 4
		}
	case viewPackets:
		p, row := m.paneAt(x, y)
		m.packet.pane = p
		switch {
		case row < 0:
		case p == paneList:
			if n, ok := m.packet.entry(m, m.packet.list.top+row); ok {
				m.packet.selected, m.packet.follow = n, false
			}
		case p == paneTree:
			m.detail.cursor = m.detail.shownAt(m.detail.list.top + row)
		}
	case viewState, viewLadder, viewGraphs, viewAutopsy, viewCount:
	}
}

// wheel scrolls what is at a place of the screen.
func (m *Model) wheel(x, y, by int) {
	if m.help {
		m.text.list.scroll(by, len(m.text.lines))
		return
	}
	if m.view == viewPackets {
		had := m.packet.pane
		m.packet.pane, _ = m.paneAt(x, y)
		m.move(by)
		m.packet.pane = had
		return
	}
	m.move(by)
}
