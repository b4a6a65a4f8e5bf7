package tracker

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// packed is a Tracker in few bytes. Most of a tracker is its buffers. packed stores
// them as differences between consecutive entries:
//
//	sent entry      varint: a mask of the fields that differ from what the entry before
//	                predicts. Then those fields: zigzag varints of the difference, and
//	                for ack_bits a varint of the XOR
//	received buffer varint: how many consecutive sequences follow. Then the difference
//	                to the next sequence, and so on
type packed struct {
	tracker  *Tracker // without the buffers
	sent     [2][]byte
	entries  [2]int // of the sent buffers
	received [2][]byte
	slots    [2]int          // of the received buffers
	unit     machine.Instant // of all instants, in ns: 1000 if the capture has whole microseconds, otherwise 1
}

// packedBytes is the size of a packed in bytes, without its tracker and buffers.
// Source: bound, the size of a packed tracker
const packedBytes = 160

// Pack returns the tracker in few bytes. scratch is a buffer that calls can share.
func (t *Tracker) Pack(scratch *[]byte) machine.Packed {
	if t.deferred {
		t = t.caughtUp()
	}
	p := &packed{unit: 1000}
	c := *t
	c.room, c.Held, c.receipts = nil, t.Held.clone(), t.receipts.clone()
	p.tracker = &c
	if t.Sides == nil {
		return p
	}
	c.copySides(t)
	for i := range c.Sides {
		s, from := &c.Sides[i], &t.Sides[i]
		for j := range from.SentBuffer {
			if e := &from.SentBuffer[j]; e.At%1000 != 0 || e.AckedAt%1000 != 0 {
				p.unit = 1
			}
		}
		s.State.SentBuffer, s.State.ReceivedBuffer = nil, nil
		s.PartialBuffer = slices.Clone(from.PartialBuffer)
		s.queue = from.queue.compact()
		s.trips = from.trips.Clone()
		s.estimate.transit = slices.Clone(from.estimate.transit)
		s.estimate.early = slices.Clone(from.estimate.early)
		s.headers.claimed = slices.Clone(from.headers.claimed)
		s.headers.unseen = slices.Clone(from.headers.unseen)
		s.headers.ahead = slices.Clone(from.headers.ahead)
	}
	for i := range t.Sides {
		s := &t.Sides[i]
		*scratch = packSent((*scratch)[:0], s.State.SentBuffer, s.Rules, p.unit)
		p.sent[i], p.entries[i] = slices.Clone(*scratch), len(s.State.SentBuffer)
		*scratch = packReceived((*scratch)[:0], s.State.ReceivedBuffer)
		p.received[i], p.slots[i] = slices.Clone(*scratch), len(s.State.ReceivedBuffer)
	}
	return p
}

// Unpack returns a tracker equal to the packed one.
func (p *packed) Unpack() machine.Tracker {
	t := p.tracker.Clone().(*Tracker)
	if t.Sides == nil {
		return t
	}
	for i := range t.Sides {
		s := &t.Sides[i]
		s.State.SentBuffer = unpackSent(p.sent[i], p.entries[i], s.Rules, p.unit)
		s.State.ReceivedBuffer = unpackReceived(p.received[i], p.slots[i])
	}
	return t
}

// Size returns the approximate size in bytes.
func (p *packed) Size() int {
	n := packedBytes + p.tracker.Size()
	for i := range p.sent {
		n += cap(p.sent[i]) + cap(p.received[i])
	}
	return n
}

// compact returns a copy with the smallest ring that holds the waiting candidates.
func (q *queue) compact() queue {
	c := *q
	c.ring = nil
	if q.len() == 0 {
		return c
	}
	c.ring = make([]candidate, max(4, 1<<bits.Len(uint(q.len()-1))))
	for place := q.head; place != q.tail; place++ {
		*c.at(place) = *q.at(place)
	}
	return c
}

// sentFields is the number of fields of a sent entry. Each is stored as its difference
// from the prediction.
// Source: bound, the fields of a packed entry
const sentFields = 12

// predict returns the fields expected of an entry after the one before it. ack is the
// entry's own.
func predict(before *gaffer.Sent, ack uint32, r *gaffer.Rules) (f [sentFields]uint64) {
	expected := before.AckBits
	if d := ack - before.Ack; d < 64 {
		// Its ack bits move on with the ack, and most of the new ones are set.
		expected = (before.AckBits<<d | (1<<d - 1)) & (^uint64(0) >> (64 - r.AckBits))
	}
	return [sentFields]uint64{
		uint64(before.At), uint64(before.Ref), uint64(before.AckedAt), uint64(before.AckedBy), uint64(before.Ack), expected,
		uint64(before.Sequence + 1), uint64(before.Bytes), uint64(before.Waiting), uint64(before.Newest),
		uint64(before.Flags), uint64(before.Bit),
	}
}

func packSent(to []byte, ring []gaffer.Sent, r *gaffer.Rules, unit machine.Instant) []byte {
	var before gaffer.Sent
	var changed [sentFields]uint64
	for i := range ring {
		e := ring[i]
		e.At, e.AckedAt = e.At/unit, e.AckedAt/unit
		mask := uint64(0)
		for k, want := range predict(&before, e.Ack, r) {
			have := field(&e, k)
			d := have - want
			if k == sentAckBits {
				d = have ^ want
			} else {
				d = d<<1 ^ uint64(int64(d)>>63)
			}
			if changed[k] = d; d != 0 {
				mask |= 1 << k
			}
		}
		to = binary.AppendUvarint(to, mask)
		for k := range changed {
			if mask>>k&1 == 1 {
				to = binary.AppendUvarint(to, changed[k])
			}
		}
		before = e
	}
	return to
}

const (
	// sentAck is the number of the field Ack of a sent entry.
	// Source: name, a field of a packed entry
	sentAck = 4
	// sentAckBits is the number of the field AckBits of a sent entry.
	// Source: name, a field of a packed entry
	sentAckBits = 5
)

// field returns field k of an entry.
func field(e *gaffer.Sent, k int) uint64 {
	switch k {
	case 0:
		return uint64(e.At)
	case 1:
		return uint64(e.Ref)
	case 2:
		return uint64(e.AckedAt)
	case 3:
		return uint64(e.AckedBy)
	case sentAck:
		return uint64(e.Ack)
	case sentAckBits:
		return e.AckBits
	case 6:
		return uint64(e.Sequence)
	case 7:
		return uint64(e.Bytes)
	case 8:
		return uint64(e.Waiting)
	case 9:
		return uint64(e.Newest)
	case 10:
		return uint64(e.Flags)
	default:
		return uint64(e.Bit)
	}
}

func unpackSent(from []byte, n int, r *gaffer.Rules, unit machine.Instant) []gaffer.Sent {
	if n == 0 {
		return nil
	}
	ring := make([]gaffer.Sent, n)
	next := func() uint64 {
		v, n := binary.Uvarint(from)
		from = from[n:]
		return v
	}
	var before gaffer.Sent
	for i := range ring {
		mask := next()
		var changed [sentFields]uint64
		for k := range changed {
			if mask>>k&1 == 1 {
				changed[k] = next()
			}
		}
		unzigzag := func(k int) uint64 { return changed[k]>>1 ^ -(changed[k] & 1) }
		ack := before.Ack + uint32(unzigzag(sentAck))
		f := predict(&before, ack, r)
		for k := range f {
			if k == sentAckBits {
				f[k] ^= changed[k]
			} else {
				f[k] += unzigzag(k)
			}
		}
		before = gaffer.Sent{
			At: machine.Instant(f[0]), Ref: machine.Ref(f[1]), AckedAt: machine.Instant(f[2]), AckedBy: machine.Ref(f[3]),
			Ack: ack, AckBits: f[sentAckBits],
			Sequence: uint32(f[6]), Bytes: uint32(f[7]), Waiting: uint32(f[8]), Newest: uint32(f[9]),
			Flags: gaffer.SentFlags(f[10]), Bit: uint8(f[11]),
		}
		ring[i] = before
		ring[i].At, ring[i].AckedAt = before.At*unit, before.AckedAt*unit
	}
	return ring
}

func packReceived(to []byte, ring []uint32) []byte {
	before := ^uint32(0)
	for i := 0; i < len(ring); {
		run := 0
		for i+run < len(ring) && ring[i+run] == before+1 {
			before++
			run++
		}
		to = binary.AppendUvarint(to, uint64(run))
		if i += run; i < len(ring) {
			to = binary.AppendUvarint(to, uint64(ring[i]-before))
			before = ring[i]
			i++
		}
	}
	return to
}

func unpackReceived(from []byte, n int) []uint32 {
	if n == 0 {
		return nil
	}
	ring := make([]uint32, 0, n)
	next := func() uint32 {
		v, n := binary.Uvarint(from)
		from = from[n:]
		return uint32(v)
	}
	before := ^uint32(0)
	for len(ring) < n {
		for run := next(); run > 0; run-- {
			before++
			ring = append(ring, before)
		}
		if len(ring) < n {
			before += next()
			ring = append(ring, before)
		}
	}
	return ring
}
