package whatif

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// recorder takes down what passes of one flow, in the time of the tap.
type recorder struct {
	flow    *analyze.Flow
	stage   machine.Stage
	vantage machine.Vantage
	sides   [2]recorded
	trips   time.Duration // the shortest round trip; 0 for none yet
	seed    maphash.Seed
	gone    []machine.Transit // answers of the far side that were lost before the tap
	tooMany bool
}

// recorded is one side.
type recorded struct {
	sent     []machine.Transit
	packets  map[int64]int // by number
	messages []machine.TraceMessage
	last     uint64 // hash of the newest datagram
}

// datagramsMost bounds what is kept of one flow: 96 bytes each.
const datagramsMost = 1 << 21

// observe takes a record of the flow.
func (r *recorder) observe(rec *analyze.Record) {
	if d := &rec.Datagram; len(d.Bytes) > 0 {
		r.datagram(d)
	}
	for i := range rec.Events {
		r.event(&rec.Events[i])
	}
	for i := range rec.Messages {
		r.message(&rec.Messages[i])
	}
}

func (r *recorder) datagram(d *machine.Datagram) {
	x := &r.sides[d.From]
	hash := maphash.Bytes(r.seed, d.Bytes)
	if n := len(x.sent); n > 0 && hash == x.last && d.At.Sub(x.sent[n-1].Left) < copySpan && !r.near(d.From) {
		// The network made a copy; its own sender would not send one so soon.
		x.sent[n-1].Again = d.At
		return
	}
	x.last = hash
	if len(r.sides[0].sent)+len(r.sides[1].sent) >= datagramsMost {
		r.tooMany = true
		return
	}
	x.sent = append(x.sent, machine.Transit{Left: d.At, Ref: d.Ref, Number: -1, Length: d.Length, Sight: r.stage.Sight(d)})
}

// copySpan is within what time a second datagram of the same bytes is a copy.
const copySpan = 4 * time.Millisecond

func (r *recorder) near(s machine.Side) bool { return r.vantage.Near(s) }

// find gives the datagram of a frame; false where there is none.
func (x *recorded) find(ref machine.Ref) (int, bool) {
	return slices.BinarySearchFunc(x.sent, ref, func(t machine.Transit, ref machine.Ref) int { return cmp.Compare(t.Ref, ref) })
}

func (r *recorder) event(e *machine.Event) {
	switch e.Kind {
	case machine.EventSent:
		x := &r.sides[e.Side]
		if i, ok := x.find(e.Ref); ok && x.sent[i].Role == machine.RolePacket && x.sent[i].Number < 0 {
			x.sent[i].Number = e.Sequence64
			if x.packets == nil {
				x.packets = map[int64]int{}
			}
			x.packets[e.Sequence64] = i
		}
	case machine.EventReceived:
		x := &r.sides[e.Side.Other()]
		if i, ok := x.packets[e.Sequence64]; ok && !r.near(e.Side) {
			if t := &x.sent[i]; t.Fate != machine.Yes {
				t.Fate, t.Arrives, t.Certainty = machine.Yes, e.At, e.Certainty
			}
		}
	case machine.EventAcked:
		if e.RTT > 0 && r.near(e.Side) && (r.trips == 0 || time.Duration(e.RTT) < r.trips) {
			r.trips = time.Duration(e.RTT)
		}
	}
}

func (r *recorder) message(m *machine.Message) {
	if m.Mode == machine.ModeInternal {
		return
	}
	x := &r.sides[m.From]
	t := machine.TraceMessage{
		Mode: m.Mode, Channel: m.Channel, Order: r.stage.Order(m), Type: m.Type, Bits: m.Bits, Block: m.Block, Asked: m.At,
		Attempts: m.Attempts, Delivered: m.Delivered, At: m.DeliveredAt, Wait: m.Wait, Certainty: m.Certainty, Frames: m.Frames,
	}
	if m.Acked == machine.Yes {
		t.Settled = m.AckedAt
	}
	x.messages = append(x.messages, t)
}

// errVantage says why a flow cannot be run again.
var errVantage = fmt.Errorf("the tap stands at neither side: what the network did is not known (--vantage tells where it stands)")

// trace makes the trace of what was recorded.
func (r *recorder) trace() (*machine.Trace, error) {
	if !r.near(machine.A) && !r.near(machine.B) {
		return nil, errVantage
	}
	if r.tooMany {
		return nil, fmt.Errorf("it has more than %d datagrams: cut a part of the capture out", datagramsMost)
	}
	t := &machine.Trace{}
	for i := range r.sides {
		r.sides[i].sent = merge(r.sides[i].sent)
	}
	for i := range r.sides {
		if r.near(machine.Side(i)) {
			r.measure(r.sides[i].sent, r.sides[1-i].sent)
		}
	}
	if r.vantage != machine.VantageBoth {
		t.OneWay = r.trips / 2
	}
	for i := range t.Sides {
		x, from := &t.Sides[i], &r.sides[i]
		x.Near, x.Sent, x.Messages = r.near(machine.Side(i)), from.sent, from.messages
		x.Tick = tickOf(x.Sent)
	}
	for i := range t.Sides {
		if x, y := &t.Sides[i], &t.Sides[1-i]; x.Tick == 0 && !x.Near {
			x.Tick = y.Tick // what else is there to go by
		}
	}
	// The side at the tap first: what it asked without an answer tells of the other.
	for _, near := range []bool{true, false} {
		for i := range t.Sides {
			if t.Sides[i].Near == near {
				r.settle(t, machine.Side(i))
			}
		}
	}
	for i := range t.Sides {
		x := &t.Sides[i]
		if n := len(x.Sent); n > 0 {
			if t.Start == 0 || x.Sent[0].Left < t.Start {
				t.Start = x.Sent[0].Left
			}
			t.End = max(t.End, x.Sent[n-1].Left)
		}
		x.Frames = framesOf(x)
	}
	return t, nil
}

// measure looks for the shortest round trip among questions that were asked once.
func (r *recorder) measure(asking, answering []machine.Transit) {
	for _, e := range exchanges(asking, answering) {
		if len(e.asks) != 1 || len(e.answers) != 1 {
			continue
		}
		if d := answering[e.answers[0]].Left.Sub(asking[e.asks[0]].Left); d > 0 && (r.trips == 0 || d < r.trips) {
			r.trips = d
		}
	}
}
