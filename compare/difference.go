package compare

import (
	"math"
	"strings"

	"github.com/ackscope/ackscope/figures"
)

// Difference is one figure before and after.
type Difference struct {
	Protocol string
	Way      string // "A→B", "B→A" or "both ways"; A is the client, where the captures show it
	Type     string // of messages; empty for all
	Figure   figures.Figure
	Round    bool // a loss covers the way there and back

	Before, After float64 // NaN if unknown
	Change        float64
	Least, Most   float64 // the 95 % interval of Change
	Chance        float64 // that chance alone shows such a change; NaN if it cannot be told
	SeenFrom      float64 // a change of this size would have been found in four of five pairs; NaN as above
	Real          bool
	Why           string // why the change cannot be told; empty if it can

	way    way
	weight float64
}

// Worse reports whether a real difference is for the worse.
func (d *Difference) Worse() bool { return d.Real && d.Change > 0 && d.Figure != figures.Bandwidth }

// Better reports whether a real difference is for the better.
func (d *Difference) Better() bool { return d.Real && d.Change < 0 && d.Figure != figures.Bandwidth }

// outside is the chance that a true change lies outside of its interval.
// Source: definition, five of a hundred: a 95 % interval
const outside = 0.05

// values returns a ratio of one sample. fewer and further are the factors of resends.
func (s *sample) values(f *figure, t target, fewer, further float64) (point float64, drawn []float64) {
	ratio := f.ratio
	if fewer+further > 0 {
		ratio = resends(fewer, further)
	}
	return s.ratio(t.way, func(x *sideSlice, seconds float64) (float64, float64) { return ratio(x, t.kind, seconds) })
}

// difference compares one figure.
func (p *pair) difference(f *figure, t target) *Difference {
	d := &Difference{
		Protocol: p.protocol, Way: t.way.String(), Type: t.kind, Figure: f.is, way: t.way,
		Chance: math.NaN(), SeenFrom: math.NaN(),
	}
	if f.is == figures.Loss {
		own := *f
		kind, ok := p.lossOf(t.way)
		if own.ratio, d.Round = loss(kind), kind == lossRound; !ok {
			d.Before, d.After, d.Change, d.Least, d.Most = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
			d.Why = "counted in two ways"
			return d
		}
		f = &own
	}
	switch {
	case f.longest != nil:
		return p.longest(f, d)
	case f.ratio == nil:
		return p.quantile(f, t, d)
	}
	var befores, afters []float64
	d.Before, befores = p.before.values(f, t, 0, 0)
	d.After, afters = p.after.values(f, t, 0, 0)
	d.Change = d.After - d.Before
	d.Least, d.Most = math.NaN(), math.NaN()
	if math.IsNaN(d.Change) {
		d.Why = "unknown"
		return d
	}
	if p.short || len(befores) < draws*9/10 || len(afters) < draws*9/10 {
		d.Why = "too little to tell"
		return d
	}
	allowed := 0.0
	switch {
	case p.fall > 0 && f.timed:
		allowed = p.fall
	case p.fall > 0 && f.is == figures.Resends:
		// The part of the change that frames do not explain.
		up, down := 0.0, p.share
		if d.Change < 0 {
			up, down = p.share, 0
		}
		var before, after float64
		before, befores = p.before.values(f, t, up, down)
		after, afters = p.after.values(f, t, down, up)
		rest := after - before
		if rest*d.Change < 0 {
			rest = 0
		}
		allowed = math.Abs(d.Change - rest)
	}
	b, nb := spread(befores)
	a, na := spread(afters)
	if nb == 0 || na == 0 {
		d.Why = "too little to tell"
		return d
	}
	wide := math.Hypot(a, b)
	freedom := p.freedom(b, a)
	beyond := math.Abs(d.Change) - allowed
	switch {
	case beyond <= 0 || math.Abs(d.Change) < f.least || f.is == figures.Bandwidth && math.Abs(d.Change) < 0.02*d.Before:
		d.Chance = 1
	case wide == 0:
		d.Chance = 0
	default:
		d.Chance = tail(beyond/wide, freedom)
	}
	reach := quantileOfT(outside, freedom)*wide + allowed
	d.Least, d.Most = d.Change-reach, d.Change+reach
	// Four of five such changes lie above the limit of the test: 0.84 standard errors.
	d.SeenFrom = max(f.least, allowed+(quantileOfT(alpha*f.weight/(2*shares), freedom)+0.84)*wide)
	return d
}

// longest completes a difference of the longest times.
func (p *pair) longest(f *figure, d *Difference) *Difference {
	point := func(s *sample) float64 {
		if x := f.longest(&s.longest[d.way]); x >= 0 {
			return float64(x)
		}
		return math.NaN()
	}
	d.Before, d.After, d.Least, d.Most = point(p.before), point(p.after), math.NaN(), math.NaN()
	if d.Change = d.After - d.Before; math.IsNaN(d.Change) {
		d.Why = "unknown"
	} else {
		d.Why = "one time only"
	}
	return d
}

// shares is the sum of the weights of all figures.
var shares = func() (sum float64) {
	for i := range compared {
		sum += compared[i].weight
	}
	return sum
}()

// Sentence tells a difference in one sentence, without its protocol and the period.
func (d *Difference) Sentence() string {
	more, unit := d.Change > 0, d.Figure.Spec().Unit
	choose := func(yes, no string) string {
		if more {
			return yes
		}
		return no
	}
	of := ""
	if d.Type != "" {
		of = " of " + d.Type
	}
	var text string
	switch d.Figure {
	case figures.Loss:
		text = choose("more", "fewer") + " packets are lost:"
		if d.Round {
			text = choose("more", "fewer") + " packets or their answers are lost:"
		}
	case figures.RTT:
		text = "round trips take " + choose("longer", "less long") + ": mean"
	case figures.Jitter:
		text = "round trips vary " + choose("more", "less") + " from one to the next:"
	case figures.Resends:
		text = choose("more", "fewer") + " messages" + of + " are sent again:"
	case figures.Bandwidth:
		text = choose("more", "fewer") + " bytes are sent:"
	default:
		text = "messages" + of + " arrive " + choose("later", "sooner") + ": " +
			strings.TrimPrefix(d.Figure.String(), "arrival.")
	}
	return d.Way + ": " + text + " " + unit.Range(d.Before, d.After) + " (" + unit.Change(d.Change) +
		", 95% interval " + d.Interval() + ")"
}

// Interval formats the bounds of the change: "+19 to +36 ms".
func (d *Difference) Interval() string {
	if math.IsNaN(d.Least) {
		return "?"
	}
	return d.Figure.Spec().Unit.Bounds(d.Least, d.Most)
}
