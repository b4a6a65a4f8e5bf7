package analyze

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// RoundTrip is the time from a packet to the first answer that names it. It includes the
// time until the peer sends its next header. Unknown times are negative.
type RoundTrip struct {
	Mean, Median, P95 time.Duration // Median and P95 are up to 19 % too high: see machine.Trips
	Jitter            time.Duration // mean difference of successive round trips
	Count             uint64        // the round trips that were measured; 0 if only Mean is known
	Side              machine.Side  // whose packets began them
	// Certainty is that of Mean. It is certain at a tap at Side. Away from both sides it is
	// likely: the sum of the way to each side and back. It is possible where the place of the
	// tap is unknown: the true round trip may then be longer.
	Certainty machine.Certainty
}

var unknownTrip = RoundTrip{Mean: -1, Median: -1, P95: -1, Jitter: -1}

// RoundTrip returns the round trip of the flow. A tap at a side measures the way to the peer
// and back. A tap on the way measures the way to each side and back, and the sum is the
// round trip.
func (f *Flow) RoundTrip() RoundTrip {
	sides, v, ok := f.results()
	if !ok {
		return unknownTrip
	}
	return roundTrip(sides, v)
}

func roundTrip(sides *[2]machine.Summary, v machine.Vantage) RoundTrip {
	a, b := seenTrip(sides, machine.A), seenTrip(sides, machine.B)
	switch {
	case v.Near(machine.A) && (a.Mean >= 0 || !v.Near(machine.B)):
		a.Certainty = sure(&a, machine.Certain)
		return a
	case v.Near(machine.B):
		b.Certainty = sure(&b, machine.Certain)
		return b
	case v == machine.VantageBetween:
		if a.Mean < 0 || b.Mean < 0 {
			return unknownTrip
		}
		a.Mean, a.Median, a.P95 = a.Mean+b.Mean, plus(a.Median, b.Median), plus(a.P95, b.P95)
		a.Jitter, a.Count = max(a.Jitter, b.Jitter), min(a.Count, b.Count)
		a.Certainty = machine.Likely
		return a
	}
	if b.Mean > a.Mean {
		a = b
	}
	a.Certainty = sure(&a, machine.Possible)
	return a
}

// seenTrip returns the times from the packets of a side to their answers, as both passed the tap.
func seenTrip(sides *[2]machine.Summary, s machine.Side) RoundTrip {
	sum := &sides[s]
	t := &sum.Trips
	if t.Count == 0 {
		r := unknownTrip
		r.Mean, r.Side = sum.WireRTT, s
		return r
	}
	return RoundTrip{
		Mean: t.Mean(), Median: t.Quantile(0.5), P95: t.Quantile(0.95), Jitter: t.Jitter(), Count: t.Count, Side: s,
	}
}

// tripOf returns the round trip of the packets of side s. It is unknown for the side away
// from a tap at its peer: the peer's answers only show how soon the peer answers.
func tripOf(sides *[2]machine.Summary, v machine.Vantage, s machine.Side) RoundTrip {
	switch {
	case v.Near(s):
		return seenTrip(sides, s)
	case v.Near(s.Other()):
		return unknownTrip
	}
	return roundTrip(sides, v)
}

func sure(r *RoundTrip, c machine.Certainty) machine.Certainty {
	if r.Mean < 0 {
		return machine.Unknown
	}
	return c
}

// plus adds two times. The sum is negative if one is unknown.
func plus(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}
