package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// countOutcome counts outcomes in a row that are beyond the limit.
func (t *follower) countOutcome(p *step, s *side, q *riptide.Quality, beyond bool) {
	if !beyond {
		q.Row = 0
		return
	}
	q.Row++
	switch q.Row {
	case riptide.QualityRow / 2:
		p.out.At(p.at, p.ref).Report(riptide.QualityNear, s.side, machine.Likely, 0, float64(q.Row))
	case riptide.QualityRow:
		limit := riptide.DroppedNotify
		if q == &s.out.quality {
			limit = riptide.DroppedSends
		}
		s.end.reached(limit, p.at)
		p.out.At(p.at, p.ref).Report(riptide.QualityLimit, s.side, machine.Likely, 0, float64(q.Row))
	}
}

// notifyOutcome counts the outcome of a notify message as the library's loss rate does: the lost
// ones of the last 64, divided by 64.
func (t *follower) notifyOutcome(p *step, s *side, lost bool) {
	v := uint8(0)
	if lost {
		v = 1
	}
	s.notifyOut.quality.Add(v)
	t.countOutcome(p, s, &s.notifyOut.quality, s.behaviour.QualityLimits &&
		float64(s.notifyOut.quality.Sum)/riptide.QualityRow > riptide.QualityLoss)
}

// messageFindings reports on a reliable message at the end of its life.
func (t *follower) messageFindings(s *side, e *life, out *machine.Effects) {
	if e.mode != machine.ModeReliable && e.mode != machine.ModeInternal {
		return
	}
	t.countPath(s, e)
	last, limit := e.lastFrame(), int32(s.behaviour.Limit)
	switch {
	case limit > 0 && e.copies.count >= limit && e.sender.acked != machine.Yes && !e.answers.named:
		out.At(e.copies.last, last).Report(riptide.AttemptsLimit, s.side, machine.Likely, e.copies.frame,
			float64(e.copies.count), float64(e.sequence))
	case limit > 0 && e.copies.count >= riptide.AttemptsMany:
		out.At(e.copies.last, last).Report(riptide.AttemptsNear, s.side, machine.Certain, e.copies.frame,
			float64(e.copies.count), float64(e.sequence))
	}
	if s.behaviour.Port {
		t.portMessage(s, e, last, out)
	} else if e.copies.count > 1 {
		t.resent(s, e, last, out)
	}
	// A message that was first sent before the capture jumps ahead too.
	jumps := e.sender.merged && e.sender.waits && (t.begun || e.copies.first.Sub(s.out.metAt) > riptide.Timeout)
	if (jumps || e.clash) && t.merges(s) {
		grade := machine.Likely
		if s.tap.near && e.clash && !t.config.Stream {
			grade = s.tap.grade()
		}
		out.At(e.copies.first, e.copies.frame).Report(riptide.MergedSequences, s.side, grade, 0, float64(e.copies.count),
			float64(e.sequence))
	}
}

// endFindings reports the state of the connection when the capture ends.
func (t *follower) endFindings(out *machine.Effects) {
	c := &t.conn
	if c.attempt.count > 1 && !c.attempt.answered {
		out.At(c.attempt.at, c.attempt.ref).Report(riptide.NoAnswer, t.client, machine.Certain, 0, float64(c.attempt.count))
	}
	for i := range t.sides {
		s := &t.sides[i]
		s.path.Finish()
		t.endFaults(s, out)
	}
	if t.ended || c.attempt.rejected || !t.sides[0].out.met || !t.sides[1].out.met {
		return
	}
	for i := range t.sides {
		s, peer := &t.sides[i], &t.sides[1-i]
		if gap := peer.activity.last.Sub(s.activity.last); gap > riptide.Silence && s.tap.near && !c.over[i] {
			out.At(s.activity.last, s.activity.ref).Report(riptide.SilentEnd, s.side, machine.Likely, 0,
				machine.Milliseconds(gap))
		}
	}
}
