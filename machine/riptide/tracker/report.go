package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// judge counts outcomes in a row that are beyond the limit.
func (t *follower) judge(q *riptide.Quality, beyond bool, s *side, p *sighting, out *machine.Effects) {
	if !beyond {
		q.Row = 0
		return
	}
	q.Row++
	switch q.Row {
	case riptide.QualityRow / 2:
		out.Report(riptide.QualityNear, s.side, machine.Likely, p.at, p.ref, 0, float64(q.Row))
	case riptide.QualityRow:
		s.limitAt, s.limitOf = p.at, riptide.DroppedNotify
		if q == &s.sendQuality {
			s.limitOf = riptide.DroppedSends
		}
		out.Report(riptide.QualityLimit, s.side, machine.Likely, p.at, p.ref, 0, float64(q.Row))
	}
}

// outcome enters what became of a notify message, as the library's loss rate
// does: lost of the last 64, over 64.
func (t *follower) outcome(s *side, lost bool, p *sighting, out *machine.Effects) {
	v := uint8(0)
	if lost {
		v = 1
	}
	s.notifyQuality.Add(v)
	t.judge(&s.notifyQuality, s.behaviour.QualityLimits && float64(s.notifyQuality.Sum)/riptide.QualityRow > riptide.QualityLoss, s, p, out)
}

// lifeFindings reports on a reliable message whose life has ended.
func (t *follower) lifeFindings(s *side, e *life, out *machine.Effects) {
	if e.Mode != machine.ModeReliable && e.Mode != machine.ModeInternal {
		return
	}
	t.judgePath(s, e)
	last, limit := e.lastFrame(), int32(s.behaviour.Limit)
	switch {
	case limit > 0 && e.Attempts >= limit && e.Acked != machine.Yes && !e.Named:
		out.Report(riptide.AttemptsLimit, s.side, machine.Likely, e.lastAt, last, e.frame, float64(e.Attempts), float64(e.Sequence))
	case limit > 0 && e.Attempts >= riptide.AttemptsMany:
		out.Report(riptide.AttemptsNear, s.side, machine.Certain, e.lastAt, last, e.frame, float64(e.Attempts), float64(e.Sequence))
	}
	if s.behaviour.Port {
		t.portLife(s, e, last, out)
	} else if e.Attempts > 1 {
		t.resent(s, e, last, out)
	}
	if (e.merged && e.waits || e.clash) && t.merges(s) {
		grade := machine.Likely
		if s.near && e.clash && !t.config.Stream {
			grade = s.grade()
		}
		out.Report(riptide.MergedSequences, s.side, grade, e.At, e.frame, 0, float64(e.Attempts), float64(e.Sequence))
	}
}

// endFindings reports how the connection stands when the capture ends.
func (t *follower) endFindings(out *machine.Effects) {
	c := &t.life
	if c.connects > 1 && !c.answered {
		out.Report(riptide.NoAnswer, t.client, machine.Certain, c.connectAt, c.connectRef, 0, float64(c.connects))
	}
	for i := range t.sides {
		s := &t.sides[i]
		s.unnamed.upTo(s.unnamed.copies, &s.both)
		t.endFaults(s, out)
	}
	if t.ended || c.rejected || !t.sides[0].met || !t.sides[1].met {
		return
	}
	for i := range t.sides {
		s, peer := &t.sides[i], &t.sides[1-i]
		if gap := peer.spoke.Sub(s.spoke); gap > riptide.Silence && s.near && !c.over[i] {
			out.Report(riptide.SilentEnd, s.side, machine.Likely, s.spoke, s.spokeRef, 0, machine.Milliseconds(gap))
		}
	}
}
