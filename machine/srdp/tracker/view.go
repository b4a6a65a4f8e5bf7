package tracker

import (
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// Bounds of what a view draws.
const (
	// viewIDs is how many ids a window of a view draws.
	// Source: bound, the ids that a view draws
	viewIDs = 64
	// viewRows is how many rows a table of a view draws.
	// Source: bound, the rows that a view draws
	viewRows = 64
	// viewLanes is how many lanes of a side a view draws.
	// Source: bound, the lanes that a view draws
	viewLanes = 8
)

// Inspect appends to v what side x knew after the last observed datagram.
func (t *Tracker) Inspect(x machine.Side, v *machine.View) {
	s, peer := &t.parties[x], &t.parties[x.Other()]
	grade := machine.Likely
	if s.sure {
		grade = machine.Certain
	}
	for i, l := range s.lanes.list {
		if l.met && i < viewLanes {
			v.Windows = append(v.Windows, t.sentWindow(s, l, grade))
		}
	}
	for i, l := range peer.lanes.list {
		if l.met && i < viewLanes {
			v.Windows = append(v.Windows, t.receivedWindow(l))
		}
	}
	t.gauges(s, v, grade)
	if queue := t.queueTable(s, grade); len(queue.Rows) > 0 {
		v.Tables = append(v.Tables, queue)
	}
	if list := recentTable(peer); len(list.Rows) > 0 {
		v.Tables = append(v.Tables, list)
	}
}

// laneName returns the name of a window. In the proxied form it contains the
// addresses in the packets.
func (t *Tracker) laneName(what string, l *lane) string {
	if !t.proxied() {
		return what
	}
	return what + " " + l.pair.Source.String() + "→" + l.pair.Destination.String()
}

// sentWindow draws the newest ids of a lane. An id that the lane does not have
// went to another peer, or is missing from the capture. The endpoint's figures
// show which.
func (t *Tracker) sentWindow(s *party, l *lane, grade machine.Certainty) machine.Window {
	w := machine.Window{
		Name: t.laneName("sent", l), First: max(0, l.firstID, l.top-viewIDs+1), Next: l.top + 1,
		Grade: grade,
	}
	for id := w.First; id <= l.top; id++ {
		e := l.lives.find(uint16(id) &^ (1 << 15))
		cell := machine.CellEmpty
		switch {
		case e == nil || e.id64 != id || e.doubtful:
			if id < l.lives.at(l.lives.kept()).id64 {
				cell = machine.CellUnknown // its life ended long ago
			}
			w.Cells = append(w.Cells, cell)
			continue
		case e.tally.acks > 0:
			cell = machine.CellAcked
		case e.gaveUp:
			cell = machine.CellLost
		default:
			cell = machine.CellSent
		}
		w.Cells = append(w.Cells, cell)
		w.Slots = append(w.Slots, machine.Slot{
			Index: int(e.id), Sequence: uint32(e.id), Sequence64: id, Cell: cell, SentAt: e.at, AckedAt: e.ack.at,
			Ref: e.frame, SettledBy: e.ack.ref, Grade: min(grade, e.firsts(), s.reads(max(e.ack.at, e.at))),
		})
	}
	return w
}

// receivedWindow draws which of a lane's newest ids its receiver has: those
// that it acknowledged.
func (t *Tracker) receivedWindow(l *lane) machine.Window {
	w := machine.Window{
		Name: t.laneName("received", l), First: max(0, l.firstID, l.top-viewIDs+1), Next: l.top,
		Grade: machine.Certain,
	}
	for id := w.First; id <= l.top; id++ {
		cell := machine.CellEmpty
		switch e := l.lives.find(uint16(id) &^ (1 << 15)); {
		case e == nil || e.id64 != id || e.doubtful:
			if id < l.lives.at(l.lives.kept()).id64 {
				cell = machine.CellUnknown
			}
		case e.tally.acks > 0 || e.tally.arrived > 0:
			cell = machine.CellReceived
		default:
			cell = machine.CellUnknown // it may have arrived, and its acknowledgement may be lost
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}

// gauges adds the figures of a side.
func (t *Tracker) gauges(s *party, v *machine.View, grade machine.Certainty) {
	add := func(name string, value float64, unit string, sure machine.Certainty) {
		v.Gauges = append(v.Gauges, machine.Gauge{Name: name, Value: value, Unit: unit, Grade: sure})
	}
	waiting, sure := 0, grade
	if s.ackedAt != 0 && t.last.Sub(s.ackedAt) < unread {
		sure = min(sure, machine.Likely) // it may still lie in the socket
	}
	if !t.watched(s, t.last) && !t.config.Stream {
		sure = min(sure, machine.Likely) // a packet from before the capture may still wait
	}
	for _, l := range s.lanes.list {
		waiting += l.queue.Len()
		l.queue.InOrder(func(q *srdp.Sent) bool {
			sure = t.waitsStill(s, q, sure)
			return sure == machine.Certain
		})
	}
	if s.data.ids > 0 {
		add("in the sent queue", float64(waiting), "packets", sure)
		add("copies sent again", float64(s.data.resends), "copies", s.data.since(grade))
	}
	if s.delays.count > 0 {
		sure := machine.Certain
		if s.delays.earlier {
			sure = machine.Likely // an acknowledgement may answer a copy from before the capture
		}
		add("packet to acknowledgement, mean", float64(s.delays.sum)/float64(s.delays.count)/1e6, "ms", sure)
		add("packet to acknowledgement, longest", machine.Milliseconds(s.delays.longest), "ms", sure)
	}
	if s.delays.ambiguous > 0 {
		add("ambiguous samples left out", float64(s.delays.ambiguous), "packets", machine.Certain)
	}
	if d, sure := s.timing.timeout(); sure != machine.Unknown {
		add("timeout between copies", machine.Milliseconds(d), "ms", sure)
		add("timeout, shortest seen", machine.Milliseconds(s.timing.least), "ms", machine.Certain)
		add("timeout, longest seen", machine.Milliseconds(s.timing.most), "ms", machine.Certain)
	}
	if n, sure := s.timing.limit(); sure != machine.Unknown {
		add("repeats: given up after", float64(n), "copies", sure)
	}
	if s.data.copies > 0 && s.data.settled > 0 {
		// Of a copy without an acknowledgement, either the copy or its
		// acknowledgement was lost.
		add("copies without an acknowledgement", 100*max(0, 1-float64(s.data.answers)/float64(s.data.copies)), "%",
			machine.Certain)
	}
	if s.arrivals.handed+s.arrivals.dropped > 0 {
		add("copies received", float64(s.arrivals.handed), "copies", t.parties[s.side.Other()].data.since(grade))
		add("duplicates dropped", float64(s.arrivals.dropped), "copies", machine.Likely)
	}
	if s.seen.foreign > 0 {
		add("foreign datagrams", float64(s.seen.foreign), "datagrams", machine.Certain)
	}
}

// since grades a count of a sender's copies, if a first copy may be from before
// the capture.
func (d *sentData) since(grade machine.Certainty) machine.Certainty {
	if d.earlier > 0 {
		return min(grade, machine.Likely)
	}
	return grade
}

// waitsStill grades the claim that a packet is in its sender's queue. grade is
// how surely the sender's reading is known.
func (t *Tracker) waitsStill(s *party, q *srdp.Sent, grade machine.Certainty) machine.Certainty {
	if s.timing.waits(t.last.Sub(q.LastAt), t.known.least[s.side]) {
		return grade
	}
	return min(grade, machine.Likely) // the sender may have given the packet up
}

// queueTable lists a side's sent queue in order of retry time.
func (t *Tracker) queueTable(s *party, grade machine.Certainty) machine.Table {
	table := machine.Table{
		Name: "sent queue, by retry time",
		Columns: []string{
			"id", "copies", "first sent ms ago", "newest copy ms ago", "due in ms", "flags", "frame",
			"certainty",
		},
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
	for _, l := range s.lanes.list {
		l.queue.InOrder(func(q *srdp.Sent) bool {
			sure := t.waitsStill(s, q, grade)
			if e := l.lives.find(q.ID); e != nil && e.id64 == q.ID64 {
				sure = min(sure, e.firsts())
			}
			table.Rows = append(table.Rows, []string{
				strconv.Itoa(int(q.ID)), strconv.Itoa(int(q.Copies)), number(machine.Milliseconds(t.last.Sub(q.FirstAt))),
				number(machine.Milliseconds(t.last.Sub(q.LastAt))),
				number(machine.Milliseconds(l.queue.RetryAt(q).Sub(t.last))), "0x" + strconv.FormatUint(uint64(q.Flags), 16),
				strconv.FormatUint(q.First.Frame(), 10), sure.String(),
			})
			return len(table.Rows) < viewRows
		})
	}
	return table
}

// recentTable lists the recently received ids that a receiver keeps of its
// sources, by the profile's rules.
func recentTable(source *party) machine.Table {
	table := machine.Table{Name: "recently received ids", Columns: []string{"source", "ids", "newest"}}
	for i, l := range source.lanes.list {
		if l.received.Len() == 0 || i >= viewLanes {
			continue
		}
		newest := ""
		l.received.All(func(id uint16, _ machine.Instant) { newest = strconv.Itoa(int(id)) })
		name := source.side.String()
		if l.pair != (srdp.Pair{}) {
			name = l.pair.Source.String()
		}
		table.Rows = append(table.Rows, []string{name, strconv.Itoa(l.received.Len()), newest})
	}
	return table
}
