package unit

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// Key says what an Aggregate sums up. With a rule it is the findings of the rule, and without one
// the flows.
type Key struct {
	Partition Partition
	Protocol  string // empty for the flows that no protocol explains
	Dialect   string
	Rule      string // empty for flows
	Severity  string // of the rule; empty for flows
}

func compareKeys(x, y Key) int {
	return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Protocol, y.Protocol),
		cmp.Compare(x.Dialect, y.Dialect), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Severity, y.Severity))
}

// Partition is the labels that key an aggregate, in one comparable text: "build=1.4.2,region=eu".
type Partition string

// MakePartition returns the partition of labels, whatever their order. Labels that are only carried
// are left out.
func MakePartition(labels []Label) Partition {
	var parts []string
	for _, x := range labels {
		if !x.Carried {
			parts = append(parts, escapeLabel(x.Name)+"="+escapeLabel(x.Value))
		}
	}
	slices.Sort(parts)
	return Partition(strings.Join(parts, ","))
}

// Labels returns the labels of the partition, sorted by name.
func (p Partition) Labels() (list []Label) {
	if p == "" {
		return nil
	}
	for part := range strings.SplitSeq(string(p), ",") {
		name, value, _ := strings.Cut(part, "=")
		list = append(list, Label{Name: unescapeLabel(name), Value: unescapeLabel(value)})
	}
	return list
}

// Value returns the value of a label. It returns "" if the partition has no such label.
func (p Partition) Value(name string) string {
	for _, x := range p.Labels() {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}

// The signs that separate labels are escaped within them.
var labelEscapes = [...][2]string{{"%", "%25"}, {",", "%2C"}, {"=", "%3D"}}

func escapeLabel(s string) string {
	for _, x := range labelEscapes {
		s = strings.ReplaceAll(s, x[0], x[1])
	}
	return s
}

func unescapeLabel(s string) string {
	for i := len(labelEscapes) - 1; i >= 0; i-- {
		s = strings.ReplaceAll(s, labelEscapes[i][1], labelEscapes[i][0])
	}
	return s
}

// Example is a place that shows what an aggregate counts. The zero value names none.
type Example struct {
	Capture string // the name of the input
	Frame   uint64 // in that file, from 1
}

// String returns "capture#frame", or "" for none.
func (e Example) String() string {
	if e == (Example{}) {
		return ""
	}
	return fmt.Sprintf("%s#%d", e.Capture, e.Frame)
}

// least returns the lesser of two examples, where none is greater than any.
func (e Example) least(o Example) Example {
	order := cmp.Or(cmp.Compare(e.Capture, o.Capture), cmp.Compare(e.Frame, o.Frame))
	if o == (Example{}) || e != (Example{}) && order <= 0 {
		return e
	}
	return o
}

// Aggregate sums up flows, or the findings of a rule, over captures. All counts stay at the largest
// number rather than beginning again at 0.
type Aggregate struct {
	Captures uint64 // that have it; see Aggregates.Without
	Flows    uint64
	Findings uint64 // of a rule: rows
	// Occurrences counts how often a rule was broken, and Certain how often that is certain.
	Occurrences, Certain uint64
	Packets, Bytes       uint64  // of the flows
	Example              Example // the least one

	// Of flows, a value for each side of each flow; Delay has a value for each message that is known
	// to be delivered.
	RTT   Histogram // Durations: the mean round trip on the wire, as Network.RTT of package analyze
	Loss  Histogram // Shares: the best figure of the path's loss, as Network.Share of package analyze
	Delay Histogram // Durations: from the first sending of a message to its arrival, both by the tap
}

// Merge adds another aggregate. It does not change that one, and keeps nothing of it.
func (a *Aggregate) Merge(o *Aggregate) {
	a.Captures, a.Flows, a.Findings = plus(a.Captures, o.Captures), plus(a.Flows, o.Flows), plus(a.Findings, o.Findings)
	a.Occurrences, a.Certain = plus(a.Occurrences, o.Occurrences), plus(a.Certain, o.Certain)
	a.Packets, a.Bytes = plus(a.Packets, o.Packets), plus(a.Bytes, o.Bytes)
	a.Example = a.Example.least(o.Example)
	a.RTT.merge(o.RTT)
	a.Loss.merge(o.Loss)
	a.Delay.merge(o.Delay)
}

// plus adds two counts. It stays at the largest number, so that the order of additions is of no
// effect even then.
func plus(x, y uint64) uint64 {
	sum, carry := bits.Add64(x, y, 0)
	return sum | -carry
}

// Aggregates are aggregates by key, and counts of captures. They merge in any order and grouping to
// the same value. The zero value is empty and ready. They are not safe for concurrent use.
type Aggregates struct {
	byKey    map[Key]*Aggregate
	captures map[Partition]map[State]uint64
}

// Merge adds other aggregates. It does not change them, and keeps nothing of them.
func (a *Aggregates) Merge(o *Aggregates) {
	for k, x := range o.byKey {
		a.at(k).Merge(x)
	}
	for p, states := range o.captures {
		for s, n := range states {
			a.count(p, s, n)
		}
	}
}

// at returns the aggregate of a key, which it makes if there is none.
func (a *Aggregates) at(k Key) *Aggregate {
	x := a.byKey[k]
	if x == nil {
		if a.byKey == nil {
			a.byKey = map[Key]*Aggregate{}
		}
		x = &Aggregate{}
		a.byKey[k] = x
	}
	return x
}

// count adds captures of a partition that ended in a state.
func (a *Aggregates) count(p Partition, s State, n uint64) {
	states := a.captures[p]
	if states == nil {
		if a.captures == nil {
			a.captures = map[Partition]map[State]uint64{}
		}
		states = map[State]uint64{}
		a.captures[p] = states
	}
	states[s] = plus(states[s], n)
}

// Len returns the number of keys.
func (a *Aggregates) Len() int { return len(a.byKey) }

// Keys returns the keys, sorted.
func (a *Aggregates) Keys() []Key { return slices.SortedFunc(maps.Keys(a.byKey), compareKeys) }

// Get returns the aggregate of a key. It is empty if there is none. The caller must not change its
// histograms.
func (a *Aggregates) Get(k Key) Aggregate {
	if x := a.byKey[k]; x != nil {
		return *x
	}
	return Aggregate{}
}

// Partitions returns the partitions that captures were counted for, sorted.
func (a *Aggregates) Partitions() []Partition { return slices.Sorted(maps.Keys(a.captures)) }

// Captures returns how many captures of a partition ended in a state.
func (a *Aggregates) Captures(p Partition, s State) uint64 { return a.captures[p][s] }

// Analysed returns how many captures of a partition were read, whole or in part.
func (a *Aggregates) Analysed(p Partition) (n uint64) {
	for s, count := range a.captures[p] {
		if x := (Status{State: s}); x.Read() {
			n = plus(n, count)
		}
	}
	return n
}

// Without returns how many of the analysed captures of a key's partition lack it.
func (a *Aggregates) Without(k Key) uint64 {
	all, with := a.Analysed(k.Partition), a.Get(k).Captures
	return all - min(all, with)
}
