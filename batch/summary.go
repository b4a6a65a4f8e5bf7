package batch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/ackscope/ackscope/unit"
)

// summaryVersion is the version of the form of summary.json.
const summaryVersion = 1

// Summary sums up captures. Summaries merge in any order to the same value. Its JSON form is stable.
type Summary struct {
	Version int `json:"version"`
	// Bounds are the upper bounds of the buckets of histograms; the last bucket of durations has none.
	Bounds     Bounds       `json:"bounds"`
	Partitions []*Partition `json:"partitions"` // sorted by folder
}

// Bounds are the upper bounds of the buckets of histograms.
type Bounds struct {
	Millis []float64 `json:"ms"`
	Share  []float64 `json:"share"`
}

// Partition sums up the captures of a partition.
type Partition struct {
	Folder    string                `json:"folder"`
	Labels    []Label               `json:"labels"`
	States    map[unit.State]uint64 `json:"states"`
	Captures  uint64                `json:"captures"`
	Bytes     uint64                `json:"bytes"`
	Packets   uint64                `json:"packets"`
	Flows     uint64                `json:"flows"`
	Findings  uint64                `json:"findings"`
	Protocols []*Protocol           `json:"protocols"`
}

// Label is a label of a partition. The value is nil where a capture has none.
type Label struct {
	Name  string  `json:"name"`
	Value *string `json:"value"`
}

// Protocol sums up the flows of a protocol; an empty one has the flows that none explains.
type Protocol struct {
	Protocol string `json:"protocol"`
	// Captures have such flows. FlowsSquared is the sum of the squares of their numbers of flows.
	// With the sums of Rule it tells how much captures differ.
	Captures     uint64     `json:"captures"`
	Flows        uint64     `json:"flows"`
	FlowsSquared uint64     `json:"flows_squared"`
	Dialects     []*Dialect `json:"dialects"`
	Rules        []*Rule    `json:"rules"`
}

// Dialect sums up the flows of a dialect.
type Dialect struct {
	Dialect  string         `json:"dialect"`
	Captures uint64         `json:"captures"`
	Flows    uint64         `json:"flows"`
	Packets  uint64         `json:"packets"`
	Bytes    uint64         `json:"bytes"`
	RTT      unit.Histogram `json:"rtt_ms,omitempty"`
	Loss     unit.Histogram `json:"loss,omitempty"`
	Delay    unit.Histogram `json:"delay_ms,omitempty"`
}

// Rule sums up the findings of a rule.
type Rule struct {
	Rule        string `json:"rule"`
	Severity    string `json:"severity"`
	Captures    uint64 `json:"captures"` // that have it
	Flows       uint64 `json:"flows"`    // that have it
	Findings    uint64 `json:"findings"`
	Occurrences uint64 `json:"occurrences"`
	Certain     uint64 `json:"certain"`
	// Of each capture's flows that have it: the sum of squares, and the sum of products with its flows
	// of the protocol.
	FlowsSquared uint64  `json:"flows_squared"`
	FlowsProduct uint64  `json:"flows_product"`
	Example      Example `json:"example"` // the least one
}

// Example is a place that shows what a rule found.
type Example struct {
	Capture string `json:"capture"`
	Frame   uint64 `json:"frame"`
}

// Add adds a capture.
func (s *Summary) Add(c *Capture, status *unit.Status, sums *unit.Aggregates) {
	one := &Partition{
		Folder: Folder(c.Labels), Labels: []Label{}, States: map[unit.State]uint64{status.State: 1}, Captures: 1,
		Bytes: uint64(max(0, status.Bytes)), Packets: status.Packets, Flows: status.Flows, Findings: status.Findings,
		Protocols: []*Protocol{},
	}
	for _, x := range c.Labels {
		if !x.Carried {
			label := Label{Name: x.Name}
			if x.Value != "" {
				label.Value = &x.Value
			}
			one.Labels = append(one.Labels, label)
		}
	}
	keys := sums.Keys()
	for _, k := range keys {
		a := sums.Get(k)
		p := &Protocol{Protocol: k.Protocol, Dialects: []*Dialect{}, Rules: []*Rule{}}
		if k.Rule == "" {
			p.Flows = a.Flows
			d := &Dialect{Dialect: k.Dialect}
			d.set(&a)
			d.Captures = 1
			p.Dialects = append(p.Dialects, d)
		} else {
			r := &Rule{Rule: k.Rule, Severity: k.Severity}
			r.set(&a)
			p.Rules = append(p.Rules, r)
		}
		one.Protocols = mergeBy(one.Protocols, []*Protocol{p}, protocolOrder, (*Protocol).merge)
	}
	// A protocol's dialects are added up: now the figures are those of one capture.
	for _, p := range one.Protocols {
		p.Captures, p.FlowsSquared = 1, p.Flows*p.Flows
		for _, r := range p.Rules {
			r.Captures, r.FlowsSquared, r.FlowsProduct = 1, r.Flows*r.Flows, r.Flows*p.Flows
		}
	}
	s.Merge(&Summary{Partitions: []*Partition{one}})
}

// Merge adds another summary. It may keep parts of it.
func (s *Summary) Merge(o *Summary) {
	if s.Version == 0 {
		s.Version = summaryVersion
		for i := range unit.Buckets {
			if i < unit.Buckets-1 {
				s.Bounds.Millis = append(s.Bounds.Millis, unit.DurationBound(i))
			}
			s.Bounds.Share = append(s.Bounds.Share, unit.ShareBound(i))
		}
	}
	order := func(x, y *Partition) int { return cmp.Compare(x.Folder, y.Folder) }
	s.Partitions = mergeBy(s.Partitions, o.Partitions, order, (*Partition).merge)
}

// mergeBy merges two sorted lists. Elements that are equal become one.
func mergeBy[T any](to, from []*T, order func(x, y *T) int, merge func(to, from *T)) []*T {
	for _, x := range from {
		i, found := slices.BinarySearchFunc(to, x, order)
		if found {
			merge(to[i], x)
		} else {
			to = slices.Insert(to, i, x)
		}
	}
	return to
}

func protocolOrder(x, y *Protocol) int { return cmp.Compare(x.Protocol, y.Protocol) }

func (p *Partition) merge(o *Partition) {
	for state, n := range o.States {
		p.States[state] += n
	}
	p.Captures += o.Captures
	p.Bytes += o.Bytes
	p.Packets += o.Packets
	p.Flows += o.Flows
	p.Findings += o.Findings
	p.Protocols = mergeBy(p.Protocols, o.Protocols, protocolOrder, (*Protocol).merge)
}

func (p *Protocol) merge(o *Protocol) {
	p.Captures += o.Captures
	p.Flows += o.Flows
	p.FlowsSquared += o.FlowsSquared
	p.Dialects = mergeBy(p.Dialects, o.Dialects, func(x, y *Dialect) int { return cmp.Compare(x.Dialect, y.Dialect) },
		(*Dialect).merge)
	p.Rules = mergeBy(p.Rules, o.Rules, func(x, y *Rule) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Severity, y.Severity))
	}, (*Rule).merge)
}

func (d *Dialect) merge(o *Dialect) { d.set(sum(d.aggregate(), o.aggregate())) }

func (r *Rule) merge(o *Rule) {
	r.set(sum(r.aggregate(), o.aggregate()))
	r.FlowsSquared += o.FlowsSquared
	r.FlowsProduct += o.FlowsProduct
}

// sum adds two aggregates. It changes neither, and shares nothing with them.
func sum(x, y unit.Aggregate) *unit.Aggregate {
	total := &unit.Aggregate{}
	total.Merge(&x)
	total.Merge(&y)
	return total
}

// set takes the figures of an aggregate of flows.
func (d *Dialect) set(a *unit.Aggregate) {
	d.Captures, d.Flows, d.Packets, d.Bytes = a.Captures, a.Flows, a.Packets, a.Bytes
	d.RTT, d.Loss, d.Delay = a.RTT, a.Loss, a.Delay
}

// aggregate returns the figures as an aggregate.
func (d *Dialect) aggregate() unit.Aggregate {
	return unit.Aggregate{
		Captures: d.Captures, Flows: d.Flows, Packets: d.Packets, Bytes: d.Bytes, RTT: d.RTT, Loss: d.Loss, Delay: d.Delay,
	}
}

// set takes the figures of an aggregate of a rule.
func (r *Rule) set(a *unit.Aggregate) {
	r.Captures, r.Flows, r.Findings, r.Occurrences, r.Certain = a.Captures, a.Flows, a.Findings, a.Occurrences, a.Certain
	r.Example = Example(a.Example)
}

// aggregate returns the figures as an aggregate.
func (r *Rule) aggregate() unit.Aggregate {
	return unit.Aggregate{
		Captures: r.Captures, Flows: r.Flows, Findings: r.Findings, Occurrences: r.Occurrences, Certain: r.Certain,
		Example: unit.Example(r.Example),
	}
}

// States returns how many captures ended in each state.
func (s *Summary) States() map[unit.State]uint64 {
	all := map[unit.State]uint64{}
	for _, p := range s.Partitions {
		for state, n := range p.States {
			all[state] += n
		}
	}
	return all
}

// Write writes the summary as summary.json.
func (s *Summary) Write(w io.Writer) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// mostSummary bounds the size of a summary that is read.
// Source: bound, memory of a hostile file; 10,000 partitions of 10 kB are 100 MB
const mostSummary = 1 << 30

// ReadSummary reads the summary of an output folder.
func ReadSummary(folder string) (*Summary, error) {
	path := filepath.Join(folder, "summary.json")
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a folder that `ackscope batch` wrote: %w", folder, err)
	}
	if info.Size() > mostSummary {
		return nil, fmt.Errorf("%s: has %d bytes: expected %d at most", path, info.Size(), mostSummary)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseSummary(path, b)
}

// ParseSummary reads a summary that Write wrote. path names it in errors.
func ParseSummary(path string, b []byte) (*Summary, error) {
	s := &Summary{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Version != summaryVersion {
		return nil, fmt.Errorf("%s: is of version %d: expected %d", path, s.Version, summaryVersion)
	}
	return s, s.check(path)
}

// check refuses a summary of another form, whose figures would be compared as if they were these.
func (s *Summary) check(path string) error {
	for _, p := range s.Partitions {
		if p == nil || p.States == nil {
			return fmt.Errorf("%s: a partition has no states", path)
		}
		for _, q := range p.Protocols {
			if q == nil || slices.Contains(q.Rules, nil) || slices.Contains(q.Dialects, nil) {
				return fmt.Errorf("%s: %s: a protocol is incomplete", path, p.Folder)
			}
			for _, d := range q.Dialects {
				for _, h := range []unit.Histogram{d.RTT, d.Loss, d.Delay} {
					if len(h) != 0 && len(h) != unit.Buckets {
						return fmt.Errorf("%s: %s: a histogram has %d buckets: expected %d", path, p.Folder, len(h), unit.Buckets)
					}
				}
			}
		}
	}
	return nil
}

// Total sums up the partitions that keep accepts, as one partition. It does not change the summary.
func (s *Summary) Total(keep func(*Partition) bool) *Partition {
	total := &Partition{States: map[unit.State]uint64{}}
	for _, p := range s.Partitions {
		if keep(p) {
			total.merge(p.clone())
		}
	}
	return total
}

// clone returns a copy whose lists may be merged into.
func (p *Partition) clone() *Partition {
	c := *p
	c.Protocols = nil
	for _, q := range p.Protocols {
		d := *q
		d.Dialects, d.Rules = nil, nil
		for _, x := range q.Dialects {
			d.Dialects = append(d.Dialects, new(*x))
		}
		for _, x := range q.Rules {
			d.Rules = append(d.Rules, new(*x))
		}
		c.Protocols = append(c.Protocols, &d)
	}
	return &c
}
