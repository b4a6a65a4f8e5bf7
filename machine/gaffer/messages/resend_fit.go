package messages

import (
	"cmp"
	"math"
	"slices"
	"time"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// span is a range of values; from ≤ to.
type span struct{ from, to float64 }

// weighed is what one repeat allows. The n-th repeat of a message weighs 1/n: a message
// that goes out too often does not outweigh the others.
type weighed struct {
	span

	weight float64
	later  bool // it is not the message's first repeat
}

// densest returns the values that nearly as many repeats allow as the best value: a share
// of spread at least. It also
// returns by which share of the weight the best value is allowed, and how many repeats
// allow it.
func densest(spans []weighed, spread float64) (at span, share float64, agree int) {
	type end struct{ at, step float64 }
	ends := make([]end, 0, 2*len(spans))
	all := 0.
	for _, s := range spans {
		ends = append(ends, end{s.from, s.weight}, end{s.to, -s.weight})
		all += s.weight
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.step, a.step)) })
	n, most, best := 0., 0., 0.
	for _, e := range ends {
		if n += e.step; n > most {
			most, best = n, e.at
		}
	}
	n, at = 0, span{math.Inf(1), math.Inf(-1)}
	for i, e := range ends {
		if n += e.step; n >= spread*most && i+1 < len(ends) {
			at = span{min(at.from, e.at), max(at.to, ends[i+1].at)}
		}
	}
	for _, s := range spans {
		if s.from <= best && best <= s.to {
			agree++
		}
	}
	if all > 0 {
		share = most / all
	}
	return at, share, agree
}

// roundTime returns the roundest time within a range: the article's if it is in it. If
// the range is empty, it takes the wider one.
func roundTime(at, wider span) time.Duration {
	if at.from >= at.to {
		at = wider
	}
	if usual := float64(wire.ResendUsual); at.from < usual && usual <= at.to {
		return wire.ResendUsual
	}
	unit := float64(time.Millisecond)
	steps := []float64{1000, 500, 200, 100, 50, 25, 10, 5, 2, 1, 0.5, 0.1}
	return time.Duration(round(span{at.from / unit, at.to / unit}, steps...) * unit)
}

// roundTimes returns the roundest factor within a range.
func roundTimes(at span) float64 { return round(at, 1, 0.5, 0.25, 0.1, 0.05, 0.01) }

// roundGrowth returns the usual growth factor of a back-off if it is within a range, and
// else the roundest one.
func roundGrowth(at span) float64 {
	if at.from <= 2 && 2 <= at.to {
		return 2
	}
	return roundTimes(at)
}

// round returns the largest multiple of a step that lies within a range, above its lower
// end. It takes the first step that has one.
func round(at span, steps ...float64) float64 {
	for _, step := range steps {
		v := math.Floor(at.to/step+1e-9) * step
		if v = math.Round(v*1e6) / 1e6; v > at.from && v > 0 {
			return v
		}
	}
	return math.Round(at.to*1e6) / 1e6
}
