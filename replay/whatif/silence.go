package whatif

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// silences are the times for which a captured flow was silent for longer than
// its endpoints can be while they work. For example, a flow pauses for thirty
// days. A run that did not skip the pause would fill it with heartbeats that no
// endpoint sent. Its clock and its cost therefore follow the captured traffic.
//
//	captured   a b . . . . . . . . . . . . . . . c d
//	run        a b . . . c d
//
// The zero value is a flow without silences.
type silences struct {
	list []silence // in order
}

// silence is a time that a run skips.
type silence struct {
	from, to machine.Instant // what is skipped, in the time of the capture
	at       machine.Instant // where it would begin, in the time of the run
	before   time.Duration   // all that is skipped up to its end, earlier silences included
}

// silencesOf finds the silences of a trace: both sides sent nothing for longer
// than least. A time of least remains of each.
func silencesOf(t *machine.Trace, least time.Duration) (s silences) {
	var sent []machine.Instant
	for i := range t.Sides {
		for k := range t.Sides[i].Sent {
			sent = append(sent, t.Sides[i].Sent[k].Left)
		}
	}
	slices.Sort(sent)
	removed := time.Duration(0)
	for i := 1; i < len(sent); i++ {
		gap := sent[i].Sub(sent[i-1])
		if gap <= least {
			continue
		}
		from := sent[i-1].Add(least)
		s.list = append(s.list, silence{from, sent[i], from.Add(-removed), removed + gap - least})
		removed += gap - least
	}
	return s
}

// removed returns the total time that is skipped.
func (s silences) removed() time.Duration {
	if len(s.list) == 0 {
		return 0
	}
	return s.list[len(s.list)-1].before
}

// toRun converts an instant of the capture to the time of the run.
func (s silences) toRun(at machine.Instant) machine.Instant {
	n, within := slices.BinarySearchFunc(s.list, at, func(x silence, at machine.Instant) int {
		switch {
		case x.to <= at:
			return -1
		case x.from > at:
			return 1
		}
		return 0
	})
	if within {
		return s.list[n].at
	}
	if n == 0 {
		return at
	}
	return at.Add(-s.list[n-1].before)
}

// toCapture converts an instant of the run to the time of the capture.
func (s silences) toCapture(at machine.Instant) machine.Instant {
	n, _ := slices.BinarySearchFunc(s.list, at, func(x silence, at machine.Instant) int {
		if x.at <= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return at
	}
	return at.Add(s.list[n-1].before)
}

// between returns the time between two instants of the run, in the time of the
// capture.
func (s silences) between(from, to machine.Instant) time.Duration {
	if len(s.list) == 0 {
		return to.Sub(from)
	}
	return s.toCapture(to).Sub(s.toCapture(from))
}

// shift converts all instants of a trace to the time of the run.
func (s silences) shift(t *machine.Trace) {
	if len(s.list) == 0 {
		return
	}
	move := func(at *machine.Instant) {
		if *at != 0 { // 0 means none
			*at = s.toRun(*at)
		}
	}
	for i := range t.Sides {
		x := &t.Sides[i]
		for k := range x.Sent {
			d := &x.Sent[k]
			for _, at := range []*machine.Instant{&d.Left, &d.Arrives, &d.Duplicate} {
				move(at)
			}
		}
		for k := range x.Messages {
			m := &x.Messages[k]
			for _, at := range []*machine.Instant{&m.Asked, &m.First, &m.Settled, &m.At} {
				move(at)
			}
		}
	}
	move(&t.Start)
	move(&t.End)
}
