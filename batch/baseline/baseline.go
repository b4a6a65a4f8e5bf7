package baseline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/unit"
)

// Set is one of the sets that are compared.
type Set struct {
	Name  string
	Total *batch.Partition
}

// Of returns the captures of a summary whose label has a value. An empty column stands for all.
func Of(name string, s *batch.Summary, column, value string) (*Set, error) {
	values := map[string]bool{}
	known := column == ""
	total := s.Total(func(p *batch.Partition) bool {
		if column == "" {
			return true
		}
		for _, x := range p.Labels {
			if x.Name == column {
				known = true
				if x.Value == nil {
					return false
				}
				values[*x.Value] = true
				return *x.Value == value
			}
		}
		return false
	})
	switch {
	case !known:
		return nil, fmt.Errorf("%s: no column %q divides the captures", name, column)
	case total.Captures == 0 && column != "":
		list := make([]string, 0, len(values))
		for v := range values {
			list = append(list, fmt.Sprintf("%q", v))
		}
		slices.Sort(list)
		if len(list) > mostNamed {
			list = append(list[:mostNamed], "…")
		}
		return nil, fmt.Errorf("%s: no capture has %s=%q: there are %s", name, column, value, strings.Join(list, ", "))
	}
	return &Set{name, total}, nil
}

// mostNamed is how many values an error names.
const mostNamed = 10

// Analysed returns how many captures were read, whole or in part.
func (s *Set) Analysed() (n uint64) {
	for state, count := range s.Total.States {
		if batch.Analysed(state) {
			n += count
		}
	}
	return n
}

// Flows returns how many flows have a known protocol.
func (s *Set) Flows() (n uint64) {
	for _, p := range s.Total.Protocols {
		if p.Protocol != "" {
			n += p.Flows
		}
	}
	return n
}

// Result is what a comparison found.
type Result struct {
	Before, After *Set
	Rules         []*Rule   // by protocol and name
	Figures       []*Figure // by protocol
	Notes         []string  // what a reader should know of the comparison
}

// Rate is how many of 1,000 flows have a finding of a rule, with its interval of 95 %.
type Rate struct {
	Flows, Of         uint64
	Rate, Least, Most float64 // NaN without flows
}

// Rule is how often a rule fires.
type Rule struct {
	Protocol, Rule, Severity string
	Before, After            Rate
	Change, Least, Most      float64 // of the rate, with its interval
	Effect                   float64 // the design effect
	Chance                   float64 // that equal sets differ as much, among all that is compared
	Example                  batch.Example
}

// Real reports whether chance does not explain the change.
func (r *Rule) Real() bool { return r.Chance < alpha }

// Worse reports whether a warning or an error is really more frequent.
func (r *Rule) Worse() bool { return r.Real() && r.Change > 0 && r.Severity != "note" }

// Kind says how the rates differ.
func (r *Rule) Kind() string {
	switch {
	case r.Before.Flows == 0 && r.After.Flows > 0:
		return "new"
	case r.Before.Flows > 0 && r.After.Flows == 0:
		return "gone"
	case r.Change > 0:
		return "more"
	case r.Change < 0:
		return "less"
	}
	return "same"
}

// Verdict says in a word or two what the change is.
func (r *Rule) Verdict() string {
	switch {
	case !r.Real():
		return "chance"
	case r.Worse():
		return "worse"
	case r.Severity != "note":
		return "better"
	}
	return "differs"
}

// Figure is how a figure of flows is distributed.
type Figure struct {
	Protocol string
	Name     string // rtt_ms, loss or delay_ms
	Before   Spread
	After    Spread
	Distance float64 // 0 to 1
	Chance   float64 // as that of a Rule
}

// Spread is the upper bounds of the buckets of some quantiles. They are NaN without values.
type Spread struct {
	Values      uint64
	Median, P95 float64
}

// Real reports whether chance does not explain the distance.
func (f *Figure) Real() bool { return f.Chance < alpha }

// Worse reports whether the figure is really larger.
func (f *Figure) Worse() bool {
	return f.Real() && (f.After.P95 > f.Before.P95 || f.After.P95 == f.Before.P95 && f.After.Median > f.Before.Median)
}

// Verdict says in a word what the distance is.
func (f *Figure) Verdict() string {
	switch {
	case !f.Real():
		return "chance"
	case f.Worse():
		return "worse"
	}
	return "differs"
}

// Worse counts what is really worse.
func (r *Result) Worse() (n int) {
	for _, x := range r.Rules {
		if x.Worse() {
			n++
		}
	}
	for _, x := range r.Figures {
		if x.Worse() {
			n++
		}
	}
	return n
}

// Real counts what chance does not explain.
func (r *Result) Real() (n int) {
	for _, x := range r.Rules {
		if x.Real() {
			n++
		}
	}
	for _, x := range r.Figures {
		if x.Real() {
			n++
		}
	}
	return n
}

// fewCaptures is how many captures a set should have. With fewer, only large differences are real.
// Source: definition, the variance over five captures is known to about 70 %
const fewCaptures = 5

// Compare compares two sets.
func Compare(before, after *Set) *Result {
	r := &Result{Before: before, After: after}
	for _, s := range []*Set{before, after} {
		if n := s.Analysed(); n < fewCaptures {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %s. Flows of one capture are alike, so only large differences "+
				"are told apart from chance.", s.Name, show.Plural(n, "capture")))
		}
		if lost := s.Total.Captures - s.Analysed(); lost > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %d of %d captures could not be read, and nothing is known of them.",
				s.Name, lost, s.Total.Captures))
		}
	}
	var chances []*float64
	for _, name := range protocols(before, after) {
		b, a := of(before, name), of(after, name)
		if b.Flows == 0 || a.Flows == 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: only %s has flows of it, so nothing is compared.", name,
				map[bool]string{true: after.Name, false: before.Name}[b.Flows == 0]))
			continue
		}
		for _, x := range rules(b, a) {
			r.Rules = append(r.Rules, x)
			chances = append(chances, &x.Chance)
		}
		for _, x := range figures(b, a) {
			r.Figures = append(r.Figures, x)
			chances = append(chances, &x.Chance)
		}
	}
	holm(chances)
	return r
}

// protocols returns the known protocols of both sets.
func protocols(sets ...*Set) (names []string) {
	for _, s := range sets {
		for _, p := range s.Total.Protocols {
			if p.Protocol != "" {
				names = append(names, p.Protocol)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func of(s *Set, protocol string) *batch.Protocol {
	for _, p := range s.Total.Protocols {
		if p.Protocol == protocol {
			return p
		}
	}
	return &batch.Protocol{Protocol: protocol}
}

// rules compares how often each rule fires.
func rules(before, after *batch.Protocol) (list []*Rule) {
	type pair struct{ before, after *batch.Rule }
	both := map[[2]string]*pair{}
	for i, p := range []*batch.Protocol{before, after} {
		for _, x := range p.Rules {
			key := [2]string{x.Rule, x.Severity}
			if both[key] == nil {
				both[key] = &pair{&batch.Rule{}, &batch.Rule{}}
			}
			*map[int]**batch.Rule{0: &both[key].before, 1: &both[key].after}[i] = x
		}
	}
	for key, p := range both {
		x := &Rule{Protocol: before.Protocol, Rule: key[0], Severity: key[1], Example: p.after.Example}
		if x.Example == (batch.Example{}) {
			x.Example = p.before.Example
		}
		x.compare(shareOf(before, p.before), shareOf(after, p.after))
		list = append(list, x)
	}
	slices.SortFunc(list, func(x, y *Rule) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Severity, y.Severity))
	})
	return list
}

func shareOf(p *batch.Protocol, r *batch.Rule) *share {
	return &share{
		have: float64(r.Flows), of: float64(p.Flows), captures: float64(p.Captures),
		haveSquared: float64(r.FlowsSquared), product: float64(r.FlowsProduct), ofSqr: float64(p.FlowsSquared),
	}
}

// compare sets the figures of a rule.
func (r *Rule) compare(before, after *share) {
	r.Effect = effectOf(before, after)
	b, a, nb, na := before.rate(), after.rate(), before.of/r.Effect, after.of/r.Effect
	set := func(to *Rate, s *share, rate, n float64) {
		least, most := wilson(rate, n)
		*to = Rate{Flows: uint64(s.have), Of: uint64(s.of), Rate: rate * 1000, Least: least * 1000, Most: most * 1000}
	}
	set(&r.Before, before, b, nb)
	set(&r.After, after, a, na)
	least, most := newcombe(b, a, nb, na)
	r.Change, r.Least, r.Most = (a-b)*1000, least*1000, most*1000
	r.Chance = chanceOf(b, a, nb, na)
}

// figures compares histograms.
func figures(before, after *batch.Protocol) (list []*Figure) {
	for _, f := range []struct {
		name  string
		of    func(*batch.Dialect) unit.Histogram
		bound func(int) float64
	}{
		{"rtt_ms", func(d *batch.Dialect) unit.Histogram { return d.RTT }, unit.DurationBound},
		{"loss", func(d *batch.Dialect) unit.Histogram { return d.Loss }, unit.ShareBound},
		{"delay_ms", func(d *batch.Dialect) unit.Histogram { return d.Delay }, unit.DurationBound},
	} {
		total := func(p *batch.Protocol) (h unit.Histogram, s Spread) {
			h = make(unit.Histogram, unit.Buckets)
			for _, d := range p.Dialects {
				for i, n := range f.of(d) {
					h[i] += n
				}
			}
			s = Spread{Values: h.Total(), Median: math.NaN(), P95: math.NaN()}
			if s.Values > 0 {
				s.Median, s.P95 = f.bound(h.Quantile(0.5)), f.bound(h.Quantile(0.95))
			}
			return h, s
		}
		x := &Figure{Protocol: before.Protocol, Name: f.name}
		var b, a unit.Histogram
		b, x.Before = total(before)
		a, x.After = total(after)
		if x.Before.Values == 0 || x.After.Values == 0 {
			continue
		}
		x.Distance = distance(b, a)
		x.Chance = chanceOfDistance(x.Distance, float64(before.Captures), float64(after.Captures))
		list = append(list, x)
	}
	return list
}
