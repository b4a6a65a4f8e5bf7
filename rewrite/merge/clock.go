package merge

import (
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Clock is how B's clock lies to A's:
//
//	time by B = time by A + Offset + Drift * (time by A - Reference)
//
// A packet takes time from tap to tap, so the least delay of one direction and
// that of the other hold the offset between them. Where in between it lies nothing
// in the captures tells: the middle is taken, as if the least delays were equal,
// and Within is the way to either bound. It is wrong only where a clock was set
// while the captures were taken.
type Clock struct {
	Known       bool            // packets of both directions were paired
	Reference   machine.Instant // by A's clock: when A's capture begins
	Offset      time.Duration   // at Reference
	Within      time.Duration   // the true offset in the middle of the captures is no further from what is told there
	Drift       float64         // seconds that B's clock gains in a second of A's; 0 where it cannot be told from that
	DriftWithin float64         // three standard errors; or, where Proved is set, as far as causality lets it be
	Proved      bool            // there were too few packets for an estimate of the error
	Matches     [2]int          // packets it was solved from: those that pass tap A first, and the others
}

// Matched is how many packets of each direction make the drift an estimate; with
// fewer it is known only between the bounds that causality sets.
const Matched = 200

// byA returns what A's clock showed when B's showed t.
func (c *Clock) byA(t machine.Instant) machine.Instant {
	since := float64(t.Sub(c.Reference) - c.Offset)
	return c.Reference.Add(time.Duration(math.Round(since / (1 + c.Drift))))
}

// of gives, by A's clock, what a tap's clock showed.
func (c *Clock) of(tap int, t machine.Instant) machine.Instant {
	if tap == 0 {
		return t
	}
	return c.byA(t)
}

// At returns the offset at a time of A's clock.
func (c *Clock) At(t machine.Instant) time.Duration {
	return c.Offset + time.Duration(c.Drift*float64(t.Sub(c.Reference)))
}

// sample is one packet that both taps saw: x is the time by A's clock, y how much
// later B's clock showed it; both in seconds.
type sample struct{ x, y float64 }

// envelope is the samples of one direction of one flow: all of them lie above its
// line (B is downstream) or all below (A is). Only the corners of the hull matter.
type envelope struct {
	hull  []sample
	count float64
	sum   sample
	below bool
}

func newEnvelope(samples []sample, below bool) envelope {
	e := envelope{below: below, count: float64(len(samples))}
	for _, s := range samples {
		e.sum.x += s.x
		e.sum.y += s.y
		if below {
			s.y = -s.y
		}
		for n := len(e.hull); n >= 2; n-- {
			p, q := e.hull[n-2], e.hull[n-1]
			if (q.x-p.x)*(s.y-p.y) > (s.x-p.x)*(q.y-p.y) {
				break
			}
			e.hull = e.hull[:n-1]
		}
		e.hull = append(e.hull, s)
	}
	return e
}

// intercept returns where the line of a slope that touches all samples meets x = 0.
func (e *envelope) intercept(slope float64) float64 {
	sign := 1.0
	if e.below {
		sign = -1
	}
	least := math.Inf(1)
	for _, s := range e.hull {
		least = min(least, s.y-sign*slope*s.x)
	}
	return sign * least
}

// away returns how far the samples lie from that line, together.
func (e *envelope) away(slope float64) float64 {
	return math.Abs(e.sum.y - slope*e.sum.x - e.count*e.intercept(slope))
}

// mostDrift bounds the drift that is looked for: a clock that gains or loses more
// than 5 % is none.
const mostDrift = 0.05

// fit returns the slope under which the samples lie nearest to their lines. What is
// minimised is convex in the slope.
func fit(list []envelope) float64 {
	cost := func(slope float64) (sum float64) {
		for i := range list {
			sum += list[i].away(slope)
		}
		return sum
	}
	low, high := -mostDrift, mostDrift
	const golden = 0.6180339887498949
	p, q := high-golden*(high-low), low+golden*(high-low)
	cp, cq := cost(p), cost(q)
	for range 90 {
		if cp <= cq {
			high, q, cq = q, p, cp
			p = high - golden*(high-low)
			cp = cost(p)
		} else {
			low, p, cp = p, q, cq
			q = low + golden*(high-low)
			cq = cost(q)
		}
	}
	return (low + high) / 2
}

// bounds returns between which values the line of every "above" and that of every
// "below" leave the offset: causality allows nothing else.
func bounds(list []envelope, slope float64) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for i := range list {
		if at := list[i].intercept(slope); list[i].below {
			low = max(low, at)
		} else {
			high = min(high, at)
		}
	}
	return low, high
}

// allowed returns which slopes causality allows, around one that it does.
func allowed(list []envelope, slope float64) (low, high float64) {
	ok := func(slope float64) bool {
		l, h := bounds(list, slope)
		return l <= h
	}
	edge := func(to float64) float64 {
		if ok(to) {
			return to
		}
		in := slope
		for range 60 {
			if mid := (in + to) / 2; ok(mid) {
				in = mid
			} else {
				to = mid
			}
		}
		return to
	}
	return edge(-mostDrift), edge(mostDrift)
}

// plausible leaves out samples that lie far from those around them: a content that
// came again much later, of which either tap saw another copy. Left out by mistake
// is at most what was held back on its way, and the envelope does not need that.
func plausible(samples []sample) []sample {
	const stride = 25
	kept := make([]sample, 0, len(samples))
	var window []float64
	for i := 0; i < len(samples); i += stride {
		end := min(len(samples), i+stride)
		window = window[:0]
		for _, s := range samples[max(0, i-stride):min(len(samples), end+stride)] {
			window = append(window, s.y)
		}
		slices.Sort(window)
		middle := window[len(window)/2]
		for k, y := range window {
			window[k] = math.Abs(y - middle)
		}
		slices.Sort(window)
		most := max(1, 20*window[len(window)/2])
		for _, s := range samples[i:end] {
			if math.Abs(s.y-middle) <= most {
				kept = append(kept, s)
			}
		}
	}
	return kept
}

// solve finds B's clock from the pairs, and which tap each side's packets pass first.
func (m *Merged) solve() {
	begin, _ := m.Taps[0].Session.Span()
	c := &m.Clock
	c.Reference = begin
	var base time.Duration // of all samples, so that what is left is small
	based := false
	var ways [][2][]sample
	for _, p := range m.Pairs {
		var w [2][]sample
		for side := range w {
			a, b := p.passed(0, machine.Side(side)), p.passed(1, machine.Side(side))
			for _, s := range p.singles(machine.Side(side)) {
				at := a[s[0]].at
				later := b[s[1]].at.Sub(at)
				if !based {
					base, based = later, true
				}
				w[side] = append(w[side], sample{x: at.Sub(begin).Seconds(), y: (later - base).Seconds()})
			}
			slices.SortFunc(w[side], func(p, q sample) int {
				switch {
				case p.x < q.x:
					return -1
				case p.x > q.x:
					return 1
				default:
					return 0
				}
			})
			w[side] = plausible(w[side])
		}
		ways = append(ways, w)
	}
	for i, p := range m.Pairs {
		p.orient(&ways[i])
	}
	m.orientRest()

	envelopes := func(leave, of int) (list []envelope) {
		for i, p := range m.Pairs {
			for side, samples := range ways[i] {
				if of > 0 {
					samples = without(samples, leave, of)
				}
				if len(samples) > 0 {
					list = append(list, newEnvelope(samples, p.First[side] == 1))
				}
			}
		}
		return list
	}
	all := envelopes(0, 0)
	span := 0.0
	for i, p := range m.Pairs {
		for side, samples := range ways[i] {
			c.Matches[p.First[side]] += len(samples)
			if n := len(samples); n > 0 {
				span = max(span, samples[n-1].x)
			}
		}
	}
	c.Known = c.Matches[0] > 0 && c.Matches[1] > 0
	least := min(c.Matches[0], c.Matches[1])
	if !c.Known {
		least = max(c.Matches[0], c.Matches[1])
	}
	const few, short = 16, 1.0
	slope, error3 := 0.0, math.Inf(1)
	if least >= few && span >= short {
		slope = fit(all)
		error3 = jackknife(envelopes, slope)
	}
	low, high := allowed(all, slope)
	if math.Abs(slope) <= error3 && low <= 0 && high >= 0 {
		slope = 0 // the captures do not tell it from none
	}
	c.Proved = least < Matched
	c.Drift, c.DriftWithin = slope, max(high-slope, slope-low)
	if !c.Proved && error3 < c.DriftWithin {
		c.DriftWithin = error3
		low, high = max(low, slope-error3), min(high, slope+error3)
	}
	below, above := bounds(all, slope)
	switch {
	case !math.IsInf(below, 0) && !math.IsInf(above, 0):
		c.Offset = base + seconds((below+above)/2)
		c.Within = seconds(within(all, (below+above)/2+slope*span/2, low, high, span/2))
	case math.IsInf(below, 0):
		c.Offset = base + seconds(above)
	default:
		c.Offset = base + seconds(below)
	}
}

// within returns how far the true offset at x can be from the one told there, under
// any slope from low to high.
func within(list []envelope, told, low, high, x float64) (most float64) {
	const steps = 32
	for i := range steps + 1 {
		slope := low + (high-low)*float64(i)/steps
		below, above := bounds(list, slope)
		most = max(most, math.Abs(below+slope*x-told), math.Abs(above+slope*x-told))
	}
	return most
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// parts is into how many parts the samples are split to see how much the slope
// hangs on any of them.
const parts = 10

// jackknife returns three standard errors of the slope, from how much it changes when
// parts of the samples are left out.
func jackknife(envelopes func(leave, of int) []envelope, slope float64) float64 {
	sum := 0.0
	for i := range parts {
		d := fit(envelopes(i, parts)) - slope
		sum += d * d
	}
	return 3 * math.Sqrt(sum*(parts-1)/parts)
}

// without leaves every of-th sample out.
func without(samples []sample, leave, of int) []sample {
	kept := make([]sample, 0, len(samples))
	for i, s := range samples {
		if i%of != leave {
			kept = append(kept, s)
		}
	}
	return kept
}

// orient finds which tap the packets of each side pass first, from the two
// directions of the flow alone: whatever the clocks show, packets that go from A to
// B come later by B's than those that go from B to A, and never the other way round.
func (p *Pair) orient(ways *[2][]sample) {
	if len(ways[0]) == 0 || len(ways[1]) == 0 {
		return
	}
	var gap [2]float64
	for first := range gap { // the tap that packets of side A pass first
		list := []envelope{newEnvelope(ways[0], first == 1), newEnvelope(ways[1], first == 0)}
		slope := 0.0
		if len(ways[0])+len(ways[1]) >= 16 {
			slope = fit(list)
		}
		low, high := bounds(list, slope)
		gap[first] = high - low
	}
	p.FirstKnown = machine.Likely
	if gap[0] >= gap[1] {
		p.First = [2]int{0, 1}
	} else {
		p.First = [2]int{1, 0}
	}
	if max(gap[0], gap[1]) > 0 && min(gap[0], gap[1]) < 0 {
		p.FirstKnown = machine.Certain
	}
}

// orientRest settles the flows that went one way only: by the hops that packets had
// left, and else as most of the others.
func (m *Merged) orientRest() {
	votes := 0
	for _, p := range m.Pairs {
		if p.FirstKnown > machine.Unknown {
			votes += 1 - 2*p.First[0]
		}
	}
	for _, p := range m.Pairs {
		if p.FirstKnown > machine.Unknown {
			continue
		}
		side := machine.A
		if p.common[machine.B] > 0 {
			side = machine.B
		}
		a, b := p.Flows[0].hops[p.sideAt(0, side)], p.Flows[1].hops[p.sideAt(1, side)]
		first := 0
		switch {
		case a != b && a > 0 && b > 0:
			p.FirstKnown = machine.Likely
			if a < b {
				first = 1
			}
		default:
			p.FirstKnown = machine.Possible
			if votes < 0 != (side == machine.B) {
				first = 1
			}
		}
		p.First[side], p.First[side.Other()] = first, 1-first
	}
}
