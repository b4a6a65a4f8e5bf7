package tracker

import (
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// underWayMost is how many rows the table of datagrams that are not read yet has at
// most.
// Source: bound, the rows of a table
const underWayMost = 64

// Inspect draws what a side knew after the last observed datagram. While the vantage is
// open (Facts did not give it), nothing is drawn: the datagrams are held back.
func (t *Tracker) Inspect(x machine.Side, v *machine.View) {
	if t.deferred {
		t = t.caughtUp()
	}
	if t.Sides == nil {
		return
	}
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	if s.Met {
		v.Windows = append(v.Windows, t.sentWindow(s, peer))
	}
	if s.headers.opened || peer.Met {
		v.Windows = append(v.Windows, t.receivedWindow(s, peer))
	}
	t.gauges(s, peer, v)
	if s.queue.len() > 0 {
		v.Tables = append(v.Tables, t.underWay(s, peer))
	}
}

// known returns how well the side's buffers are known.
func (s *side) known() machine.Certainty {
	switch {
	case !s.Met && !s.headers.opened:
		return machine.Unknown
	case s.Near:
		return machine.Certain
	}
	return machine.Likely
}

func (t *Tracker) sentWindow(s, peer *side) machine.Window {
	size := s.Rules.Sent
	w := machine.Window{Name: "sent", Next: s.sent.top64 + 1, Size: size, Grade: s.known()}
	if s.Rules.SentUnknown {
		w.Size = 0
	}
	w.First = max(s.sent.first64, w.Next-int64(size))
	w.Cells, w.Slots = make([]machine.Cell, 0, max(w.Next-w.First, 0)), make([]machine.Slot, 0, max(w.Next-w.First, 0))
	for number := w.First; number < w.Next; number++ {
		q := uint32(number) & s.Rules.Mask()
		cell := machine.CellUnknown
		e := s.Sent(q)
		switch {
		case e == nil && s.Near:
			// Sent, but the capture lacks it.
		case e == nil:
			// Lost before the tap, or overtaken and still to come.
			if peer.Near && peer.headers.opened && peer.unwrapHeard(s) >= number+int64(peer.headers.last.Width) {
				cell = machine.CellLost
			}
		case e.Flags&gaffer.SentAcked != 0:
			cell = machine.CellAcked
		case e.Flags&gaffer.SentLost != 0:
			cell = machine.CellLost
		case !s.Near && e.Flags&gaffer.SentArrived != 0:
			// The peer has it and says so. Whether this side has read that is unknown.
		default:
			cell = machine.CellSent
		}
		w.Cells = append(w.Cells, cell)
		if e != nil {
			w.Slots = append(w.Slots, machine.Slot{
				Index: gaffer.Slot(q, size), Sequence: q, Sequence64: number, Cell: cell, SentAt: e.At,
				AckedAt: e.AckedAt, Ref: e.Ref,
				SettledBy: e.AckedBy, Bit: e.Bit, Grade: t.sentGrade(s, e),
			})
		}
	}
	return w
}

func (t *Tracker) sentGrade(s *side, e *gaffer.Sent) machine.Certainty {
	switch {
	case e.Flags&gaffer.SentDoubtful != 0:
		return machine.Likely
	case e.Flags&gaffer.SentAcked != 0:
		return t.grade(machine.Certain)
	case e.Flags&gaffer.SentLost != 0:
		return machine.Likely
	case s.Near:
		return machine.Certain
	}
	return machine.Unknown
}

// unwrapHeard returns the unwrapped number of the newest packet of the peer that
// the side's newest header names.
func (s *side) unwrapHeard(peer *side) int64 {
	if s.headers.last.Nothing(s.Rules) {
		return peer.sent.first64 - 1
	}
	return peer.unwrap(s.headers.last.Newest)
}

func (t *Tracker) receivedWindow(s, peer *side) machine.Window {
	size := s.Rules.Received
	w := machine.Window{Name: "received", Next: -1, Size: size, Grade: s.known()}
	if s.Rules.ReceivedUnknown {
		w.Size = 0
	}
	if !s.headers.opened {
		w.Grade = machine.Unknown
		w.First = peer.sent.first64
		for range min(peer.sent.extent(), int64(size)) {
			w.Cells = append(w.Cells, machine.CellUnknown)
		}
		return w
	}
	newest := s.NewestReceived()
	if s.State.Claims().Nothing(s.Rules) {
		w.First = peer.sent.first64
		return w
	}
	if peer.Met {
		w.Next = peer.unwrap(newest)
	} else {
		w.Next = int64(newest)
	}
	w.First = w.Next - int64(size) + 1
	if peer.Met {
		w.First = max(w.First, min(peer.sent.first64, s.headers.joined))
	}
	last := w.Next
	if !s.Near && peer.Met {
		last = max(last, min(peer.sent.top64, w.Next+int64(size)))
	}
	w.Cells, w.Slots = make([]machine.Cell, 0, max(last-w.First+1, 0)), make([]machine.Slot, 0, max(last-w.First+1, 0))
	for number := w.First; number <= last; number++ {
		q := uint32(number) & s.Rules.Mask()
		cell := machine.CellUnknown
		var e *gaffer.Sent
		if peer.Met {
			e = peer.Sent(q)
		}
		switch {
		case number <= w.Next && s.Has(q):
			cell = machine.CellReceived
			if e == nil && peer.Met && number >= peer.sent.first64 && peer.sent.top64-number < int64(s.Rules.Sent) {
				cell = machine.CellClaimed
			}
		case s.Near && s.PartialOf(q) != nil:
			cell = machine.CellPartial
		case s.Near && (s.headers.fresh || number >= s.headers.joined):
			cell = machine.CellEmpty
		}
		w.Cells = append(w.Cells, cell)
		if cell == machine.CellUnknown || cell == machine.CellEmpty {
			continue
		}
		held := machine.Slot{Index: gaffer.Slot(q, size), Sequence: q, Sequence64: number, Cell: cell}
		held.Grade = t.restOnBase(machine.Certain)
		if e != nil {
			held.SentAt, held.Ref = e.At, e.Ref
		}
		if cell == machine.CellClaimed {
			held.Grade = machine.Likely
		}
		w.Slots = append(w.Slots, held)
	}
	return w
}

func (t *Tracker) gauges(s, peer *side, v *machine.View) {
	m := t.Summary(s.side)
	add := func(name string, value float64, unit string, sure machine.Certainty) {
		v.Gauges = append(v.Gauges, machine.Gauge{Name: name, Value: value, Unit: unit, Grade: sure})
	}
	seen := machine.Certain // what passed the tap
	if s.Met {
		next := seen
		if !s.Near {
			next = machine.Likely // it may have sent more
		}
		add("next sequence", float64((s.sent.top+1)&s.Rules.Mask()), "", next)
		add("in flight", float64(s.inFlight()), "packets", s.known())
		add("acked", float64(m.Acked), "packets", t.grade(s.known()))
		add("never acked", 100*m.NeverAcked, "%", machine.Likely)
	}
	if m.RTT >= 0 {
		add("RTT", machine.Milliseconds(m.RTT), "ms", m.RTTKnown)
		if s.Near {
			add("RTT variation", s.estimate.variation/1e6, "ms", machine.Likely)
		}
	}
	if m.WireRTT >= 0 {
		add("RTT on the wire", machine.Milliseconds(m.WireRTT), "ms", seen)
	}
	if m.Loss >= 0 {
		add("loss", 100*m.Loss, "%", m.LossKnown)
	}
	if tick := s.estimate.clock.tick; tick > 0 {
		add("frame", tick/1e6, "ms", machine.Likely)
	}
	if s.headers.opened {
		add("received", float64(m.Received), "packets", s.known())
	}
	if s.Near {
		r := s.Rules
		agree := !r.DuplicatesUnknown || m.Duplicates == 0
		add("duplicates", float64(m.Duplicates), "packets", machine.AmongOpen(seen, agree))
		add("stale", float64(m.Stale), "packets", machine.AmongOpen(seen, !r.ReceivedUnknown))
		add("refused", float64(s.reads.refused), "packets", seen)
	}
	if s.headers.closest.left > 0 {
		add("left in the ack window", float64(s.headers.closest.left-1), "packets", seen)
	}
	if peer.Met {
		add("peer's packets not captured", float64(m.Missing), "packets", seen)
	}
}

// inFlight counts the packets that are neither acked nor lost.
func (s *side) inFlight() int {
	n := 0
	for i := range s.SentBuffer {
		if s.SentBuffer[i].Flags&(gaffer.SentLive|gaffer.SentAcked|gaffer.SentLost) == gaffer.SentLive {
			n++
		}
	}
	return n
}

// underWay lists the datagrams that passed the tap towards a near side, and that the
// side is not known to have read.
func (t *Tracker) underWay(s, peer *side) machine.Table {
	tab := machine.Table{Name: "under way", Columns: []string{"frame", "sequence", "fragment", "ack", "waits ms"}}
	for place := s.queue.head; place != s.queue.tail && len(tab.Rows) < underWayMost; place++ {
		c := s.queue.at(place)
		row := []string{strconv.FormatUint(c.ref.Frame(), 10), strconv.FormatInt(peer.unwrap(c.sequence), 10), "", "", ""}
		if c.count > 0 {
			row[2] = strconv.Itoa(int(c.id)+1) + "/" + strconv.Itoa(int(c.count))
		}
		if c.flags&candidateHeader != 0 {
			row[3] = strconv.FormatUint(uint64(c.ack), 10)
		}
		row[4] = strconv.FormatFloat(machine.Milliseconds(t.last.Sub(c.at)), 'f', 1, 64)
		tab.Rows = append(tab.Rows, row)
	}
	return tab
}
