package tracker

import "github.com/ackscope/ackscope/machine"

// A packet came to its receiver's library not before its first copy passed the tap, and not after its
// first acknowledgement passed. A receiver acknowledges a copy as it reads it. So at the receiver's tap
// the bounds are as wide as its wait for a frame. At the sender's tap they are the round trip, and more
// where a copy or an acknowledgement was lost.

// times fills in when a packet of s was sent and when it came to r.
func (t *Tracker) times(s, r *party, e *life, m *machine.Message) {
	m.Sent = t.sentSpan(s, e)
	if e.tally.acks == 0 || e.at > e.ack.at {
		return
	}
	sure := min(e.firsts(), e.handed())
	if e.reused {
		sure = min(sure, machine.Likely) // it may be the other packet that was acknowledged
	}
	m.Arrived = machine.Span{From: e.at, To: e.ack.at, Certainty: sure}
	m.InOrder = m.Arrived // a receiver holds no packet back: its sender waits instead
	m.Estimate = r.estimate(m.Arrived)
}

// sentSpan bounds when a packet of s was first sent.
func (t *Tracker) sentSpan(s *party, e *life) machine.Span {
	switch {
	case t.config.Stream, !s.near && s.reach.answers.Count() == 0:
		return machine.Span{} // a stream may have held it back
	case !s.near:
		// Its data names nothing that it had read. It was likely on its way for less than the shortest round
		// trip from the tap.
		return machine.Span{From: e.at.Add(-s.reach.answers.Least()), To: e.at, Certainty: machine.Likely}
	case !s.sure:
		return machine.At(e.at, machine.Likely)
	}
	return machine.At(e.at, e.firsts())
}

// estimate narrows the span in which a packet came to r. Both ways take equally long, and never less than
// half of the shortest round trip.
func (r *party) estimate(arrived machine.Span) machine.Span {
	span := arrived
	span.Certainty = min(span.Certainty, machine.Likely)
	switch way := r.reach.answers.Least() / 2; {
	case r.near:
		span.From = span.To // it acknowledges a copy as it reads it
	case r.reach.answers.Count() == 0:
		return machine.Span{}
	case span.Width() > 2*way:
		span.From, span.To = span.From.Add(way), span.To.Add(-way)
	default:
		middle := span.Middle()
		span.From, span.To = middle, middle
	}
	return span
}
