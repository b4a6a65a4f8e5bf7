package whatif

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A game sends in its frames. The times between its packets are therefore
// multiples of its frame time, apart from what the network changes.
const (
	tickLeast = 4 * time.Millisecond
	tickMost  = 120 * time.Millisecond
	tickGaps  = 2000 // most gaps that are examined
	// tickShown is how well the gaps must fit: 1 is a perfect fit, 0 is chance.
	tickShown = 0.35
	tickAlike = 0.93
)

// tickOf returns the frame time of a side, from the times at which it sent. It
// returns 0 when the gaps show none.
//
// Gaps of 40 and 60 ms fit a frame time of 20 ms, but also one of 10 ms. tickOf
// returns the longest time that fits about as well as any. For a side that
// sends once a frame it returns the time between its packets.
func tickOf(sent []machine.Transit) time.Duration {
	var gaps []float64
	for i := 1; i < len(sent) && len(gaps) < tickGaps; i++ {
		if g := sent[i].Left.Sub(sent[i-1].Left); g >= tickLeast && g <= 4*tickMost {
			gaps = append(gaps, float64(g))
		}
	}
	if len(gaps) < 32 {
		return 0
	}
	fit := func(t float64) float64 {
		sum := 0.0
		for _, g := range gaps {
			sum += math.Cos(2 * math.Pi * g / t)
		}
		return sum / float64(len(gaps))
	}
	const step = 1.002
	best := 0.0
	for t := float64(tickLeast); t <= float64(tickMost); t *= step {
		best = max(best, fit(t))
	}
	if best < tickShown {
		return 0
	}
	// Search from above: take the first that fits about as well, up to its
	// peak.
	for t := float64(tickMost); t >= float64(tickLeast); t /= step {
		f := fit(t)
		if f < tickAlike*best {
			continue
		}
		for next := fit(t / step); next > f; next = fit(t / step) {
			t, f = t/step, next
		}
		return time.Duration(t)
	}
	return 0
}
