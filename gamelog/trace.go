package gamelog

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// traceMost is how many times a trace keeps of all flows. They take 32 bytes at most: 128 MB.
// A flow of 60 packets a second each way fills it in four hours.
// Source: bound, the memory of a run
const traceMost = 4 << 20

// passed is a packet of a side as it passed the tap.
type passed struct {
	at      machine.Instant
	number  int64 // unwrapped; for datagrams: bytes so far
	ref     machine.Ref
	channel uint8
}

// Count is what a capture counts over time, for comparisons with a game's counters.
type Count uint8

const (
	Received Count = iota // packets that the side accepted
	Acked                 // packets that it learned to have arrived
	Lost                  // packets that can no longer be acked
	Came                  // packets that came, accepted or not
	Trip                  // round trips that it measured, in nanoseconds
	counts
)

// sideTrace is what a capture shows of one side of a flow over time.
type sideTrace struct {
	datagrams []passed // all that it sent
	sent      []passed // those with a sequence number
	counts    [counts][]passed
}

// flowTrace is what a capture shows of one flow over time.
type flowTrace struct {
	flow  *analyze.Flow
	sides [2]sideTrace
}

// Trace collects when the packets of a capture passed. It is a sink of the last run. The zero
// value is ready.
type Trace struct {
	flows map[int]*flowTrace
	kept  int
	Full  bool // later packets are not in it
}

// Take implements analyze.Sink.
func (t *Trace) Take(r *analyze.Record) {
	if r.Flow == nil || r.Flow.Protocol == nil {
		return
	}
	f := t.flows[r.Flow.ID]
	if f == nil {
		if t.flows == nil {
			t.flows = map[int]*flowTrace{}
		}
		f = &flowTrace{flow: r.Flow}
		t.flows[r.Flow.ID] = f
	}
	if r.Datagram.Bytes != nil {
		side := &f.sides[r.Datagram.From]
		bytes := int64(r.Datagram.Length)
		if n := len(side.datagrams); n > 0 {
			bytes += side.datagrams[n-1].number
		}
		t.keep(&side.datagrams, passed{at: r.Datagram.At, number: bytes, ref: r.Datagram.Ref})
	}
	for i := range r.Events {
		t.event(f, &r.Events[i])
	}
}

// event keeps an event that counts something.
func (t *Trace) event(f *flowTrace, e *machine.Event) {
	side := &f.sides[e.Side]
	x := passed{at: e.At, number: e.Sequence64, ref: e.Ref, channel: e.Channel}
	switch e.Kind {
	case machine.EventSent:
		t.keep(&side.sent, x)
	case machine.EventReceived:
		t.keep(&side.counts[Received], x)
		t.keep(&side.counts[Came], x)
	case machine.EventDuplicate, machine.EventStale, machine.EventRejected:
		t.keep(&side.counts[Came], x)
	case machine.EventAcked:
		t.keep(&side.counts[Acked], x)
		if e.RTT >= 0 {
			x.number = e.RTT
			t.keep(&side.counts[Trip], x)
		}
	case machine.EventLost:
		t.keep(&side.counts[Lost], x)
	default:
	}
}

func (t *Trace) keep(list *[]passed, x passed) {
	if t.kept == traceMost {
		t.Full = true
		return
	}
	t.kept++
	*list = append(*list, x)
}

// Forget removes a flow that a limit of the analysis has removed.
func (t *Trace) Forget(f *analyze.Flow) { delete(t.flows, f.ID) }

// sorted returns the flows in the order of their numbers, each with its events in order of
// time: trackers report some of them late.
func (t *Trace) sorted() (list []*flowTrace) {
	for _, f := range t.flows {
		for i := range f.sides {
			s := &f.sides[i]
			for _, x := range append([][]passed{s.sent}, s.counts[:]...) {
				slices.SortStableFunc(x, func(x, y passed) int { return cmp.Compare(x.at, y.at) })
			}
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(x, y *flowTrace) int { return cmp.Compare(x.flow.ID, y.flow.ID) })
	return list
}

// addr returns the address of a side.
func (f *flowTrace) addr(s machine.Side) netip.AddrPort { return f.flow.Addr(s) }
