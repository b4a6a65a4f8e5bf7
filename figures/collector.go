package figures

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Set is the figures of one side of a flow.
type Set [figures]Value

// Value implements Source.
func (s *Set) Value(f Figure) Value { return s[f] }

// Change implements Source. One capture has no changes.
func (s *Set) Change(Figure, bool) Value { return Value{} }

// Collector keeps what a flow's own figures lack: when messages arrived, and how long they
// waited. Its method Take is a sink, or part of one.
type Collector struct {
	flows map[*analyze.Flow]*[2]messages
}

type messages struct {
	seen    bool
	arrival Times
	wait    time.Duration
}

// Take adds the next record.
func (c *Collector) Take(r *analyze.Record) {
	for i := range r.Messages {
		m := &r.Messages[i]
		if c.flows == nil {
			c.flows = map[*analyze.Flow]*[2]messages{}
		}
		sides := c.flows[r.Flow]
		if sides == nil {
			sides = new([2]messages)
			c.flows[r.Flow] = sides
		}
		x := &sides[m.From]
		x.seen = x.seen || m.Delivered != machine.Unanswered
		if about := m.About(); about >= 0 {
			x.arrival.Add(about)
		}
		x.wait = max(x.wait, m.Wait)
	}
}

// Forget drops what is kept of a flow.
func (c *Collector) Forget(f *analyze.Flow) { delete(c.flows, f) }

// Of returns the figures of a flow's side so far. It returns false if no protocol explains
// the flow.
func (c *Collector) Of(f *analyze.Flow, side machine.Side) (set Set, ok bool) {
	n, ok := f.Network(side)
	if !ok {
		return set, false
	}
	least, most := n.Loss.Share()
	set[LossLeast], set[LossMost] = Exactly(least), Exactly(most)
	set[Loss] = Exactly(n.Share)
	if n.Loss.Known() && (!set[Loss].Known || n.Certain == machine.Possible) {
		set[Loss] = Value{true, least, most}
	}
	set[RTT], set[RTT95], set[Jitter] = Exactly(float64(n.RTT)), Exactly(float64(n.RTT95)), Exactly(float64(n.Jitter))
	set[Stall], set[Bandwidth], set[BandwidthPeak] = Exactly(float64(n.Stall)), Exactly(n.Mean), Exactly(n.Peak)
	if n.Sent > 0 {
		set[Resends] = Exactly(float64(n.Resends) / float64(n.Sent))
	}
	if sides := c.flows[f]; sides != nil {
		x := &sides[side]
		for figure, share := range map[Figure]float64{Arrival50: 0.5, Arrival95: 0.95, Arrival99: 0.99} {
			set[figure] = Exactly(float64(x.arrival.Quantile(share)))
		}
		if x.seen {
			set[HOL] = Exactly(float64(x.wait))
		}
	}
	var counts [machine.Error + 1]float64
	for _, x := range f.Findings() {
		if x.Side == side {
			counts[x.Rule.Severity]++
		}
	}
	set[Notes], set[Warnings], set[Errors] = Exactly(counts[machine.Note]), Exactly(counts[machine.Warn]),
		Exactly(counts[machine.Error])
	set[Findings] = Exactly(counts[machine.Note] + counts[machine.Warn] + counts[machine.Error])
	return set, true
}
