package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

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

// Result is what a comparison found.
type Result struct {
	Before, After *Capture
	Table         []*Difference // of all messages of a way
	Real          []*Difference // to be told in a sentence each
	Findings      []*Finding
	Notes         []string // what the reader should know about the comparison
	Compared      int      // figures and rules

	tests []*Difference // of Table, and of types of messages
}

// alpha is the chance that captures without a difference report one. It is less than the
// five of a hundred that docs/compare.md promises, since chance is only estimated.
// Source: definition, three of a hundred
const alpha = 0.03

// outside is the chance that a true change lies outside of its interval.
// Source: definition, five of a hundred: a 95 % interval
const outside = 0.05

// figure says how a figure is compared.
type figure struct {
	is     figures.Figure
	weight float64 // its share of alpha
	least  float64 // smaller changes do not matter
	timed  bool    // how frames fall on each other changes it
	pooled bool    // it has a meaning for both ways together
	typed  bool    // and for a type of messages
	ratio  func(x *sideSlice, kind string, seconds float64) (number, per float64)
}

const millisecond = 1e6

// compared lists the figures. Resends have the largest share of alpha, as their differences
// are the hardest to tell from chance.
var compared = []figure{
	{
		is: figures.Loss, weight: 1, least: 0.002,
		ratio: loss(lossOneWay),
	},
	{
		is: figures.RTT, weight: 0.5, least: millisecond, timed: true,
		ratio: func(x *sideSlice, _ string, _ float64) (float64, float64) {
			return float64(x.tripSum), float64(x.trips)
		},
	},
	{
		is: figures.Jitter, weight: 0.25, least: millisecond, timed: true,
		ratio: func(x *sideSlice, _ string, _ float64) (float64, float64) {
			return float64(x.changes), float64(x.trips)
		},
	},
	{is: figures.Resends, weight: 2, least: 0.001, pooled: true, typed: true, ratio: resends(0, 0)},
	{is: figures.Arrival50, weight: 0.25, least: millisecond, timed: true, typed: true},
	{is: figures.Arrival95, weight: 0.5, least: millisecond, timed: true, typed: true},
	{is: figures.Arrival99, weight: 0.25, least: millisecond, timed: true, typed: true},
	{
		is: figures.Bandwidth, weight: 0.25, least: 20,
		ratio: func(x *sideSlice, _ string, seconds float64) (float64, float64) { return float64(x.bytes), seconds },
	},
}

// loss returns the ratio of lost packets, by how they are counted.
func loss(kind int) func(x *sideSlice, _ string, _ float64) (number, per float64) {
	return func(x *sideSlice, _ string, _ float64) (number, per float64) {
		lost := float64(x.lost[kind])
		if kind == lossBounded {
			lost += float64(x.open) / 2
		}
		return lost, float64(x.settled[kind])
	}
}

// resends returns the ratio of resends. The factors subtract resends that other frames would
// have spared, and add those that they would have caused.
func resends(fewer, further float64) func(x *sideSlice, kind string, _ float64) (number, per float64) {
	return func(x *sideSlice, kind string, _ float64) (number, per float64) {
		for name, t := range x.types {
			if kind == "" || kind == name {
				number += float64(t.resends) - fewer*float64(t.fewer) + further*float64(t.further)
				per += float64(t.messages)
			}
		}
		return number, per
	}
}

// pair is the samples of a protocol.
type pair struct {
	protocol      string
	before, after *sample
	short         bool // there is too little to estimate chance
	// How frames fall on each other changes times by so many nanoseconds from run to run, and
	// such a share of the resends that come within a frame. Both are 0 where flows are many.
	fall, share float64
}

// Compare compares two sets of captures.
func Compare(before, after *Capture) *Result {
	r := &Result{Before: before, After: after}
	var pairs []*pair
	for i, name := range protocolsOf(before, after) {
		pairs = append(pairs, r.pair(name, before, after, uint64(i)))
	}
	for _, p := range pairs {
		for i := range compared {
			r.tests = append(r.tests, p.tests(&compared[i])...)
		}
		r.Findings = append(r.Findings, p.findings()...)
	}
	r.decide()
	for _, d := range r.tests {
		if d.Type == "" && (!math.IsNaN(d.Before) || !math.IsNaN(d.After)) {
			r.Table = append(r.Table, d)
		}
	}
	for _, p := range pairs {
		r.tell(p)
	}
	return r
}

// typesTested is how many types of a way are compared for themselves, the most frequent ones.
// Source: definition, a type takes its share of alpha from the others
const typesTested = 8

// tests returns the comparisons of a figure: each way, and for some figures both ways
// together, and types of messages. They share the weight of the figure.
func (p *pair) tests(f *figure) (list []*Difference) {
	weights := [...]float64{toServer: 0.5, toClient: 0.5}
	if f.pooled {
		weights = [...]float64{toServer: 0.25, toClient: 0.25}
		d := p.difference(f, target{way: bothWays})
		d.weight = f.weight * 0.5
		list = append(list, d)
	}
	for w, weight := range weights {
		d := p.difference(f, target{way: way(w)})
		d.weight = f.weight * weight
		kinds := p.kinds(way(w))
		if f.is == figures.Arrival95 && len(kinds) > 1 {
			d.weight /= 2
			for _, kind := range kinds[:min(len(kinds), typesTested)] {
				x := p.difference(f, target{way(w), kind})
				x.weight = d.weight / float64(min(len(kinds), typesTested))
				list = append(list, x)
			}
		}
		list = append(list, d)
	}
	return list
}

// kinds returns the types of messages that a way has before and after, the most frequent
// first.
func (p *pair) kinds(w way) []string {
	before, after := p.before.kinds(w), p.after.kinds(w)
	var names []string
	for name := range before {
		if after[name] > 0 && name != furtherTypes {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(before[y]+after[y], before[x]+after[x]), cmp.Compare(x, y))
	})
	return names
}

// protocolsOf returns the protocols of both captures, in order.
func protocolsOf(captures ...*Capture) (names []string) {
	for _, c := range captures {
		for _, f := range c.flows {
			if !slices.Contains(names, f.protocol) {
				names = append(names, f.protocol)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (r *Result) pair(name string, before, after *Capture, seed uint64) *pair {
	ports, flows := map[uint16]int{}, [2]int{}
	for i, c := range []*Capture{before, after} {
		for _, f := range c.flows {
			if f.protocol == name {
				ports[f.ports[0]]++
				ports[f.ports[1]]++
				flows[i]++
			}
		}
	}
	many := min(flows[0], flows[1]) >= manyFlows
	p := &pair{protocol: name, before: before.sampleOf(name, many, ports, seed), after: after.sampleOf(name, many, ports,
		seed+1<<32)}
	if !many {
		var ends [2][]*steps
		for end := range ends {
			ends[end] = slices.Concat(p.before.steps[end], p.after.steps[end])
		}
		p.fall, p.share = fall(ends)
		p.fall *= float64(time.Second)
	}
	p.short = min(p.before.blocks, p.after.blocks) < blocksLeast
	switch {
	case flows[0] == 0 || flows[1] == 0:
		r.Notes = append(r.Notes, name+" is in one of the two only: it cannot be compared.")
	case p.short:
		r.Notes = append(r.Notes, name+" is there for too short a time to tell a difference from chance: "+
			"expected at least 12 seconds on each side, or 10 flows.")
	case p.fall > 0:
		r.Notes = append(r.Notes, "How the frames of both ends of "+name+" fall on each other differs from run to run. So "+
			"times that differ by less than "+figures.Time.Format(p.fall)+" are not called different. Ten flows or more on "+
			"each side show smaller differences.")
	}
	return p
}

// lossOf chooses how the losses of a way are counted: by their bounds where these are near
// each other, else by the packets of known fate. It returns false if those are of one way
// before, and of the way there and back after, or the other way round.
func (p *pair) lossOf(w way) (kind int, ok bool) {
	var kinds [2]int
	told := true
	for i, s := range []*sample{p.before, p.after} {
		settled, open := [lossKinds]int64{}, int64(0)
		for j := range s.units {
			x := s.units[j].ways[w]
			for k, n := range x.settled {
				settled[k] += n
			}
			open += x.open
		}
		if kinds[i] = lossOneWay; settled[lossRound] > settled[lossOneWay] {
			kinds[i] = lossRound
		}
		told = told && settled[lossBounded] >= settledFew && float64(open) <= toldWithin*float64(settled[lossBounded])
	}
	if told {
		return lossBounded, true
	}
	return kinds[0], kinds[0] == kinds[1]
}

// toldWithin is how far apart the bounds of a loss may be to count it by them.
// Source: definition, as of package analyze: a tap tells a loss to one point
const toldWithin = 0.01

// settledFew is how many packets of known fate show a loss.
// Source: definition, the fewest packets of known fate that a loss is compared over
const settledFew = 200

// values returns a figure of one sample. fewer and further are the factors of resends.
func (s *sample) values(f *figure, t target, fewer, further float64) (point float64, drawn []float64) {
	if f.ratio == nil {
		a, i := s.arrival(t), int(f.is-figures.Arrival50)
		if a.count == 0 {
			return math.NaN(), nil
		}
		return a.points[i], a.draws[i]
	}
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
	freedom := math.Pow(wide, 4) / (math.Pow(b, 4)/(p.before.blocks-1) + math.Pow(a, 4)/(p.after.blocks-1))
	if wide == 0 {
		freedom = min(p.before.blocks, p.after.blocks) - 1
	}
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

// shares is the sum of the weights of all figures.
var shares = func() (sum float64) {
	for i := range compared {
		sum += compared[i].weight
	}
	return sum
}()

// decide says which differences and findings are real.
func (r *Result) decide() {
	var chances, weights []float64
	var real []*bool
	add := func(chance, weight float64, to *bool) {
		if !math.IsNaN(chance) {
			chances, weights, real = append(chances, chance), append(weights, weight), append(real, to)
		}
	}
	for _, d := range r.tests {
		add(d.Chance, d.weight, &d.Real)
	}
	rules := 0
	for _, f := range r.Findings {
		if !math.IsNaN(f.Chance) {
			rules++
		}
	}
	for _, f := range r.Findings {
		add(f.Chance, 0.5/float64(rules), &f.Real)
	}
	r.Compared = len(chances)
	for i, yes := range holm(chances, weights, alpha) {
		*real[i] = yes
	}
}

// tell chooses the differences to tell: of a figure that differs, the ways and types in which
// it does.
func (r *Result) tell(p *pair) {
	for i := range compared {
		f := &compared[i]
		var found []*Difference
		for _, d := range r.tests {
			if d.Protocol == p.protocol && d.Figure == f.is && d.Real {
				found = append(found, d)
			}
		}
		if len(found) == 0 {
			continue
		}
		// Once the figure differs somewhere, its two ways share alpha.
		var ways []*Difference
		for _, d := range r.Table {
			if d.Protocol == p.protocol && d.Figure == f.is && d.way != bothWays && d.Chance <= alpha/2 {
				d.Real = true
				ways = append(ways, d)
			}
		}
		if len(ways) == 0 {
			ways = found
		}
		for _, d := range ways {
			r.Real = append(r.Real, p.finest(f, d)...)
		}
	}
	r.Real = lead(r.Real)
}

// finest returns the types of messages in which a figure differs, or the difference itself
// where all do, or none stands out.
func (p *pair) finest(f *figure, d *Difference) []*Difference {
	if !f.typed || d.way == bothWays {
		return []*Difference{d}
	}
	kinds := p.kinds(d.way)
	if d.Type != "" || len(kinds) < 2 {
		return []*Difference{d}
	}
	var list []*Difference
	others, most := 0, 0.0 // types with the figure, and the greatest change of those that do not differ
	for _, k := range kinds {
		x := p.difference(f, target{d.way, k})
		if math.IsNaN(x.Change) {
			continue
		}
		others++
		if x.Chance <= alpha/float64(len(kinds)) && x.Change*d.Change > 0 {
			x.Real = true
			list = append(list, x)
		} else {
			most = max(most, math.Abs(x.Change))
		}
	}
	// A few types stand out only where the others changed much less.
	if len(list) == 0 || 2*len(list) > others ||
		slices.ContainsFunc(list, func(x *Difference) bool { return math.Abs(x.Change) < 2*most }) {
		return []*Difference{d}
	}
	return list
}

// lead keeps one sentence of the times to arrival of a way and type: the 95th percentile if
// it differs, else the median, else the 99th.
func lead(list []*Difference) (out []*Difference) {
	rank := map[figures.Figure]int{figures.Arrival95: 3, figures.Arrival50: 2, figures.Arrival99: 1}
	for _, d := range list {
		better := slices.ContainsFunc(list, func(x *Difference) bool {
			return rank[d.Figure] > 0 && rank[x.Figure] > rank[d.Figure] && x.Protocol == d.Protocol && x.Way == d.Way &&
				(x.Type == d.Type || x.Type == "")
		})
		if !better {
			out = append(out, d)
		}
	}
	return out
}

// Worse returns how many real differences and findings are for the worse.
func (r *Result) Worse() (n int) {
	for _, d := range r.Real {
		if d.Worse() {
			n++
		}
	}
	for _, f := range r.Findings {
		if f.Worse() {
			n++
		}
	}
	return n
}

// Protocols returns the protocols of the table, in its order.
func (r *Result) Protocols() (names []string) {
	for _, d := range r.Table {
		if !slices.Contains(names, d.Protocol) {
			names = append(names, d.Protocol)
		}
	}
	return names
}

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
	text := ""
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
		", 95 % interval " + d.Interval() + ")"
}

// Interval formats the bounds of the change: "+19 to +36 ms".
func (d *Difference) Interval() string {
	if math.IsNaN(d.Least) {
		return "?"
	}
	return d.Figure.Spec().Unit.Bounds(d.Least, d.Most)
}
