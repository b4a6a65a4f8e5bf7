package riptide

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Bounds of what is worth a word. They decide what is reported, never a fact.
const (
	attemptsMany  = 10
	heartbeatSlow = 1500 * time.Millisecond
	qualityRow    = 64
	qualityLoss   = 0.05
	qualitySends  = 5
)

// quality is the library's running judgement of a connection: figures of the
// last 64 outcomes, and for how many in a row they were beyond the limit.
type quality struct {
	values [qualityRow]uint8
	sum    int
	count  int
	row    int
}

// add enters an outcome, and gives the mean of the last 64.
func (q *quality) add(v uint8) float64 {
	slot := &q.values[q.count%qualityRow]
	q.sum += int(v) - int(*slot)
	*slot = v
	q.count++
	return float64(q.sum) / float64(min(q.count, qualityRow))
}

// judge counts outcomes in a row that are beyond the limit.
func (t *follower) judge(q *quality, beyond bool, s *side, p *sighting, out *machine.Effects) {
	if !beyond {
		q.row = 0
		return
	}
	q.row++
	switch q.row {
	case qualityRow / 2:
		out.Report(qualityNear, s.side, machine.Likely, p.at, p.ref, 0, float64(q.row))
	case qualityRow:
		s.limitAt, s.limitOf = p.at, droppedNotify
		if q == &s.sendQuality {
			s.limitOf = droppedSends
		}
		out.Report(qualityLimit, s.side, machine.Likely, p.at, p.ref, 0, float64(q.row))
	}
}

// outcome enters what became of a notify message, as the library's loss rate
// does: lost of the last 64, over 64.
func (t *follower) outcome(s *side, lost bool, p *sighting, out *machine.Effects) {
	v := uint8(0)
	if lost {
		v = 1
	}
	s.notifyQuality.add(v)
	t.judge(&s.notifyQuality, s.behaviour.QualityLimits && float64(s.notifyQuality.sum)/qualityRow > qualityLoss, s, p, out)
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
		out.Report(attemptsLimit, s.side, machine.Likely, e.lastAt, last, e.frame, float64(e.Attempts), float64(e.Sequence))
	case limit > 0 && e.Attempts >= attemptsMany:
		out.Report(attemptsNear, s.side, machine.Certain, e.lastAt, last, e.frame, float64(e.Attempts), float64(e.Sequence))
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
		out.Report(mergedSequences, s.side, grade, e.At, e.frame, 0, float64(e.Attempts), float64(e.Sequence))
	}
}

// endFindings reports how the connection stands when the capture ends.
func (t *follower) endFindings(out *machine.Effects) {
	c := &t.life
	if c.connects > 1 && !c.answered {
		out.Report(noAnswer, t.client, machine.Certain, c.connectAt, c.connectRef, 0, float64(c.connects))
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
		if gap := peer.spoke.Sub(s.spoke); gap > Silence && s.near && !c.over[i] {
			out.Report(silentEnd, s.side, machine.Likely, s.spoke, s.spokeRef, 0, machine.Milliseconds(gap))
		}
	}
}
