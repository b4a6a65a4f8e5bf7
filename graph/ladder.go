package graph

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Arrow is one packet of a ladder: when it left its side and when it came to
// the other. Only the instant at the tap is known; the other end is placed by
// half a round trip, so a slope is a picture, not a measurement.
type Arrow struct {
	Entry           int
	From            machine.Side
	Tap             machine.Instant
	Leaves, Arrives machine.Instant
	Fate            analyze.Fate
	Settled         int // entry that settled its fate; -1 while open
	Resend          bool
}

// Place puts an arrow where the tap's vantage and the way's length say.
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

// OneWay estimates the length of the way: half of what the wire shows, or of what
// the sides computed; false where nothing is known.
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
