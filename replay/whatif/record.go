package whatif

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// recorder records what passes of one flow, in the time of the tap.
type recorder struct {
	flow    *analyze.Flow
	stage   machine.Stage
	vantage machine.Vantage
	sides   [2]recorded
	trips   time.Duration // the shortest round trip; 0 if there is none yet
	seed    maphash.Seed
	gone    []machine.Transit // answers of the far side that were lost before the tap
	tooMany bool
}

// recorded holds the records of one side.
type recorded struct {
	sent     []machine.Transit
	packets  map[int64]int // index in sent, by number
	messages []machine.TraceMessage
	last     uint64 // hash of the newest datagram
}

// datagramsMost is the most datagrams kept of one flow: 72 bytes each.
const datagramsMost = 1 << 21

// datagramCost is the memory for one recorded datagram while its flow runs. It
// counts the record, the trace, two networks, and the index by number.
const datagramCost = 5 * int(unsafe.Sizeof(machine.Transit{}))

// size returns the approximate bytes that the recorder uses.
func (r *recorder) size() (n int) {
	for i := range r.sides {
		x := &r.sides[i]
		n += datagramCost*len(x.sent) + 3*int(unsafe.Sizeof(machine.TraceMessage{}))*len(x.messages)
	}
	return n
}

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
	x, at := &r.sides[d.From], clamped(d.At)
	hash := maphash.Bytes(r.seed, d.Bytes)
	if n := len(x.sent); n > 0 && hash == x.last && at.Sub(x.sent[n-1].Left) < copySpan && !r.near(d.From) {
		// The network made this copy: its sender would not repeat so soon.
		x.sent[n-1].Duplicate = at
		return
	}
	x.last = hash
	if len(r.sides[0].sent)+len(r.sides[1].sent) >= datagramsMost {
		r.tooMany = true
		return
	}
	x.sent = append(x.sent,
		machine.Transit{Left: at, Ref: d.Ref, Number: -1, Length: d.Length, Purpose: r.stage.Purpose(d)})
}

// clamped limits an instant to 146 years around the epoch, so that sums and
// differences fit 64 bits. A capture can hold any instant.
func clamped(at machine.Instant) machine.Instant { return min(max(at, -1<<62), 1<<62) }

// copySpan is how soon a second datagram of the same bytes is the network's
// copy.
const copySpan = 4 * time.Millisecond

func (r *recorder) near(s machine.Side) bool { return r.vantage.Near(s) }

// find returns the index of the datagram of a frame. It returns false when
// there is none.
func (x *recorded) find(ref machine.Ref) (int, bool) {
	return slices.BinarySearchFunc(x.sent,
		ref, func(t machine.Transit, ref machine.Ref) int { return cmp.Compare(t.Ref, ref) })
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
				t.Fate, t.Arrives, t.Certainty = machine.Yes, clamped(e.At), e.Certainty
			}
		}
	case machine.EventAcked:
		if e.RTT > 0 && time.Duration(e.RTT) < r.stage.Silence() && r.near(e.Side) &&
			(r.trips == 0 || time.Duration(e.RTT) < r.trips) {
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
		Mode: m.Mode, Channel: m.Channel, Order: r.stage.Order(m), Type: m.Type, Bits: m.Bits, Block: m.Block,
		Asked:    clamped(m.At),
		Attempts: m.Attempts, Delivered: m.Delivered, At: clamped(m.DeliveredAt), Wait: m.Wait, Certainty: m.Certainty,
		Frames: m.Frames,
	}
	if m.Acked == machine.Yes {
		t.Settled = clamped(m.AckedAt)
	}
	x.messages = append(x.messages, t)
}

// errVantage is the reason why a flow cannot run again when the tap is at
// neither side.
var errVantage = fmt.Errorf("the capture was taken at neither side, so what the network did is not known " +
	"(--vantage says where it was taken)")

// trace makes the trace of what was recorded, and its silences.
func (r *recorder) trace() (*machine.Trace, silences, error) {
	if !r.near(machine.A) && !r.near(machine.B) {
		return nil, silences{}, errVantage
	}
	if r.tooMany {
		return nil, silences{}, fmt.Errorf("it has more than %d datagrams: cut a part of the capture out", datagramsMost)
	}
	t := &machine.Trace{}
	for i := range r.sides {
		r.sides[i].sent = merge(r.sides[i].sent)
		// In a capture whose clock was set back they are out of order.
		slices.SortStableFunc(r.sides[i].sent, func(a, b machine.Transit) int { return cmp.Compare(a.Left, b.Left) })
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
			x.Tick = y.Tick // no better estimate exists
		}
	}
	// Settle the side at the tap first: its unanswered questions show losses of
	// the other.
	for _, near := range []bool{true, false} {
		for i := range t.Sides {
			if t.Sides[i].Near == near {
				r.settle(t, machine.Side(i))
			}
		}
	}
	if r.tooMany {
		return nil, silences{}, fmt.Errorf("its packet numbers name more than %d lost packets for each that came", gapsMost)
	}
	seen := false // needed because instants before 1970 are negative
	for i := range t.Sides {
		sent := t.Sides[i].Sent
		n := len(sent)
		switch {
		case n == 0:
		case !seen:
			t.Start, t.End, seen = sent[0].Left, sent[n-1].Left, true
		default:
			t.Start, t.End = min(t.Start, sent[0].Left), max(t.End, sent[n-1].Left)
		}
	}
	cuts := silencesOf(t, r.stage.Silence())
	cuts.shift(t)
	for i := range t.Sides {
		t.Sides[i].Frames = framesOf(&t.Sides[i])
	}
	return t, cuts, nil
}

// measure finds the shortest round trip among questions that were asked once.
func (r *recorder) measure(asking, answering []machine.Transit) {
	for _, e := range exchanges(asking, answering) {
		if len(e.asks) != 1 || len(e.answers) != 1 {
			continue
		}
		if d := answering[e.answers[0]].Left.Sub(asking[e.asks[0]].Left); d > 0 && d < r.stage.Silence() &&
			(r.trips == 0 || d < r.trips) {
			r.trips = d
		}
	}
}
