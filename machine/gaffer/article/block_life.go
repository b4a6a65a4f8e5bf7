package article

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// blockLife is the newest block of a side, from its first slice to the ack that names all of its
// slices. A block is a reliable message: the side begins the next one when all of it is acked.
type blockLife struct {
	begun   bool
	doubted bool // it was under way when the capture began, or the capture lacks slices of it
	chunk   uint16
	message machine.Message
	slices  []sliceLife
	left    int          // slices that no ack has named yet
	read    machine.Span // when the receiver had all slices that are named
	likely  machine.Span // the same, where both ways take equally long
	whole   machine.Instant
	wholeBy machine.Ref
	brought machine.Instant // when the slice passed that was named last
	least   time.Duration   // the shortest time from a slice to the ack that names it; 0 for none
}

// sliceLife is one slice of a block. It had not arrived before the instant after, since an ack does
// not name it. That ack left after the newest slice that it names had passed.
type sliceLife struct {
	at, after   machine.Instant // at is when its first copy passed
	ref         machine.Ref
	came, named bool
}

// slice takes a slice of the side's newest block, or of one that begins with it.
func (b *blockLife) slice(d *machine.Datagram, p *wire.Packet, f *machine.Facts, out *machine.Effects) {
	if !b.begun || b.chunk != p.Chunk || len(b.slices) != p.SliceCount {
		b.begin(d, p, f, out)
	}
	m := &b.message
	if m.Attempts < machine.MessageFrames {
		m.Frames[m.Attempts] = d.Ref
	}
	m.Attempts++
	e := &b.slices[p.SliceID]
	if e.came {
		m.Repeats++
		return
	}
	e.at, e.ref, e.came = d.At, d.Ref, true
	m.Block += p.PayloadLen
}

// begin reports the block before, and begins the one of a slice.
func (b *blockLife) begin(d *machine.Datagram, p *wire.Packet, f *machine.Facts, out *machine.Effects) {
	number, after, doubted := int64(p.Chunk), machine.Span{}, !b.begun
	if b.begun {
		number = b.message.ID + int64(int16(p.Chunk-b.chunk))
		if b.left == 0 {
			after = machine.Span{From: min(b.whole, d.At), To: d.At, Certainty: machine.Certain}
			b.message.Acked, b.message.AckedBy, b.message.AckedAt = machine.Yes, b.wholeBy, d.At
			if f.Vantage.Near(d.From) {
				b.message.AckedAt = b.whole
			}
		}
		b.report(f, out)
	}
	if f.Vantage.Near(d.From) {
		after = machine.At(d.At, machine.Certain)
		if f.Supposed[d.From] || doubted {
			after.Certainty = machine.Likely
		}
	}
	list := slices.Grow(b.slices[:0], p.SliceCount)[:p.SliceCount]
	clear(list)
	*b = blockLife{
		begun: true, doubted: doubted, chunk: p.Chunk, slices: list, left: p.SliceCount, least: b.least,
		read: machine.At(d.At, machine.Certain), likely: machine.At(d.At, machine.Likely),
		message: machine.Message{
			From: d.From, Mode: machine.ModeReliable, Channel: -1, ID: number, IDBits: 16, Untyped: true, Bits: -1,
			Sequence: uint32(p.Chunk), Sequence64: number, At: d.At, BlockedBy: -1, Sent: after,
			Parts: p.SliceCount,
		},
	}
}

// ack takes an ack of the receiver. It names the slices that had arrived when it was sent.
func (b *blockLife) ack(d *machine.Datagram, p *wire.Packet) {
	if !b.begun || p.Chunk != b.chunk || p.SliceCount != len(b.slices) {
		return
	}
	// The receiver sent the ack after the newest of its slices had passed, or been sent, once.
	had := b.message.At
	for k := range b.slices {
		if e := &b.slices[k]; e.came && p.SliceCame(k) {
			had = max(had, e.at)
		}
	}
	for k := range b.slices {
		e := &b.slices[k]
		switch {
		case e.named:
		case !p.SliceCame(k):
			e.after = max(e.after, had)
		default:
			b.name(e, d)
		}
	}
}

// name records that an ack names a slice for the first time.
func (b *blockLife) name(e *sliceLife, d *machine.Datagram) {
	e.named = true
	b.left--
	b.read.To, b.likely.To = max(b.read.To, d.At), max(b.likely.To, d.At)
	if !e.came {
		b.doubted = true
	} else {
		if trip := d.At.Sub(e.at); trip > 0 && (b.least == 0 || trip < b.least) {
			b.least = trip
		}
		b.brought = e.at
		b.message.DeliveredBy = e.ref
		b.read.From = min(max(b.read.From, e.at, e.after), b.read.To)
		b.likely.From = min(max(b.likely.From, b.read.From, e.at.Add(b.least/2)), d.At)
	}
	if b.left == 0 {
		b.whole, b.wholeBy = d.At, d.Ref
		b.likely.To = max(b.likely.From, d.At.Add(-b.least/2))
	}
}

// report reports the block as a message.
func (b *blockLife) report(f *machine.Facts, out *machine.Effects) {
	if !b.begun {
		return
	}
	m := &b.message
	if b.left > 0 {
		m.DeliveredBy = 0
	} else {
		m.Named, m.Delivered, m.Deliveries, m.DeliveredAt = true, machine.Yes, 1, b.whole
		m.Certainty = machine.Certain
		if f.Vantage.Near(m.From.Other()) {
			m.DeliveredAt = max(b.brought, b.read.From)
		}
		m.Arrived, m.Estimate = b.read, b.likely
		if b.doubted {
			m.Arrived.Certainty = machine.Likely
		}
		m.InOrder = m.Arrived
	}
	for k := range b.slices {
		if !b.slices[k].came {
			m.Block = 0 // its size is unknown
		}
	}
	out.Messages = append(out.Messages, *m)
	b.begun = false
}
