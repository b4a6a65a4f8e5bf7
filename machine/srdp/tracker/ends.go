package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// How long a packet's life stays open after its last copy or acknowledgement.
const (
	// quietAcked is how long a packet's life stays open once every copy was
	// acknowledged.
	// Source: measured, TestMarginsSRDP
	quietAcked = 2 * time.Second
	// quietOpen is how long a packet's life stays open where nothing shows that
	// its sender gave it up.
	// Source: measured, TestMarginsSRDP
	quietOpen = 20 * time.Second
	// quietDoubt is how long a packet's life stays open if the packet may be
	// foreign.
	// Source: measured, TestMarginsSRDP
	quietDoubt = 3 * time.Second
)

// settle gives up packets that a side stopped repeating, and ends the lives to
// which nothing more can happen. Of many lanes it checks two for each packet.
func (t *Tracker) settle(s *party, out *machine.Effects) {
	for range min(len(s.lanes.list), 2) {
		l := s.lanes.next()
		if t.last <= l.due {
			continue
		}
		t.giveUps(s, l, out)
		for e := l.lives.oldest(); e != nil && t.over(s, e); e = l.lives.oldest() {
			t.end(s, l, out)
		}
		// Whatever is sent or acknowledged from now on is due later than this.
		l.due = t.last.Add(patience)
		if q := l.queue.Head(); q != nil {
			l.due = min(l.due, l.queue.RetryAt(q).Add(patience))
		}
		if e := l.lives.oldest(); e != nil {
			l.due = min(l.due, max(e.lastAt, e.ack.last).Add(quietAcked))
		}
	}
}

// touched notes a change in a lane that concerns something as old as at.
func (l *lane) touched(at machine.Instant) { l.due = min(l.due, at.Add(patience)) }

// giveUps removes packets from the sent queue that should have been repeated
// long ago. It does so only when the sender has sent something since: a silent
// sender may be gone.
func (t *Tracker) giveUps(s *party, l *lane, out *machine.Effects) {
	if t.config.Stream {
		return
	}
	// Away from the sender, further copies may have been lost before the tap.
	late := func(q *srdp.Sent) time.Duration { return max(patience, 2*q.Timeout) }
	grade := machine.Likely
	if !s.near {
		late = func(q *srdp.Sent) time.Duration { return max(patience, 4*q.Timeout) }
		grade = machine.Possible
	}
	for q := l.queue.Head(); q != nil && s.seen.at.Sub(l.queue.RetryAt(q)) > late(q); q = l.queue.Head() {
		id64 := q.ID64
		l.queue.Remove(q)
		e := l.lives.find(q.ID)
		if e == nil || e.id64 != id64 || e.tally.acks > 0 {
			continue
		}
		e.gaveUp = true
		t.event(out, e, &sighting{at: t.last, ref: t.lastRef},
			fact{kind: srdp.EventGaveUp, of: s.side, sure: grade, about: e.frame})
	}
}

// over reports whether nothing more can be expected of a packet.
func (t *Tracker) over(s *party, e *life) bool {
	quiet := t.last.Sub(max(e.lastAt, e.ack.last))
	if quiet <= quietAcked {
		return false // every case below asks for at least this
	}
	again := 4*t.timeoutOf(s, e) + patience
	switch {
	case e.doubtful:
		return quiet > quietDoubt
	case e.tally.acks >= e.tally.copies:
		return quiet > quietAcked
	case e.tally.acks > 0 || e.gaveUp:
		return quiet > max(quietAcked, again)
	}
	return quiet > max(quietOpen, again)
}

// end ends the oldest life of a lane. It reports its findings and its message.
func (t *Tracker) end(s *party, l *lane, out *machine.Effects) {
	e := l.lives.oldest()
	l.lives.first++
	if e.doubtful {
		s.seen.foreign++
		out.At(e.at, e.frame).Report(srdp.ForeignDatagram, s.side, machine.Likely, 0,
			float64(t.config.Profile.HeaderLen())+float64(e.size))
		return
	}
	if q := l.queue.Find(e.id); q != nil && q.ID64 == e.id64 {
		l.queue.Remove(q)
	}
	if e.tally.acks > 0 || e.gaveUp {
		s.data.settled++
	}
	if e.tally.acks == 0 && e.gaveUp {
		s.data.unacked++
		s.timings().end(e.tally.attempts())
	}
	if r := &t.parties[s.side.Other()]; e.tally.acks > e.tally.copies ||
		e.tally.acks < e.tally.attempts() && r.seen.at.Sub(e.lastAt) > missingAfter {
		r.reach.amiss++
		r.reach.unmatched++
	}
	t.endFindings(s, e, out)
	if !out.NoMessages {
		out.Messages = append(out.Messages, machine.Message{})
		t.message(s, e, &out.Messages[len(out.Messages)-1])
	}
}

// message fills m with the life of a packet.
func (t *Tracker) message(s *party, e *life, m *machine.Message) {
	r := &t.parties[s.side.Other()]
	*m = machine.Message{
		From: s.side, Mode: machine.ModeReliable, Channel: -1, ID: e.id64, IDBits: 15, Type: uint32(e.flags),
		Bits:     int(e.size) * 8,
		Sequence: uint32(e.id), Sequence64: e.id64, Attempts: int(e.tally.copies), At: e.at,
		Acked: machine.No, Named: e.tally.acks > 0, BlockedBy: -1,
	}
	t.times(s, r, e, m)
	m.Frames[0] = e.frame
	if e.tally.copies > 1 {
		copy(m.Frames[1:], e.rare.frames[:])
		clear(m.Frames[min(int(e.tally.copies), len(m.Frames)):])
	}
	if e.tally.acks == 0 && e.tally.arrived > 0 { // on a stream to a client
		m.Acked = machine.Unanswered
		m.Delivered, m.Deliveries, m.Certainty = machine.Yes, int(e.tally.arrived), machine.Likely
		m.DeliveredAt, m.DeliveredBy = e.at, e.frame
	}
	if e.tally.acks == 0 {
		return
	}
	m.Acked, m.AckedAt, m.AckedBy = machine.Yes, e.ack.at, e.ack.ref
	m.Delivered, m.Deliveries, m.Certainty = machine.Yes, int(max(1, e.tally.arrived)), e.handed()
	m.DeliveredAt, m.DeliveredBy = e.ack.at, e.newest()
	if r.near || e.tally.copies == 1 {
		m.DeliveredBy = e.frame
	}
	if r.near {
		m.DeliveredAt = e.at
	}
}
