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
	Flows   []*Flow // those with packets to pair

	shortest int // captured bytes of the shortest payload that a snap length cut; 0 for none
	byFlow   map[*analyze.Flow]*Flow
	room     int // bytes that packets may take yet, about; negative where they did not fit
}

// Flow is one flow as a tap saw it.
type Flow struct {
	*analyze.Flow
	passed [2][]passage // by side, in order
	hops   [2]uint8     // time to live of the first packet of each side; 0 unknown
}

// passage is one datagram, or one message of a stream, that passed a tap.
type passage struct {
	at      machine.Instant
	ref     machine.Ref
	content uint64
	outcome outcome
	fate    fate
	mate    int32 // the same packet among those of the other tap; -1 for none
}

// fate is what the analysis of the tap's own capture tells of a packet.
type fate uint8

const (
	fateOpen    fate = iota
	fateArrived      // the receiver had it, whatever it made of it
	fateLost         // it never was acknowledged, and cannot be any more
)

// passageCost is what a packet takes, about, in bytes: itself, in a list that grows
// by a quarter, and where packets are compared.
const passageCost = 2 * int(unsafe.Sizeof(passage{}))

// flowCost is what a flow takes beside its packets, about, in bytes: the analysis'
// own outlives its session here. A map of pointers to pointers is twice as large as
// what is in it after it has grown.
const flowCost = int(unsafe.Sizeof(analyze.Flow{})+unsafe.Sizeof(Flow{})) + 2*2*int(unsafe.Sizeof(uintptr(0)))

var errTooLarge = errors.New("its packets take too much memory: give more by --memory, or merge parts of the captures")

// leastPrefix is the fewest bytes that tell a packet from others.
const leastPrefix = 8

// load reads a capture. Packets are known by their first bytes, as many as prefix
// says, and their length; by all of them where it is 0. A capture that ends early
// gives what came before, and the error.
func load(src analyze.Rewinder, o analyze.Options, prefix int) (*Tap, error) {
	t := &Tap{byFlow: map[*analyze.Flow]*Flow{}}
	o.Sink = func(r *analyze.Record) { t.take(r, prefix) }
	t.room = math.MaxInt
	if o.Limits.Bytes > 0 {
		t.room = o.Limits.Bytes / 3 // there are two taps, and what pairs them
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

// settle notes the fate of the packet in a frame; what arrived did so.
func (f *Flow) settle(from machine.Side, ref machine.Ref, to fate) {
	list := f.passed[from]
	i := sort.Search(len(list), func(i int) bool { return list[i].ref >= ref })
	if i < len(list) && list[i].ref == ref && list[i].fate != fateArrived {
		list[i].fate = to
	}
}

// digest tells apart what the taps have of packets: the bytes, up to prefix of them
// where that is not 0, and the length on the wire.
func digest(b []byte, length, prefix int) uint64 {
	if prefix > 0 && len(b) > prefix {
		b = b[:prefix]
	}
	return machine.Digest(uint64(length), b)
}
