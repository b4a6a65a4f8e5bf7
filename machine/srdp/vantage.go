package srdp

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
	samples int
	fastest [4]time.Duration // rising
	// deaf counts the copies that the side sent long after an acknowledgement had
	// passed the tap towards it: a sender at the tap would have read that.
	deaf int
	// shuffled counts the data that passed behind later ids of the side, or twice
	// within a moment: the network did that, so the side is not at the tap.
	shuffled int
}

func (r *reach) add(wait time.Duration) {
	i := min(r.samples, len(r.fastest))
	for ; i > 0 && r.fastest[i-1] > wait; i-- {
		if i < len(r.fastest) {
			r.fastest[i] = r.fastest[i-1]
		}
	}
	if i < len(r.fastest) {
		r.fastest[i] = wait
	}
	r.samples++
}

// least gives the least time to an answer; of many, not the very least, which
// can stem from a packet whose first copy the capture missed.
func (r *reach) least() time.Duration {
	return r.fastest[min(r.samples/256, len(r.fastest)-1, max(r.samples-1, 0))]
}

// Times by which the tap is placed.
const (
	quick = 1500 * time.Microsecond // an answer of a machine that is there
	tick  = 12 * time.Millisecond   // of an application
	frame = 34 * time.Millisecond   // of a slow one: who answers later is away
	// unread is how long an acknowledgement can lie in the socket of a sender at
	// the tap while its timers still run: a frame of the application, generously.
	unread = 60 * time.Millisecond
)

// judgeVantage tells where the tap stands, and whether more packets could hardly
// change that.
func judgeVantage(parties *[2]party) (v machine.Vantage, reason string, sure bool) {
	a, b := &parties[machine.A].reach, &parties[machine.B].reach
	at := func(s machine.Side) machine.Vantage { return machine.VantageA + machine.Vantage(s) }
	// Who sends again what was acknowledged is not at the tap, whatever its answers
	// say; nor is one whose data comes in disorder.
	deaf := func(s machine.Side) bool {
		p := &parties[s]
		return p.reach.deaf > 0 && uint64(p.reach.deaf)*200 >= p.acked || p.reach.shuffled > 1 && uint64(p.reach.shuffled)*100 >= p.copies
	}
	if a.samples == 0 && b.samples == 0 {
		return machine.VantageUnknown, "unknown: nothing is acknowledged", false
	}
	if a.samples == 0 || b.samples == 0 {
		only, side := a, machine.A
		if a.samples == 0 {
			only, side = b, machine.B
		}
		enough := only.samples >= 8
		switch {
		case only.least() < quick:
			return at(side), fmt.Sprintf("at %v: it acknowledges within %v", side, round(only.least())), enough
		case deaf(side.Other()) && only.least() < frame:
			return at(side), fmt.Sprintf("at %v: it acknowledges within %v, and to %v it is further", side, round(only.least()), side.Other()), enough
		case deaf(side.Other()):
			return machine.VantageBetween, fmt.Sprintf("between: %v acknowledges after %v at the least, and %v is not at the tap either", side, round(only.least()), side.Other()), enough
		case only.least() > frame:
			return at(side.Other()), fmt.Sprintf("at %v: %v acknowledges after %v at the least", side.Other(), side, round(only.least())), enough
		}
		return machine.VantageUnknown, fmt.Sprintf("unknown: only %v acknowledges, after %v", side, round(only.least())), false
	}
	near, ta, tb := machine.A, a.least(), b.least()
	if tb < ta {
		near, ta, tb = machine.B, tb, ta
	}
	enough := min(a.samples, b.samples) >= 8
	says := fmt.Sprintf("%v acknowledges within %v, %v after %v", near, round(ta), near.Other(), round(tb))
	switch {
	case deaf(machine.A) && deaf(machine.B):
		return machine.VantageBetween, "between: neither side is at the tap; " + says, enough
	case deaf(near):
		if tb > quick {
			return machine.VantageBetween, "between: " + near.String() + " is not at the tap either; " + says, enough
		}
		return at(near.Other()), fmt.Sprintf("at %v: %v is not at the tap; %s", near.Other(), near, says), enough
	case tb < quick:
		return machine.VantageBoth, "at both: " + says, enough
	case enough && ta > 3*tick:
		return machine.VantageBetween, "between: " + says, true
	case tb < tick && tb < 3*ta:
		return machine.VantageBoth, "at both, or so near that it makes no difference: " + says, false
	}
	return at(near), fmt.Sprintf("at %v: %s", near, says), enough && ta < quick && ta*4 < tb
}

func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	case d > 100*time.Microsecond:
		return d.Round(10 * time.Microsecond)
	}
	return d
}
