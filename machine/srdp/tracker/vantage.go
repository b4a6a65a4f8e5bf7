package tracker

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// reach measures how far a side is from the tap: the least time from data
// passing the tap towards it to its acknowledgement. A receiver acknowledges at
// once, so a side at the tap does within a tick of its application; a side that
// is away does after a round trip.
type reach struct {
	waits machine.Fastest // for acknowledgements
	// deaf counts the copies that the side sent long after an acknowledgement had
	// passed the tap towards it: a sender at the tap would have read that.
	deaf int
	// shuffled counts the data that passed behind later ids of the side, or twice
	// within a moment: the network did that, so the side is not at the tap.
	shuffled int
	// tick is the least time between two of its packets that are not of one burst:
	// an application that looks at its socket once a frame sends so too.
	tick time.Duration
}

// patient reports whether an answer is later than the side's application can be
// the reason of.
func (r *reach) patient() bool {
	return r.waits.Count() > 0 && r.waits.Least() > max(frame, r.tick+r.tick/8)
}

// Times by which the tap is placed.
const (
	quick = 1500 * time.Microsecond // an answer of a machine that is there
	tick  = 12 * time.Millisecond   // of an application
	frame = 34 * time.Millisecond   // of a slow one: who answers later is away
	// unread is how long an acknowledgement can lie in the socket of a sender at
	// the tap while its timers still run: a frame of the application, generously.
	unread = 60 * time.Millisecond
	// burst is the longest time between packets that are sent together.
	burst = 4 * time.Millisecond
)

// judgement is where the tap seems to stand, and by what.
type judgement struct {
	vantage machine.Vantage
	by      evidence
	side    machine.Side // whom the evidence is about
	times   [2]time.Duration
	sure    bool // more packets could hardly change it
	// proven is more than sure: a side answers so soon that it must be at the tap.
	// Else an application that looks at its socket once a frame may look as far
	// away as a side that is.
	proven bool
}

type evidence uint8

const (
	byNothing    evidence = iota // nothing is acknowledged
	byQuickness                  // side acknowledges at once
	byDisorder                   // side acknowledges soon, and the other one is not at the tap
	byNeither                    // neither is at the tap
	byDistance                   // side acknowledges late
	byOneAlone                   // only side acknowledges, and it does not show
	byComparison                 // side acknowledges sooner than the other
	byDenial                     // as it does, but it is not at the tap
	byNearness                   // both acknowledge alike
)

// judgeVantage tells where the tap stands.
func judgeVantage(parties *[2]party) (j judgement) {
	a, b := &parties[machine.A].reach, &parties[machine.B].reach
	at := func(s machine.Side) machine.Vantage { return machine.VantageA + machine.Vantage(s) }
	// Who sends again what was acknowledged is not at the tap, whatever its answers
	// say; nor is one whose data comes in disorder.
	away := func(s machine.Side) bool {
		p := &parties[s]
		return p.reach.deaf > 0 && uint64(p.reach.deaf)*200 >= p.data.acked || p.reach.shuffled > 1 &&
			uint64(p.reach.shuffled)*100 >= p.data.copies
	}
	if a.waits.Count() == 0 && b.waits.Count() == 0 {
		return j
	}
	if a.waits.Count() == 0 || b.waits.Count() == 0 {
		only := a
		if a.waits.Count() == 0 {
			only, j.side = b, machine.B
		}
		other := j.side.Other()
		j.times[j.side], j.sure = only.waits.Least(), only.waits.Count() >= 8
		switch {
		case only.waits.Least() < quick:
			j.vantage, j.by, j.proven = at(j.side), byQuickness, only.waits.Count() >= 4 && !away(j.side)
		case away(other) && !only.patient():
			j.vantage, j.by = at(j.side), byDisorder
		case away(other):
			j.vantage, j.by = machine.VantageBetween, byNeither
		case only.patient():
			j.vantage, j.by = at(other), byDistance
		default:
			j.by, j.sure = byOneAlone, false
		}
		return j
	}
	j.times = [2]time.Duration{a.waits.Least(), b.waits.Least()}
	if j.times[machine.B] < j.times[machine.A] {
		j.side = machine.B
	}
	soon, late := j.times[j.side], j.times[j.side.Other()]
	enough := min(a.waits.Count(), b.waits.Count()) >= 8
	j.vantage, j.by, j.sure = at(j.side), byComparison, enough
	switch {
	case away(machine.A) && away(machine.B), away(j.side) && late > quick, enough && parties[j.side].reach.patient():
		j.vantage, j.by = machine.VantageBetween, byNeither
	case away(j.side):
		j.vantage, j.by = at(j.side.Other()), byDenial
	case late < quick:
		j.vantage, j.by, j.proven = machine.VantageBoth, byNearness, enough
	case late < tick && late < 3*soon:
		j.vantage, j.by, j.sure = machine.VantageBoth, byNearness, false
	default:
		j.proven = enough && soon < quick
		j.sure = j.proven && soon*4 < late
	}
	return j
}

// String formats the judgement.
func (j judgement) String() string {
	other := j.side.Other()
	own, its := machine.Rounded(j.times[j.side]), machine.Rounded(j.times[other])
	where := "between"
	switch j.vantage {
	case machine.VantageUnknown:
		where = "unknown"
	case machine.VantageBoth:
		where = "at both, or so near that it makes no difference"
	case machine.VantageA, machine.VantageB:
		where = "at " + j.vantage.String()
	case machine.VantageBetween:
	}
	switch j.by {
	case byNothing:
		return where + ": nothing is acknowledged"
	case byQuickness:
		return fmt.Sprintf("%s: it acknowledges within %v", where, own)
	case byDisorder:
		return fmt.Sprintf("%s: it acknowledges within %v, and to %v it is further", where, own, other)
	case byDistance:
		return fmt.Sprintf("%s: %v acknowledges after %v at the least", where, j.side, own)
	case byOneAlone:
		return fmt.Sprintf("%s: only %v acknowledges, after %v", where, j.side, own)
	case byNeither:
		if its == 0 {
			return fmt.Sprintf("%s: %v acknowledges after %v at the least, and %v is not at the tap either", where,
				j.side, own, other)
		}
	case byDenial:
		return fmt.Sprintf("%s: %v is not at the tap, though it acknowledges within %v; %v does after %v", where, j.side,
			own, other, its)
	case byComparison, byNearness:
	}
	return fmt.Sprintf("%s: %v acknowledges within %v, %v after %v", where, j.side, own, other, its)
}
