package graph

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Arrow is one packet of a ladder: when it left its side and when it reached
// the other. Only the time at the tap is known. The other end is an estimate
// from half a round trip, so the slope of an arrow is not a measurement.
type Arrow struct {
	Entry           int
	From            machine.Side
	Tap             machine.Instant
	Leaves, Arrives machine.Instant
	Fate            analyze.Fate
	Settled         int // entry that settled its fate; -1 while open
	Resend          bool
}

// Place sets the ends of an arrow, from the tap's vantage and the one-way
// delay.
func Place(a *Arrow, v machine.Vantage, oneWay time.Duration) {
	switch {
	case v == machine.VantageBoth:
		a.Leaves, a.Arrives = a.Tap, a.Tap
	case v.Near(a.From):
		a.Leaves, a.Arrives = a.Tap, a.Tap.Add(oneWay)
	case v.Near(a.From.Other()):
		a.Leaves, a.Arrives = a.Tap.Add(-oneWay), a.Tap
	default:
		a.Leaves, a.Arrives = a.Tap.Add(-oneWay/2), a.Tap.Add(oneWay/2)
	}
}

// OneWay estimates the one-way delay: half of the round trip on the wire, or of
// the round trip that a side computed. It returns false if neither is known.
func OneWay(f *analyze.Flow) (time.Duration, bool) {
	for _, side := range []machine.Side{machine.A, machine.B} {
		s, ok := f.Summary(side)
		if ok && s.WireRTT > 0 && f.Facts().Vantage.Near(side) {
			return s.WireRTT / 2, true
		}
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		if s, ok := f.Summary(side); ok && s.RTT > 0 {
			return s.RTT / 2, true
		}
	}
	return 0, false
}
