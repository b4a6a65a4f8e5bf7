package tui

import (
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

const (
	eventAcked  = machine.EventAcked
	eventResent = machine.EventResent
)

// packetList is the list of packets: all of them, or what flow and filter leave.
type packetList struct {
	list     draw.List
	selected int // entry; -1 before there is one
	pane     pane
	filter   *filter.Filter // nil for none
	sieve    *store.Sieve   // nil while every packet is shown
	follow   bool           // stay at the newest packet
	reader   *store.Reader
	columns  []*filter.Column // of fields that the user chose, by place; nil for built-in ones
	chosen   string           // for which columns
}

// sift begins a new search for what is to be shown.
func (p *packetList) sift(m *Model) {
	if p.sieve != nil {
		p.sieve.Close()
		p.sieve = nil
	}
	if m.flow != 0 || p.filter != nil {
		p.sieve = m.store.Sift(m.flow, p.filter)
	}
	p.list.Top = 0
}

// rows is how many packets are shown so far.
func (p *packetList) rows(m *Model) int {
	if p.sieve == nil {
		return m.store.Len()
	}
	return p.sieve.Rows()
}

// entry gives the entry of a row.
func (p *packetList) entry(m *Model, row int) (int, bool) {
	if p.sieve == nil {
		return row, row >= 0 && row < m.store.Len()
	}
	return p.sieve.Entry(row)
}

// row gives the row of an entry, or of the next one that is shown.
func (p *packetList) row(entry int) int {
	if p.sieve == nil {
		return entry
	}
	return p.sieve.Row(entry)
}

// settle puts cursor and selection in step before drawing: the selection is an
// entry, so rows that come in before it do not move it. No height leaves what is
// shown of the list as it is.
func (p *packetList) settle(m *Model, height int) {
	n := p.rows(m)
	if p.follow && n > 0 {
		p.selected, _ = p.entry(m, n-1)
	}
	if p.selected < 0 {
		if first, ok := p.entry(m, 0); ok {
			p.selected = first
		}
	}
	if p.selected >= 0 {
		p.list.Cursor = p.row(p.selected)
	}
	if height > 0 {
		p.list.Fit(n, height)
	}
	// A packet that the filter hides gives way to the next one that is shown.
	if e, ok := p.entry(m, p.list.Cursor); ok && p.sieve != nil && p.sieve.Refused(p.selected) {
		p.selected = e
	}
}

// here is the row of the selected packet: the cursor follows it only when the
// list is drawn.
func (p *packetList) here() int {
	if p.selected < 0 {
		return p.list.Cursor
	}
	return p.row(p.selected)
}

func (p *packetList) moveBy(m *Model, by int) {
	n := p.rows(m)
	if n == 0 {
		return
	}
	p.follow = p.follow && by > 0
	row := min(max(p.here()+by, 0), n-1)
	if e, ok := p.entry(m, row); ok {
		p.list.Cursor, p.selected = row, e
	}
}

// step goes by so many packets of the selected packet's flow.
func (m *Model) step(by int) {
	f := m.focus()
	if f == nil {
		m.packet.moveBy(m, by)
		return
	}
	way, left := 1, by
	if by < 0 {
		way, left = -1, -by
	}
	at, n := m.packet.selected, m.packet.selected
	m.goOn("stepping", func() bool {
		for left > 0 {
			next, how := m.store.Beside(f, n, way)
			if n = next; how == store.ReachLater {
				return false
			}
			if how == store.ReachEnd {
				m.say("the flow's %s packet", map[int]string{1: "last", -1: "first"}[way])
				break
			}
			at = n
			left--
		}
		m.packet.selected, m.packet.follow = at, false
		return true
	})
}

// toggleFollow stays at the newest packet, or no longer.
func (m *Model) toggleFollow() {
	m.packet.follow = !m.packet.follow
	if m.packet.follow {
		m.say("staying at the newest packet")
	} else {
		m.say("staying here")
	}
}

func (m *Model) stepToEnd(way int) {
	f := m.focus()
	if f == nil {
		return
	}
	if way > 0 {
		if n, ok := m.store.LastOf(f); ok {
			m.packet.selected = n
		}
	} else if n, ok := m.store.Find(f.FirstRef); ok {
		m.packet.selected = n
	}
}

// change goes to the next packet of the flow at which a window changes by more
// than what was sent and received.
func (m *Model) change(by int) {
	f := m.focus()
	if f == nil {
		m.fail("no flow here")
		return
	}
	n, way := m.packet.selected, 1
	if by < 0 {
		way, by = -1, -by
	}
	m.goOn("looking for a change", func() bool {
		for by > 0 {
			next, how := m.store.Beside(f, n, way)
			if n = next; how == store.ReachLater {
				return false
			}
			if how == store.ReachEnd {
				m.say("no further change")
				return true
			}
			if m.store.Entry(n).Marks.Changes() {
				by--
			}
		}
		m.packet.selected, m.packet.follow = n, false
		return true
	})
}

// jumpSettled goes to the packet that settled what became of this one.
func (m *Model) jumpSettled() {
	n := m.packet.selected
	if n < 0 || n >= m.store.Len() {
		return
	}
	e := m.store.Entry(n)
	if e.Settled < 0 {
		if !m.store.Settled() && !m.store.Growing() {
			m.fail("not known yet: the capture is being read")
			return
		}
		m.fail("frame %s: nothing in the capture settles whether it arrived", m.store.Frame(e.Ref))
		return
	}
	m.jump(e.Settled)
	if e.Marks.Fate() == analyze.FateLost {
		m.say("frame %s can no longer be acked from here on", m.store.Frame(e.Ref))
	} else {
		m.say("here the sender learned that frame %s arrived", m.store.Frame(e.Ref))
	}
}

// jumpAbout goes to the packet that an event of this one is about.
func (m *Model) jumpAbout(kind machine.EventKind) {
	r, err := m.store.SettledAt(m.packet.selected)
	if err != nil {
		m.fail("%v", err)
		return
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == kind && e.About != 0 && (kind != eventAcked || m.store.Entry(m.packet.selected).Ref != e.About) {
			m.jumpRef(e.About)
			return
		}
	}
	if kind == eventResent {
		m.fail("this packet sends nothing again")
		return
	}
	m.fail("this packet's header settles nothing")
}

// appendWhen writes the time column.
func (m *Model) appendWhen(to []byte, r *filter.Record) []byte {
	at := r.Datagram.At
	switch timeWords[m.config.Time] {
	case "delta":
		return show.AppendSeconds(to, int64(at.Sub(r.Previous)), 6)
	case "absolute":
		return at.Time().AppendFormat(to, "15:04:05.000000")
	}
	return show.AppendSeconds(to, int64(at.Sub(r.Start)), 6)
}

var timeWords = []string{"relative", "delta", "absolute"}

func appendInt(to []byte, n int) []byte { return strconv.AppendInt(to, int64(n), 10) }
