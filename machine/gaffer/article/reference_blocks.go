package article

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ChannelBlock is the channel of Blocks. Submit queues a block with any content. The
// block is delivered whole, with its unwrapped chunk id as ID.
// Source: name, a channel of the reference
const ChannelBlock = 2

// BlockOptions set up a Blocks endpoint.
type BlockOptions struct {
	Profile  *wire.Profile // one with slices
	Side     machine.Side
	Every    time.Duration // least time between two slices; 0 means 10 ms
	Resend   time.Duration // least time between two sends of one slice; 0 means 0.1 s
	AckEvery time.Duration // least time between two acks; 0 means 0.1 s
	First    uint16        // id of the first block
	// AsSample makes the sender do what the series' sample does where that contradicts the
	// article:
	//
	//   - It never stores when it sent a slice, so nothing waits for Resend.
	//   - Its round continues one slice after the slice at which it began, not after the
	//     slice that it sent. So it may send one slice twice in a row.
	AsSample bool
	Fault    *Fault
}

// Blocks is the reference of "Sending Large Blocks of Data". It sends one block at a
// time, cut into slices. It sends each slice again until the receiver's bits name it.
// The next block begins when all are named.
type Blocks struct {
	options BlockOptions
	fault   *Fault
	send    blockSender
	receive blockReceiver
	packet  wire.Packet
	bytes   []byte
}

// blockSender holds the blocks to send. The first of the queue is being sent.
type blockSender struct {
	queue   [][]byte
	chunk   int64 // id of the first block of the queue, unwrapped
	round   sliceRound
	latest  machine.Instant
	started bool // latest is set
}

// blockReceiver holds the block that is being received.
type blockReceiver struct {
	sliceIntake
	parts   [][]byte
	ackedAt machine.Instant
	acked   bool // ackedAt is set
	// Of a fault: what the last ack named, and of which block.
	saidOf uint16
	said   sliceSet
}

// NewBlocks returns an endpoint that has neither sent nor received a block.
func NewBlocks(o BlockOptions) (*Blocks, error) {
	if o.Profile == nil || o.Profile.Slices == 0 {
		return nil, errors.New("blocks endpoint: expected a profile with slices")
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Every, 10 * time.Millisecond}, {&o.Resend, 100 * time.Millisecond}, {&o.AckEvery, 100 * time.Millisecond}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	fault := rightAll
	if o.Fault != nil {
		fault = o.Fault
	}
	if fault.blocks != nil {
		fault.blocks(&o)
	}
	if o.AsSample {
		o.Resend = 0
	}
	b := &Blocks{options: o, fault: fault}
	b.send.chunk, b.receive.chunk = int64(o.First), int64(o.First)
	return b, nil
}

// Idle reports whether all submitted blocks are acked.
func (b *Blocks) Idle() bool { return len(b.send.queue) == 0 }

// Step processes one input. See machine.Endpoint.
func (b *Blocks) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Submit:
		most := b.options.Profile.Slices * b.options.Profile.SliceSize
		if in.Channel != ChannelBlock || len(in.Payload) == 0 || len(in.Payload) > most {
			return fmt.Errorf("submit: %d bytes on channel %d, expected 1 to %d bytes on channel %d", len(in.Payload),
				in.Channel, most, ChannelBlock)
		}
		b.send.queue = append(b.send.queue, slices.Clone(in.Payload))
	case machine.Arrive:
		if b.options.Profile.Parse(in.Bytes, len(in.Bytes), &b.packet) != nil {
			return nil
		}
		switch b.packet.Kind {
		case wire.KindSlice:
			b.arriveSlice(now, in.Bytes[b.packet.PayloadOffset:b.packet.PayloadOffset+b.packet.PayloadLen], out)
		case wire.KindSliceAck:
			b.arriveAck(now, out)
		}
	case machine.Wake:
		b.sendSlice(now, out)
		b.sendAck(now, out)
	default:
		return fmt.Errorf("step: %T, expected a datagram, a submission or a wake", in)
	}
	return nil
}

// begin starts the next block of the queue, unless one is being sent.
func (b *Blocks) begin() {
	s := &b.send
	if s.round.count > 0 || len(s.queue) == 0 {
		return
	}
	size := b.options.Profile.SliceSize
	s.round.begin((len(s.queue[0]) + size - 1) / size)
}

// due returns the next slice of the round that has waited for Resend, and when it may
// be sent. If all slices still wait, slice is -1 and at is when the first of them may
// be sent. The result ok is false if there is nothing to send.
func (b *Blocks) due(now machine.Instant) (slice int, at machine.Instant, ok bool) {
	b.begin()
	s := &b.send
	free := func(k int) machine.Instant {
		if !s.round.sent.has(k) {
			return 0
		}
		return s.round.at[k].Add(b.options.Resend)
	}
	choose := s.round.next
	if b.fault.backwards {
		choose = s.round.last
	}
	slice = choose(func(k int) bool {
		if f := free(k); !ok || f < at {
			at, ok = f, true
		}
		return free(k) > now
	})
	if slice >= 0 {
		at = free(slice)
	}
	if s.started {
		at = max(at, s.latest.Add(b.options.Every))
	}
	return slice, at, ok
}

func (b *Blocks) sendSlice(now machine.Instant, out *machine.Effects) {
	k, at, ok := b.due(now)
	if !ok || k < 0 || at > now {
		return
	}
	s, size := &b.send, b.options.Profile.SliceSize
	data := s.queue[0][k*size : min((k+1)*size, len(s.queue[0]))]
	pk := wire.Packet{Kind: wire.KindSlice, Type: 0, Chunk: uint16(s.chunk), SliceID: k, SliceCount: s.round.count}
	if b.fault.slice != nil {
		data = b.fault.slice(b, &pk, data)
	}
	b.bytes = b.options.Profile.Append(b.bytes[:0], &pk, data)
	out.Send(0, machine.SendDatagram, b.bytes)
	kind := machine.EventSent
	if s.round.sent.has(k) {
		kind = machine.EventResent
	}
	b.tell(now, kind, s.chunk, out)
	s.round.sends(k, now, b.options.AsSample)
	s.latest, s.started = now, true
}

// arriveAck applies an ack of the block that is being sent.
func (b *Blocks) arriveAck(now machine.Instant, out *machine.Effects) {
	s := &b.send
	if s.round.count == 0 || b.packet.Chunk != uint16(s.chunk) || b.packet.SliceCount != s.round.count {
		return
	}
	whole := s.round.learns((*sliceSet)(&b.packet.SliceAcked))
	if b.fault.early && slips(s.chunk) && s.round.acked.size() == s.round.count-1 {
		whole = true
	}
	if whole {
		b.tell(now, machine.EventAcked, s.chunk, out)
		s.queue[0] = nil
		s.queue, s.round.count = s.queue[1:], 0
		if b.fault.skips && slips(s.chunk) {
			s.chunk++
		}
		s.chunk++
	}
}

// arriveSlice processes a slice, and delivers the block that it completes.
func (b *Blocks) arriveSlice(now machine.Instant, data []byte, out *machine.Effects) {
	r, p := &b.receive, &b.packet
	fresh, whole := r.arrive(p.Chunk, p.SliceID, p.SliceCount)
	if !fresh {
		return
	}
	if r.parts == nil {
		r.parts = make([][]byte, p.SliceCount)
	}
	r.parts[p.SliceID] = slices.Clone(data)
	if !whole {
		return
	}
	out.Hand(machine.Delivery{Channel: ChannelBlock, ID: uint64(r.chunk - 1), Payload: slices.Concat(r.parts...)})
	b.tell(now, machine.EventDelivered, r.chunk-1, out)
	r.parts = nil
}

func (b *Blocks) sendAck(now machine.Instant, out *machine.Effects) {
	r := &b.receive
	c, due := r.claim()
	if !due || r.acked && now < r.ackedAt.Add(b.options.AckEvery) {
		return
	}
	r.claimed()
	if b.fault.ack != nil && slips(int64(c.chunk)) {
		b.fault.ack(b, &c)
	}
	r.ackedAt, r.acked = now, true
	pk := wire.Packet{Kind: wire.KindSliceAck, Type: 1, Chunk: c.chunk, SliceCount: c.count, SliceAcked: c.came}
	b.bytes = b.options.Profile.Append(b.bytes[:0], &pk, nil)
	out.Send(0, machine.SendDatagram, b.bytes)
}

func (b *Blocks) tell(now machine.Instant, kind machine.EventKind, chunk int64, out *machine.Effects) {
	out.Events = append(out.Events, machine.Event{
		Kind: kind, Side: b.options.Side, Certainty: machine.Certain, Sequence: uint32(uint16(chunk)), Sequence64: chunk,
		At: now, RTT: -1,
	})
}

// Deadline returns when the next slice or ack may be sent.
func (b *Blocks) Deadline() (machine.Instant, bool) {
	_, at, ok := b.due(math.MinInt64)
	if r := &b.receive; r.current || r.before {
		free := machine.Instant(0)
		if r.acked {
			free = r.ackedAt.Add(b.options.AckEvery)
		}
		if !ok || free < at {
			at, ok = free, true
		}
	}
	return at, ok
}

// Inspect draws the slices of the blocks that are being sent and received.
func (b *Blocks) Inspect(v *machine.View) {
	v.Reset()
	sent := machine.Window{Name: "slices sent", Next: b.send.chunk, Size: b.options.Profile.Slices, Grade: machine.Certain}
	for k := range b.send.round.count {
		cell := machine.CellEmpty
		if b.send.round.acked.has(k) {
			cell = machine.CellAcked
		} else if b.send.round.sent.has(k) {
			cell = machine.CellSent
		}
		sent.Cells = append(sent.Cells, cell)
	}
	received := machine.Window{
		Name: "slices received", Next: b.receive.chunk, Size: b.options.Profile.Slices,
		Grade: machine.Certain,
	}
	for _, p := range b.receive.parts {
		cell := machine.CellEmpty
		if p != nil {
			cell = machine.CellReceived
		}
		received.Cells = append(received.Cells, cell)
	}
	v.Windows = append(v.Windows, sent, received)
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "blocks waiting", Value: float64(len(b.send.queue)), Grade: machine.Certain})
}

// Clone returns an independent copy.
func (b *Blocks) Clone() machine.Endpoint {
	c := *b
	c.send.queue = slices.Clone(b.send.queue) // the contents of a block never change
	c.send.round.at = slices.Clone(b.send.round.at)
	c.receive.parts = slices.Clone(b.receive.parts)
	c.bytes = nil
	return &c
}
