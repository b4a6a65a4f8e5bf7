package compare

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/figures"
)

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

// pair is the samples of a protocol.
type pair struct {
	protocol      string
	before, after *sample
	short         bool // there is too little to estimate chance
	// How frames fall on each other changes times from run to run by fall, in nanoseconds. It
	// changes a share of the resends that come within a frame. Both are 0 where flows are many.
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

// decide says which differences and findings are real.
func (r *Result) decide() {
	var chances, weights []float64
	var decided []*bool
	add := func(chance, weight float64, to *bool) {
		if !math.IsNaN(chance) {
			chances, weights, decided = append(chances, chance), append(weights, weight), append(decided, to)
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
		*decided[i] = yes
	}
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
