package merge

import (
	"errors"
	"math"
	"sort"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Tap is what one capture saw.
type Tap struct {
	Session *analyze.Session
	Flows   []*Flow // flows with packets to pair

	shortest int // captured bytes of the shortest payload that a snap length cut; 0 if none was cut
	byFlow   map[*analyze.Flow]*Flow
	room     int // approximate bytes left for packets; negative if they did not fit
}

// Flow is one flow as a tap saw it.
type Flow struct {
	*analyze.Flow
	passed [2][]passage // by side, in order
	hops   [2]uint8     // TTL of the first packet of each side; 0 if unknown
}

// passage is one datagram, or one message of a stream, that passed a tap.
type passage struct {
	at      machine.Instant
	ref     machine.Ref
	content uint64
	outcome outcome
	fate    fate
	mate    int32 // index of the same packet at the other tap; -1 if there is none
}

// fate is the fate of a packet according to the analysis of the tap's own
// capture.
type fate uint8

const (
	fateOpen    fate = iota
	fateArrived      // the receiver had it, whatever it did with it
	fateLost         // it was never acknowledged, and cannot be any more
)

// passageCost is the approximate memory of a packet in bytes. It is the passage
// in a list that grows by a quarter, and its place in the comparison.
const passageCost = 2 * int(unsafe.Sizeof(passage{}))

// flowCost is the approximate memory of a flow in bytes, without its packets.
// It includes analyze.Flow, which outlives its session here. A map of pointers
// to pointers is twice as large as its contents after growth.
const flowCost = int(unsafe.Sizeof(analyze.Flow{})+unsafe.Sizeof(Flow{})) + 2*2*int(unsafe.Sizeof(uintptr(0)))

var errTooLarge = errors.New("its packets take too much memory: give more by --memory, or merge parts of the captures")

// leastPrefix is the smallest number of bytes that identifies a packet.
const leastPrefix = 8

// load reads a capture. Packets are identified by their length and their first
// prefix bytes, or by all bytes if prefix is 0. For a capture that ends early,
// load returns what came before, and the error.
func load(src analyze.Rewinder, o analyze.Options, prefix int) (*Tap, error) {
	t := &Tap{byFlow: map[*analyze.Flow]*Flow{}}
	o.Sink = func(r *analyze.Record) { t.take(r, prefix) }
	t.room = math.MaxInt
	if o.Limits.Bytes > 0 {
		t.room = o.Limits.Bytes / 3 // one part for each tap, and one for the pairing
	}
	src = analyze.Until(src, func() error {
		if t.room < 0 {
			return errTooLarge
		}
		return nil
	})
	var err error
	if t.Session, err = analyze.RunTwice(src, o); err != nil {
		var cut *capture.CutError
		var damaged *capture.DamageError
		if !errors.As(err, &cut) && !errors.As(err, &damaged) {
			return nil, err
		}
	}
	if t.room < 0 { // the last packet was too much
		return nil, errTooLarge
	}
	return t, err
}

func (t *Tap) take(r *analyze.Record, prefix int) {
	if r.Flow == nil {
		return
	}
	f := t.byFlow[r.Flow]
	d := &r.Datagram
	stream := r.Flow.Transport == capture.TCP
	if (!stream || r.Message) && d.Length > 0 && (r.Packet == nil || !r.Packet.Duplicate) {
		if t.room -= passageCost; t.room < 0 {
			return
		}
		if f == nil {
			t.room -= flowCost
			f = &Flow{Flow: r.Flow}
			t.byFlow[r.Flow] = f
			t.Flows = append(t.Flows, f)
		}
		if f.hops[d.From] == 0 && r.Packet != nil {
			f.hops[d.From] = r.Packet.TTL
		}
		if n := len(d.Bytes); n < d.Length && (t.shortest == 0 || n < t.shortest) {
			t.shortest = max(n, 1)
		}
		f.passed[d.From] = append(f.passed[d.From],
			passage{at: d.At, ref: d.Ref, content: digest(d.Bytes, d.Length, prefix), mate: -1})
	}
	if f == nil {
		return
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.Kind == machine.EventLost {
			f.settle(e.Side, e.About, fateLost)
		}
		if e.Certainty != machine.Certain {
			continue
		}
		switch e.Kind {
		case machine.EventReceived, machine.EventDuplicate, machine.EventStale, machine.EventRejected:
			f.settle(e.Side.Other(), e.About, fateArrived)
		}
	}
}

// settle records the fate of the packet in a frame. It does not change a packet
// that arrived.
func (f *Flow) settle(from machine.Side, ref machine.Ref, to fate) {
	list := f.passed[from]
	i := sort.Search(len(list), func(i int) bool { return list[i].ref >= ref })
	if i < len(list) && list[i].ref == ref && list[i].fate != fateArrived {
		list[i].fate = to
	}
}

// digest hashes the bytes that identify a packet, and its length on the wire.
// If prefix is not 0, only that many bytes count.
func digest(b []byte, length, prefix int) uint64 {
	if prefix > 0 && len(b) > prefix {
		b = b[:prefix]
	}
	return machine.Digest(uint64(length), b)
}
