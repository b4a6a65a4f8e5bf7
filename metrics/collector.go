package metrics

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// ownKinds bounds the kinds of events that a protocol defines itself. Further
// kinds would share the last counter.
const ownKinds = 32

// sharedKinds bounds the kinds of events that all protocols share.
const sharedKinds = 32

// sides are the values of the label side.
var sides = [2]string{machine.A.String(), machine.B.String()}

// Collector counts the results of an analysis. It is not safe for concurrent
// use: the analysis must not run during a call of its other methods.
type Collector struct {
	version, goVersion string
	protocols          []*dissect.Protocol // the last is nil, for flows without a protocol
	counts             []counts            // by protocol
	rules              map[ruleKey]uint64
	duplicates         uint64
}

// counts are the counts of one protocol, by side.
type counts [2]struct {
	packets, bytes uint64
	kinds          [sharedKinds + ownKinds]uint64
	rtt            histogram
}

type ruleKey struct {
	rule     *machine.Rule
	protocol int
	side     machine.Side
}

// New returns a collector for the protocols of a registry.
func New(r *dissect.Registry, version, goVersion string) *Collector {
	c := &Collector{
		version: version, goVersion: goVersion, protocols: append(slices.Clone(r.Protocols()), nil),
		rules: map[ruleKey]uint64{},
	}
	c.counts = make([]counts, len(c.protocols))
	return c
}

func (c *Collector) index(p *dissect.Protocol) int {
	for i, q := range c.protocols {
		if q == p {
			return i
		}
	}
	return len(c.protocols) - 1
}

func (c *Collector) name(i int) string {
	if p := c.protocols[i]; p != nil {
		return p.Name
	}
	return "none"
}

// Take counts a record. It is a sink of the analysis.
func (c *Collector) Take(r *analyze.Record) {
	if r.Flow == nil {
		return
	}
	x := &c.counts[c.index(r.Flow.Protocol)]
	switch {
	case r.Packet != nil && r.Packet.Duplicate:
		c.duplicates++
	case r.Frame == nil && r.Datagram.Bytes == nil: // settled by the end of a flow
	case r.Flow.Transport == capture.TCP && !r.Message && r.Flow.Protocol != nil: // a segment that completes no message
	default:
		x[r.Datagram.From].packets++
		x[r.Datagram.From].bytes += uint64(r.Datagram.Length)
	}
	for i := range r.Events {
		e := &r.Events[i]
		y := &x[e.Side]
		y.kinds[kindIndex(e.Kind)]++
		if e.Kind == machine.EventAcked && e.RTT >= 0 {
			y.rtt.observe(float64(e.RTT) / 1e9)
		}
	}
}

func kindIndex(k machine.EventKind) int {
	if k >= machine.EventProtocol {
		return sharedKinds + min(int(k-machine.EventProtocol), ownKinds-1)
	}
	return min(int(k), sharedKinds-1)
}

// Found counts an occurrence of a rule.
func (c *Collector) Found(x *analyze.Finding) {
	c.rules[ruleKey{x.Rule, c.index(x.Flow.Protocol), x.Side}]++
}

// Capture is the state of the capture itself.
type Capture struct {
	Interfaces []Interface
	Unsaved    uint64
	Fragments  capture.FragmentStats
	Process    Process
	Cause      *cause.Report // of the last comparison of the flows; nil before the first
}

// Interface is the state of one interface, or of a file.
type Interface struct {
	Name       string
	Frames     uint64
	Freezes    uint64
	Statistics capture.Statistics
}

// Process is the operating system's data about this process. Fields that are 0
// are not known.
type Process struct {
	Resident   uint64  // bytes
	CPUSeconds float64 // user and system
	Started    float64 // seconds since 1970
}

// Append appends all metrics.
func (c *Collector) Append(to []byte, s *analyze.Session, limits analyze.Limits, state *Capture) []byte {
	t := &text{buf: to}
	t.begin(&buildInfo)
	t.sample(1, c.version, c.goVersion)
	c.capture(t, s, state)
	c.traffic(t, s)
	commonCause(t, state.Cause)
	c.flows(t, s, limits)
	for _, x := range []struct {
		family *Family
		value  float64
	}{
		{&resident, float64(state.Process.Resident)},
		{&cpuSeconds, state.Process.CPUSeconds},
		{&startTime, state.Process.Started},
	} {
		if x.value > 0 {
			t.begin(x.family)
			t.sample(x.value)
		}
	}
	return t.buf
}

func (c *Collector) capture(t *text, s *analyze.Session, state *Capture) {
	each := func(f *Family, known capture.StatisticsMask, value func(*Interface) []float64, more ...string) {
		t.begin(f)
		for i := range state.Interfaces {
			in := &state.Interfaces[i]
			if known != 0 && in.Statistics.Known&known == 0 {
				continue
			}
			for j, v := range value(in) {
				if more == nil {
					t.sample(v, in.Name)
				} else if j < 1 || in.Statistics.Known&capture.KnownDropped != 0 {
					t.sample(v, in.Name, more[j])
				}
			}
		}
	}
	each(&framesRead, 0, func(in *Interface) []float64 { return []float64{float64(in.Frames)} })
	each(&accepted,
		capture.KnownFilterAccepted,
		func(in *Interface) []float64 { return []float64{float64(in.Statistics.FilterAccepted)} })
	each(&dropped, capture.KnownOSDropped, func(in *Interface) []float64 {
		return []float64{float64(in.Statistics.OSDropped), float64(in.Statistics.Dropped)}
	}, "ring", "interface")
	each(&ringFreezes, capture.KnownOSDropped, func(in *Interface) []float64 { return []float64{float64(in.Freezes)} })
	one := func(f *Family, v float64) {
		t.begin(f)
		t.sample(v)
	}
	one(&unsaved, float64(state.Unsaved))
	one(&twice, float64(c.duplicates))
	one(&fragments, float64(state.Fragments.Fragments))
	t.begin(&reassembled)
	t.sample(float64(state.Fragments.Reassembled), "reassembled")
	t.sample(float64(state.Fragments.Expired), "expired")
	t.sample(float64(state.Fragments.Evicted), "evicted")
	if s.Packets() > 0 {
		_, last := s.Span()
		one(&lastPacket, float64(last)/1e9)
	}
}

// traffic writes the counts of protocols and sides.
func (c *Collector) traffic(t *text, s *analyze.Session) {
	each := func(f *Family, protocols int, value func(*counts, machine.Side) float64) {
		t.begin(f)
		for i := range protocols {
			for side := range sides {
				t.sample(value(&c.counts[i], machine.Side(side)), c.name(i), sides[side])
			}
		}
	}
	known := len(c.protocols) - 1
	each(&packets, known+1, func(x *counts, s machine.Side) float64 { return float64(x[s].packets) })
	each(&payload, known+1, func(x *counts, s machine.Side) float64 { return float64(x[s].bytes) })
	each(&acked, known, func(x *counts, s machine.Side) float64 { return float64(x[s].kinds[machine.EventAcked]) })
	each(&lost, known, func(x *counts, s machine.Side) float64 { return float64(x[s].kinds[machine.EventLost]) })
	t.begin(&events)
	for i, p := range c.protocols[:known] {
		for side := range sides {
			for k, n := range c.counts[i][side].kinds {
				if n > 0 {
					t.sample(float64(n), p.Name, sides[side], kindName(p, k))
				}
			}
		}
	}
	t.begin(&roundTrips)
	for i, p := range c.protocols[:known] {
		for side := range sides {
			c.counts[i][side].rtt.write(t, p.Name, sides[side])
		}
	}
	c.loss(t, s)
	c.found(t)
}

func kindName(p *dissect.Protocol, index int) string {
	k := machine.EventKind(index)
	if index >= sharedKinds {
		k = machine.EventProtocol + machine.EventKind(index-sharedKinds)
	}
	if name, ok := p.EventNames[k]; ok {
		return name
	}
	return k.String()
}

// loss writes the mean of the loss that the libraries of the current flows
// would compute.
func (c *Collector) loss(t *text, s *analyze.Session) {
	type mean struct {
		sum float64
		n   int
	}
	means := make([][2]mean, len(c.protocols))
	for _, f := range s.Flows() {
		if f.Protocol == nil {
			continue
		}
		i := c.index(f.Protocol)
		for side := range sides {
			if x, ok := f.Summary(machine.Side(side)); ok && x.Loss >= 0 {
				m := &means[i][side]
				m.sum, m.n = m.sum+x.Loss, m.n+1
			}
		}
	}
	t.begin(&lossEstimate)
	for i, m := range means {
		for side := range sides {
			if m[side].n > 0 {
				t.sample(m[side].sum/float64(m[side].n), c.name(i), sides[side])
			}
		}
	}
}

// found writes the counts of rules by name. The rules that say why something
// was sent again are also counted by cause.
func (c *Collector) found(t *text) {
	keys := slices.SortedFunc(maps.Keys(c.rules), func(a, b ruleKey) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.side, b.side), cmp.Compare(a.rule.ID, b.rule.ID))
	})
	type why struct {
		protocol int
		side     machine.Side
		cause    string
	}
	var order []why
	causes := map[why]uint64{}
	for _, k := range keys {
		if k.rule.Resend == "" {
			continue
		}
		w := why{k.protocol, k.side, k.rule.Resend}
		if causes[w] == 0 {
			order = append(order, w)
		}
		causes[w] += c.rules[k]
	}
	t.begin(&resends)
	for _, w := range order {
		t.sample(float64(causes[w]), c.name(w.protocol), sides[w.side], w.cause)
	}
	t.begin(&findings)
	for _, k := range keys {
		t.sample(float64(c.rules[k]), c.name(k.protocol), sides[k.side], k.rule.ID, k.rule.Severity.String())
	}
}

// commonCause writes how many flows have their trouble from a common cause. The causes of one
// kind share a series, which has the flows of the largest.
func commonCause(t *text, r *cause.Report) {
	t.begin(&causeFlows)
	if r == nil {
		r = &cause.Report{}
	}
	type key struct{ trouble, kind, certainty string }
	seen := map[key]bool{}
	for i := range r.Verdicts { // the one that concerns most flows comes first
		v := &r.Verdicts[i]
		k := key{v.Trouble.String(), v.Kind.String(), v.Certainty.String()}
		if !seen[k] {
			seen[k] = true
			t.sample(float64(v.Flows), k.trouble, k.kind, k.certainty)
		}
	}
	t.begin(&causeCompared)
	t.sample(float64(r.Flows))
}

// flows writes the numbers of remembered flows.
func (c *Collector) flows(t *text, s *analyze.Session, limits analyze.Limits) {
	active, pending := make([]int, len(c.protocols)), 0
	for _, f := range s.Flows() {
		active[c.index(f.Protocol)]++
		if f.Pending() {
			pending++
		}
	}
	t.begin(&flowsActive)
	for i, n := range active {
		t.sample(float64(n), c.name(i))
	}
	t.begin(&flowsPending)
	t.sample(float64(pending))
	t.begin(&flowsBegun)
	t.sample(float64(s.Begun()))
	t.begin(&flowsLetGo)
	for _, r := range analyze.Reasons() {
		t.sample(float64(s.LetGo(r)), r.String())
	}
	t.begin(&stateBytes)
	t.sample(float64(s.StateBytes()))
	t.begin(&stateLimit)
	t.sample(float64(limits.Bytes))
}
