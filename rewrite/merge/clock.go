package merge

import (
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Clock relates B's clock to A's:
//
//	time by B = time by A + Offset + Drift * (time by A - Reference)
//
// A packet takes time from tap to tap. So the smallest delay of each direction
// is a bound for the offset. Nothing in the captures shows where between the
// two bounds the offset is. Offset is the middle, as if the smallest delays
// were equal, and Within is the distance to either bound. The result is wrong
// only if a clock was set during the captures.
type Clock struct {
	Known       bool            // packets of both directions were paired
	Reference   machine.Instant // by A's clock: the start of A's capture
	Offset      time.Duration   // at Reference
	Within      time.Duration   // the largest error of the offset in the middle of the captures
	Drift       float64         // seconds that B's clock gains per second of A's; 0 if the captures do not show one
	DriftWithin float64         // three standard errors; or, if Proved is set, the range that causality allows
	Proved      bool            // there were too few packets to estimate the error
	Matches     [2]int          // packets that it was computed from: those that pass tap A first, and the others
}

// Matched is how many packets of each direction are needed to estimate the
// drift. With fewer, it is known only within the bounds that causality sets.
const Matched = 200

// byA converts a time of B's clock to A's clock.
func (c *Clock) byA(t machine.Instant) machine.Instant {
	since := float64(t.Sub(c.Reference) - c.Offset)
	return c.Reference.Add(time.Duration(math.Round(since / (1 + c.Drift))))
}

// of converts a time of a tap's clock to A's clock.
func (c *Clock) of(tap int, t machine.Instant) machine.Instant {
	if tap == 0 {
		return t
	}
	return c.byA(t)
}

// sample is one packet that both taps saw. The field x is its time by A's
// clock, and y is by how much B's clock was later, both in seconds.
type sample struct{ x, y float64 }

// envelope is the samples of one direction of one flow. All of them lie above
// its line (B is downstream), or all below it (A is downstream). Only the
// corners of the convex hull matter.
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

// intercept returns the value at x = 0 of the line with the given slope that
// touches the samples.
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

// away returns the sum of the distances of the samples from that line.
func (e *envelope) away(slope float64) float64 {
	return math.Abs(e.sum.y - slope*e.sum.x - e.count*e.intercept(slope))
}

// mostDrift bounds the drift. A clock that gains or loses more than 5 % is
// broken.
const mostDrift = 0.05

// fit returns the slope for which the samples are nearest to their lines. The
// sum of the distances is convex in the slope.
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

// bounds returns the range of the offset that causality allows: above every
// line with B upstream, and below every line with B downstream.
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

// allowed returns the range of slopes that causality allows. slope must be
// inside it.
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

// plausible drops samples that are far from their neighbours: contents that
// were repeated much later, of which each tap saw a different copy. At worst it
// drops packets that were delayed on the way, which the envelope does not need.
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

// solve computes B's clock from the pairs, and which tap each side's packets
// pass first.
func (m *Merged) solve() {
	begin, _ := m.Taps[0].Session.Span()
	c := &m.Clock
	c.Reference = begin
	var base time.Duration // of all samples, so that the rest is small
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
		slope = 0 // the captures do not distinguish it from 0
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

// within returns how far the true offset at x can be from told, for any slope
// from low to high.
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

// parts is how many parts the samples are divided into, to measure how much the
// slope depends on each part.
const parts = 10

// jackknife returns three standard errors of the slope, from how much it
// changes when parts of the samples are omitted.
func jackknife(envelopes func(leave, of int) []envelope, slope float64) float64 {
	sum := 0.0
	for i := range parts {
		d := fit(envelopes(i, parts)) - slope
		sum += d * d
	}
	return 3 * math.Sqrt(sum*(parts-1)/parts)
}

// without omits every of-th sample.
func without(samples []sample, leave, of int) []sample {
	kept := make([]sample, 0, len(samples))
	for i, s := range samples {
		if i%of != leave {
			kept = append(kept, s)
		}
	}
	return kept
}

// orient determines which tap the packets of each side pass first, from the two
// directions of the flow alone. Whatever the clocks show, packets from A to B
// come later by B's clock than packets from B to A. The other way round is
// impossible.
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

// orientRest decides for flows that went one way only: by the remaining hops of
// their packets, or otherwise like most of the other flows.
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
