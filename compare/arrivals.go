package compare

import (
	"math"

	"github.com/ackscope/ackscope/figures"
)

// arrivals is the times from the first sending of a message to its arrival.
type arrivals struct {
	count  float64
	points [3]float64 // the quantiles
	draws  int        // that have any of the messages
	// late is the share of the messages that arrive after the end of each bucket, and spread
	// the standard error of that share.
	late, spread [figures.Buckets]float64
}

// quantiles are those of the time to arrival that are compared.
var quantiles = [3]float64{0.5, 0.95, 0.99}

// arrival returns the times to arrival.
func (s *sample) arrival(t target) *arrivals {
	if a := s.arrivals[t]; a != nil {
		return a
	}
	a := &arrivals{}
	s.arrivals[t] = a
	times := make([]figures.Times, len(s.units))
	all := make([]float64, figures.Buckets)
	for i := range s.units {
		for side, x := range s.units[i].ways {
			if t.way != bothWays && int(t.way) != side {
				continue
			}
			for name, k := range x.types {
				if t.kind == "" || t.kind == name {
					times[i].Join(&k.arrival)
				}
			}
		}
		times[i].Weigh(1, all)
		a.count += float64(times[i].Count())
	}
	for j, share := range quantiles {
		a.points[j] = figures.QuantileOf(all, share)
	}
	lateShares(all, a.late[:])
	late := make([]float64, figures.Buckets)
	for _, drawn := range s.drawn {
		clear(all)
		for i, n := range drawn {
			if n > 0 {
				times[i].Weigh(n, all)
			}
		}
		if lateShares(all, late) {
			a.draws++
			for i := range late {
				a.spread[i] += (late[i] - a.late[i]) * (late[i] - a.late[i])
			}
		}
	}
	for i := range a.spread {
		a.spread[i] = math.Sqrt(a.spread[i] / float64(max(1, a.draws-1)))
	}
	return a
}

// lateShares sets the share of the counts beyond each bucket. It returns false if there are
// none.
func lateShares(counts, late []float64) bool {
	total := 0.0
	for _, n := range counts {
		total += n
	}
	if total <= 0 {
		return false
	}
	left := total
	for i, n := range counts {
		left -= n
		late[i] = max(0, left) / total
	}
	return true
}

// after returns the share of the messages that take longer than a time in nanoseconds, and
// the standard error of that share.
func (a *arrivals) after(time float64) (share, deviation float64) {
	i, within := figures.BucketAt(time)
	shareBefore, spreadBefore := 1.0, 0.0
	if i > 0 {
		shareBefore, spreadBefore = a.late[i-1], a.spread[i-1]
	}
	return shareBefore + within*(a.late[i]-shareBefore), spreadBefore + within*(a.spread[i]-spreadBefore)
}

// quantile compares a quantile of the times to arrival.
//
// Where one message in twenty is sent again, the 95th percentile lies in a gap. The messages
// that came at once lie below it, and those that came later above. So the percentile jumps with
// the least change of the loss. So the test compares shares: how many messages took longer than the quantile before,
// and how many do after. Source: Woodruff 1952.
func (p *pair) quantile(f *figure, t target, d *Difference) *Difference {
	before, after, i := p.before.arrival(t), p.after.arrival(t), int(f.is-figures.Arrival50)
	d.Before, d.After, d.Least, d.Most = before.point(i), after.point(i), math.NaN(), math.NaN()
	if d.Change = d.After - d.Before; math.IsNaN(d.Change) {
		d.Why = "unknown"
		return d
	}
	late, spread := before.after(d.Before)
	if p.short || min(before.draws, after.draws) < draws*9/10 || spread == 0 {
		d.Why = "too little to tell"
		return d
	}
	// score compares two shares: of messages that take longer than a time now, and of those that
	// took longer than the quantile before. It returns their difference in standard errors, and
	// the degrees of freedom.
	score := func(of *arrivals, time float64) (z, freedom float64) {
		share, e := of.after(time)
		return (share - late) / math.Hypot(spread, e), p.freedom(spread, e)
	}
	least := func(of *arrivals, beyond func(z, freedom float64) bool) float64 {
		low, high := 0.0, float64(figures.LongestTime)
		for range 50 {
			if middle := (low + high) / 2; beyond(score(of, middle)) {
				high = middle
			} else {
				low = middle
			}
		}
		return high
	}
	// As time grows, fewer messages are later: first surely more than before, at last surely fewer.
	d.Least = least(after, func(z, freedom float64) bool { return !above(z, freedom, outside) }) - d.Before - p.fall
	d.Most = least(after, func(z, freedom float64) bool { return above(-z, freedom, outside) }) - d.Before + p.fall
	d.Least, d.Most = min(d.Least, d.Change), max(d.Most, d.Change)
	allowed := max(p.fall, f.least)
	z, freedom := score(after, d.Before+math.Copysign(allowed, d.Change))
	if math.Abs(d.Change) <= allowed || z*d.Change < 0 {
		d.Chance = 1
	} else {
		d.Chance = tail(math.Abs(z), freedom)
	}
	// Four of five changes of this size lie above the limit of the test: 0.84 standard errors.
	d.SeenFrom = allowed + d.Before - least(before, func(z, freedom float64) bool {
		return !above(z-0.84, freedom, alpha*f.weight/(2*shares))
	})
	return d
}

// above reports whether Student's t is so large that its chance is below a limit.
func above(t, freedom, chance float64) bool { return t > 0 && tail(t, freedom) <= chance }

// point returns a quantile, or NaN if there are no messages.
func (a *arrivals) point(i int) float64 {
	if a.count == 0 {
		return math.NaN()
	}
	return a.points[i]
}

// freedom returns the degrees of freedom of the difference of two figures, by their standard
// errors. Source: Welch and Satterthwaite.
func (p *pair) freedom(before, after float64) float64 {
	wide := math.Hypot(before, after)
	if wide == 0 {
		return min(p.before.blocks, p.after.blocks) - 1
	}
	return math.Pow(wide, 4) / (math.Pow(before, 4)/(p.before.blocks-1) + math.Pow(after, 4)/(p.after.blocks-1))
}
