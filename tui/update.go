package tui

import (
	"slices"
	"unicode/utf8"

	"github.com/ackscope/ackscope/tui/draw"
)

// Key takes a key by its name: a character, or Enter, Esc, Up, Ctrl-F, …
func (m *Model) Key(k string) {
	m.note, m.copied = "", ""
	m.store.Turn()
	if m.prompt.kind != promptNone {
		m.promptKey(k)
		return
	}
	if m.help {
		m.helpKey(k)
		return
	}
	if p := m.keys.pending; p != "" {
		m.keys.pending = ""
		if p == "m" || p == "'" {
			m.markKey(p, k)
			return
		}
		if b := m.find(p + " " + k); b != nil {
			m.run(b)
			return
		}
		m.keys.count = 0
		return
	}
	if len(k) == 1 && (k[0] >= '1' && k[0] <= '9' || k == "0" && m.keys.count > 0) {
		m.keys.count = min(m.keys.count*10+int(k[0]-'0'), 1<<40)
		return
	}
	if b := m.find(k); b != nil {
		m.run(b)
		return
	}
	if m.begins(k) {
		m.keys.pending = k
		return
	}
	m.keys.count = 0
	m.say("%s means nothing here: ? lists the keys", k)
}

func (m *Model) run(b *binding) {
	n := m.keys.count
	m.keys.count = 0
	b.do(m, n)
}

// find gives what a key or sequence means in this view: what is said for the
// view itself goes first.
func (m *Model) find(k string) *binding {
	var general *binding
	table := bindingTable()
	for i := range table {
		b := &table[i]
		if !slices.Contains(b.keys, k) || !b.in(m.view) {
			continue
		}
		if len(b.views) > 0 {
			return b
		}
		if general == nil {
			general = b
		}
	}
	return general
}

// begins reports whether a sequence begins with the key.
func (m *Model) begins(k string) bool {
	for _, b := range bindingTable() {
		for _, s := range b.keys {
			if len(s) > len(k)+1 && s[:len(k)] == k && s[len(k)] == ' ' && b.in(m.view) {
				return true
			}
		}
	}
	return false
}

func (m *Model) helpKey(k string) {
	l, n := &m.text.List, len(m.text.Lines)
	switch k {
	case "q", "Esc", "?", "F1", "Enter":
		m.help = false
		m.text = draw.Pager{}
	case "j", "Down":
		l.Scroll(1, n)
	case "k", "Up":
		l.Scroll(-1, n)
	case "Space", "PgDn", "Ctrl-F", "Ctrl-D":
		l.Scroll(l.Height-1, n)
	case "PgUp", "Ctrl-B", "Ctrl-U":
		l.Scroll(1-l.Height, n)
	case "g", "Home":
		l.Scroll(-n, n)
	case "G", "End":
		l.Scroll(n, n)
	case "Ctrl-C":
		m.leaveProgram()
	}
}

func (m *Model) markKey(kind, k string) {
	r, _ := utf8.DecodeRuneInString(k)
	switch {
	case kind == "'" && k == "'":
		m.jumpBack()
	case utf8.RuneCountInString(k) != 1 || r < 'A' || r > 'z':
		m.fail("a mark is a letter")
	case kind == "m":
		m.marks[r] = m.here()
		m.say("marked %c: frame %s", r, m.selectedRef())
	default:
		l, ok := m.marks[r]
		if !ok {
			m.fail("no mark %c", r)
			return
		}
		m.leave()
		m.goTo(l)
	}
}

// move moves the cursor of what has the keys.
func (m *Model) move(by int) {
	switch m.view {
	case viewFlows:
		m.flows.list.Cursor += by
	case viewMessages:
		m.messages.list.Cursor += by
		m.text.List = draw.List{}
	case viewFindings:
		m.findings.list.Cursor += by
		m.findings.frame, m.text.List = 0, draw.List{}
	case viewReplay:
		m.replay.list.Cursor += by
		m.replay.frame, m.text.List = 0, draw.List{}
	case viewState, viewAutopsy:
		m.text.Scroll(by)
	case viewLadder, viewGraphs:
		m.step(by)
	case viewPackets:
		switch m.packet.pane {
		case paneTree:
			m.detail.cursor = m.detail.shownAt(m.detail.row() + by)
		case paneHex:
			m.detail.hex.Scroll(by, m.detail.hexRows)
		case paneState:
			m.text.Scroll(by)
		case paneList, paneCount:
			m.packet.moveBy(m, by)
		}
	case viewCount:
	}
}

// scrollText scrolls the lines that stand beside or below what has the keys.
func (m *Model) scrollText(by int) { m.text.Scroll(by) }

// page moves by pages, or parts of one.
func (m *Model) page(by, part int) {
	var height int
	switch {
	case m.view == viewFlows:
		height = m.flows.list.Height
	case m.view == viewMessages:
		height = m.messages.list.Height
	case m.view == viewFindings:
		height = m.findings.list.Height
	case m.view == viewReplay:
		height = m.replay.list.Height
	case m.view == viewPackets && m.packet.pane == paneList:
		height = m.packet.list.Height
	case m.view == viewPackets && m.packet.pane == paneHex:
		height = m.detail.hex.Height
	case m.view == viewPackets && m.packet.pane == paneTree:
		height = m.detail.list.Height
	case m.view == viewLadder, m.view == viewGraphs:
		height = 20
	default:
		height = m.text.List.Height
	}
	m.move(by * max(height/part, 1))
}

func (m *Model) first(frame int) {
	if frame > 0 {
		m.jump(frame - 1)
		return
	}
	m.ends(-1)
}

func (m *Model) lastRow(frame int) {
	if frame > 0 {
		m.jump(frame - 1)
		return
	}
	m.ends(1)
}

// ends goes to the first or the last row.
func (m *Model) ends(way int) {
	const far = 1 << 30
	switch m.view {
	case viewLadder, viewGraphs:
		m.stepToEnd(way)
	default:
		m.move(way * far)
	}
}

func (m *Model) nextPane(by int) {
	n := int(m.packet.pane)
	for range paneCount {
		n = (n + by + int(paneCount)) % int(paneCount)
		if pane(n) != paneState || m.wide() {
			break
		}
	}
	m.packet.pane = pane(n)
}

// wide reports whether the state stands beside the packets.
func (m *Model) wide() bool { return m.w >= 136 }

// enter opens what is at the cursor.
func (m *Model) enter() {
	switch m.view {
	case viewFlows:
		if f := m.flows.selected(m); f != nil {
			m.open(f.ID)
		}
	case viewPackets:
		if m.packet.pane == paneTree {
			m.fold()
			return
		}
		m.show(viewState)
	case viewFindings:
		m.findings.enter(m)
	case viewReplay:
		m.replay.enter(m)
	case viewMessages:
		m.messages.enter(m)
	case viewState, viewLadder, viewGraphs:
		m.show(viewPackets)
	case viewAutopsy, viewCount:
	}
}

// goBack closes the view; from the flows it leaves the program.
func (m *Model) goBack() {
	m.hunt.end()
	m.job.end()
	switch m.view {
	case viewFlows:
		m.leaveProgram()
	case viewPackets:
		if m.packet.pane != paneList {
			m.packet.pane = paneList
			return
		}
		fallthrough
	default:
		l, ok := m.cameFrom()
		if !ok {
			m.leave()
			l = location{view: viewFlows, flow: m.flow}
		}
		m.view, m.text.List = l.view, draw.List{}
		if m.flow != l.flow {
			m.flow = l.flow
			m.packet.sift(m)
		}
	}
}

// cameFrom gives where the view was opened from, and forgets what lies behind that.
// Views that show a packet or a flow in another way stand beside each other: what
// was opened from one of them replaces it. A packet that a finding, a message or a
// divergence led to goes back to that.
func (m *Model) cameFrom() (location, bool) {
	for n := len(m.back) - 1; n >= 0; n-- {
		l := m.back[n]
		if l.view == m.view || m.view != viewPackets && l.view != viewFlows && l.view != viewPackets {
			continue
		}
		m.back = m.back[:n]
		return l, true
	}
	return location{}, false
}

// jumpBack goes where the last jump began.
func (m *Model) jumpBack() {
	n := len(m.back)
	if n == 0 {
		m.fail("nowhere to go back to")
		return
	}
	l := m.back[n-1]
	m.back = m.back[:n-1]
	m.goTo(l)
}

// interrupt stops what runs in the background, or the program.
func (m *Model) interrupt() {
	switch w := m.replay.work; {
	case m.job.running():
		m.job.end()
	case m.hunt.running():
		m.hunt.end()
	case m.view == viewReplay && w != nil && !w.Done() && !w.Stopped():
		w.Stop()
	default:
		m.leaveProgram()
		return
	}
	m.say("stopped")
}

func (m *Model) sortNext() {
	switch m.view {
	case viewFlows:
		m.flows.sortNext(m)
	case viewMessages:
		m.messages.sortNext(m)
	default:
		m.findings.sortNext(m)
	}
}

func (m *Model) sortTurn() {
	switch m.view {
	case viewFlows:
		m.flows.reverse = !m.flows.reverse
		m.config.FlowReverse = m.flows.reverse
	case viewMessages:
		m.messages.reverse = !m.messages.reverse
		m.messages.order(m)
	default:
		m.findings.reverse = !m.findings.reverse
		m.findings.version = -1
	}
}

func (m *Model) nextTime() {
	m.config.Time = (m.config.Time + 1) % len(timeWords)
	m.say("time: %s", timeWords[m.config.Time])
}
