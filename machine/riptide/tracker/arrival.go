package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// When a message came to its receiver's library, as bounds in the time of the tap:
//
//	          tap at the sender              tap at the receiver
//	from      its first copy passed          the copy that the receiver took passed
//	          or the receiver sent an Ack    (TCP: its last byte passed)
//	          that does not name it
//	to        the first datagram of the receiver passed that shows its arrival
//
// A datagram shows the arrival of the messages that it names. At the receiver, it also shows what
// lay in the socket before them. For example, an unreliable message passes in frame 10, and a
// reliable one in frame 11. The Ack of the reliable one shows that both were read.

// bounds are the proofs of when a message was sent and when it came; each is 0 if there is none.
type bounds struct {
	sent machine.Instant // its sender sent it not before
	from machine.Instant // its receiver's library did not have it before
	to   machine.Instant // the first datagram of the receiver that shows its arrival passed
}

// shown records a datagram of the receiver that shows the arrival.
func (b *bounds) shown(at machine.Instant) {
	if b.to == 0 {
		b.to = at
	}
}

// trips are the times at the tap from messages of a side to the first datagram that names them. Each
// is the way to the peer and back, and the wait for a frame of the peer.
type trips struct {
	least time.Duration
	known bool
}

func (x *trips) add(trip time.Duration) {
	if trip = max(0, trip); !x.known || trip < x.least {
		x.least, x.known = trip, true
	}
}

// showRead records that a side has read everything up to an arrival: a datagram of it that passed
// at a time proves that. The side reads in the order of the tap.
func (t *follower) showRead(s *side, up proof, at machine.Instant) {
	peer := &t.sides[s.side.Other()]
	if s.behaviour.Port || s.maybePort {
		return // Pytide reads the newest first
	}
	for _, l := range [2]*lives{&peer.unreliable, &peer.notifyOut.lives} {
		for l.shown = max(l.shown, l.first); l.shown < l.next; l.shown++ {
			e := l.at(l.shown)
			if !up.covers(e.copies.first, e.copies.frame) {
				break
			}
			e.bounds.shown(at)
		}
	}
}

// notYet records an Ack of s that does not name a message of its peer. So s did not have the message
// when it sent the Ack. The Ack answers another message, which passed first at the given time. So s
// sent the Ack later than that.
func (s *side) notYet(e *life, answered machine.Instant) {
	if answered != 0 && e.sequence64 > s.acks.doubt && !s.behaviour.Port && !s.maybePort {
		e.bounds.from = max(e.bounds.from, answered)
	}
}

// openLong is how long after the beginning of a capture a message may show its first copy there, and
// have had others before. The tap is at its sender. The time is longer than usual resend times.
// Source: library, Riptide 2.0.0 to 2.2.1: a message comes again after 1.2 round trips
const openLong = 2 * time.Second

// missesFirst reports whether the first copy that passed of a reliable message may not be its
// first. Another may have passed before the capture, or the capture may lack it.
func (t *follower) missesFirst(s *side, id int64, at machine.Instant) bool {
	r := &t.sides[s.side.Other()]
	switch {
	case s.tap.near && !s.tap.stream && (s.out.met && id < s.out.top || r.acks.heard && id <= r.acks.last):
		return true // it sends ids in order
	case r.in.known && r.in.has(id):
		return true
	case s.tap.stream:
		return false
	case t.begun:
		return false
	case r.tap.near:
		return !r.in.known || id <= r.in.unsure // its first Ack shows what it had before
	case s.tap.near:
		return at.Sub(t.began) < openLong
	}
	return at.Sub(t.began) < lifeReliable
}

// has reports whether the side's window counts an id as received.
func (i *inbound) has(id int64) bool {
	has, _ := i.receiver.Received(uint16(id))
	return has
}

// frame returns how long a side's game may take to read what lies in its socket.
func (t *follower) frame(s *side) time.Duration {
	if d := t.facts.Tick[s.side]; d > 0 {
		return d
	}
	if t.roles && t.client == s.side {
		if d := t.conn.clock.Tick(); d > 0 {
			return d
		}
	}
	return riptide.UsualTick
}

// times fills in when a message of s was sent and when it came. received is how surely it came.
func (t *follower) times(s *side, e *life, received machine.Certainty, m *machine.Message) {
	r := &t.sides[s.side.Other()]
	m.Sent = t.sentSpan(s, r, e)
	if x := r.leftBefore(m.Sent.To); m.Sent.Known() && x.Known() && x.From > m.Sent.From && !s.tap.near {
		m.SentEstimate = x
	}
	if m.Delivered != machine.Yes || received == machine.Unknown {
		return
	}
	if e.clash || e.sender.merged {
		received = min(received, machine.Likely)
	}
	m.Arrived = t.arrivedSpan(s, r, e, received)
	m.InOrder = m.Arrived // no mode of the protocol holds back what has come
	m.Estimate = t.estimate(s, r, e, &m.Arrived)
}

// sentSpan bounds when a message of s was first sent.
func (t *follower) sentSpan(s, r *side, e *life) machine.Span {
	at := e.copies.first
	switch {
	case s.tap.near && s.tap.stream:
		return machine.At(at, machine.Likely) // TCP may have held it back
	case s.tap.near && e.later:
		return machine.At(at, machine.Likely)
	case s.tap.near:
		return machine.At(at, s.tap.grade())
	case e.later:
		return machine.Span{}
	}
	if from := e.bounds.sent; from != 0 && from <= at {
		return machine.Span{From: from, To: at, Certainty: machine.Certain}
	}
	return r.leftBefore(at)
}

// leftBefore returns when the peer of r likely sent a message that passed the tap at a time. It was on
// its way for less than the shortest round trip from the tap.
func (r *side) leftBefore(at machine.Instant) machine.Span {
	if trips := &r.figures.quickest; trips.known {
		return machine.Span{From: at.Add(-trips.least), To: at, Certainty: machine.Likely}
	}
	return machine.Span{}
}

// arrivedSpan bounds when a message of s came to r. received is how surely it came.
func (t *follower) arrivedSpan(s, r *side, e *life, received machine.Certainty) machine.Span {
	span := machine.Span{From: e.copies.first, To: e.bounds.to, Certainty: received}
	if e.came(r) && received < machine.Certain {
		span.To, span.Certainty = e.answers.first, machine.Certain
	}
	if e.later || e.mode != machine.ModeUnreliable && s.tap.lacks+r.tap.lacks > 0 {
		span.Certainty = min(received, machine.Likely) // the capture may lack its first copy
	}
	if span.To == 0 {
		if !r.tap.ordered {
			return machine.Span{}
		}
		// Nothing shows when it was read: likely in the next frame.
		span.To, span.Certainty = e.receiver.at.Add(t.frame(r)), min(received, machine.Likely)
	}
	from := e.bounds.from
	if r.tap.ordered && r.tap.grade() == machine.Certain && e.receiver.at < span.To {
		from = max(from, e.receiver.at) // the copy that it took
	}
	if from <= span.To {
		span.From = max(span.From, from)
	} else {
		span.Certainty = min(span.Certainty, machine.Likely)
	}
	if span.From > span.To {
		return machine.Span{}
	}
	return span
}

// came reports whether an Ack proves that a message came to r. Its own Ack does, whatever the window of r did
// with the message.
func (e *life) came(r *side) bool {
	return e.answers.count > 0 && !e.clash && !e.sender.merged && !r.behaviour.OneSequence
}

// estimate returns a narrower span of when a message of s came to r. It assumes that both ways take
// equally long, and never less than half of the shortest round trip.
func (t *follower) estimate(s, r *side, e *life, arrived *machine.Span) machine.Span {
	span := *arrived
	if !span.Known() {
		return span
	}
	span.Certainty = min(span.Certainty, machine.Likely)
	// A receiver sends the Ack of a message as it reads the message.
	own := e.answers.count > 0 && e.answers.first == span.To
	switch {
	case r.tap.near && own:
		span.From = span.To
	case r.tap.near:
		span.To = min(span.To, span.From.Add(t.frame(r)))
	case s.figures.quickest.known:
		way := s.figures.quickest.least / 2
		from, to := span.From.Add(way), span.To.Add(-way)
		if !own {
			to = min(to, from.Add(t.frame(r)))
		}
		if from > to {
			middle := span.Middle()
			from, to = middle, middle
		}
		span.From, span.To = max(span.From, from), min(span.To, to)
	default:
		return machine.Span{}
	}
	return span
}
