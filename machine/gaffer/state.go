// Package gaffer has the state of an endpoint of the Gaffer family, and the transitions
// that change it. The state is the sequence buffers of "Reliable Ordered Messages" and
// of the libraries that descend from it.
//
//	sent buffer                         received buffer
//	index = sequence mod size           index = sequence mod size
//	+------+------+-----+------+        +------+------+-----+------+
//	| 512  | 513  | ... | 511  |        | 768  | 257* | ... | 767  |   * stored 257, asked 769:
//	| acked|      |     | acked|        |      |      |     |      |     not the same, so empty
//	+------+------+-----+------+        +------+------+-----+------+
//
// State (this file) is the only transition code. Two drivers share it. Package endpoint
// decides what to send. Package tracker reads from a capture what both endpoints must
// have done.
//
// Source of truth: the article's listings, and reliable 1.4.0 where the article is
// silent (windows, duplicates, fragments).
package gaffer

import (
	"math"
	"unsafe"

	"github.com/ackscope/ackscope/wire/seq"
)

// Rules are the settings of an endpoint's buffers. They never travel on the wire: a
// profile states them.
type Rules struct {
	SequenceBits seq.Space // width of a sequence number: 8, 16 or 32
	AckBits      int       // width of ack_bits: 8 to 64
	AckBelow     bool      // bit n of ack_bits means ack-n-1; otherwise ack-n, as in the article
	Sent         int       // entries of the sent buffer
	// SentUnknown and ReceivedUnknown: the profile does not say how many entries Sent and
	// Received are, so they are assumed.
	SentUnknown, ReceivedUnknown bool
	Received                     int // entries of the received buffer, which is also the receive window; at least 2
	Partial                      int // packets that can be in reassembly at a time; 0: the dialect has no fragments

	DeliverDuplicates bool // deliver a duplicate again, and read its acks again
	DuplicatesUnknown bool // whether it does so is not known: the state drops duplicates
	DeliverStale      bool // deliver a packet older than the window, and read its acks
	// ZeroedAckBits are bits of ack_bits that a header has as 0 unless all of them are set.
	// While they are 0 they say nothing of their packets.
	ZeroedAckBits uint64
	FragmentsWait bool // a packet of fragments moves the receive window once it is whole
	// NoStaleClear keeps the entries between the newest sequence and a newer one, as the
	// article's first listing does. Entries of the previous wrap then reappear.
	NoStaleClear bool
}

// Mask returns the largest sequence number.
func (r *Rules) Mask() uint32 { return ^uint32(0) >> r.unused() }

// unused returns how many high bits of a uint32 a sequence number leaves unused.
func (r *Rules) unused() uint32 { return (32 - uint32(r.SequenceBits)) & 31 }

// Newer reports whether sequence a is newer than b.
func (r *Rules) Newer(a, b uint32) bool { return r.Distance(a, b) > 0 }

// Distance returns how far sequence a is ahead of b. It is negative when a is behind b.
// The result equals seq.Space.Distance. Sign extension makes it cheaper: trackers call
// it a dozen times per packet.
func (r *Rules) Distance(a, b uint32) int {
	n := r.unused()
	d := int32((a - b) << n)
	if d == math.MinInt32 && a > b {
		return 1 << (r.SequenceBits - 1) // exactly half the range: the larger number is newer
	}
	return int(d >> n)
}

// Claims are the packets that a header names, in one form for every dialect. Bit n of
// Named stands for packet Newest-n. For example, ack 9 with ack_bits 0b101 names 9 and
// 7. A header of an endpoint that has received nothing names none.
type Claims struct {
	Newest uint32
	Named  uint64
	Width  int // how many sequences the header covers, from Newest downwards
}

// Claims converts the ack fields of a header.
func (r *Rules) Claims(ack uint32, ackBits uint64) Claims {
	if !r.AckBelow {
		return Claims{ack, ackBits, r.AckBits}
	}
	if ack == r.Mask() && ackBits == 0 {
		return Claims{ack, 0, r.AckBits + 1}
	}
	return Claims{ack, ackBits<<1 | 1, min(r.AckBits+1, 64)}
}

// Silent returns a mask with one bit for each sequence that the claims cover and say
// nothing about.
func (r *Rules) Silent(c Claims) uint64 {
	if c.Named&r.ZeroedAckBits != 0 {
		return 0
	}
	return r.ZeroedAckBits
}

// Omits reports whether the claims say that the packet behind their newest by so many
// numbers was not received.
func (r *Rules) Omits(c Claims, behind int) bool {
	return behind >= 0 && behind < c.Width && (c.Named|r.Silent(c))>>uint(behind)&1 == 0
}

// Nothing reports whether the claims are those of an endpoint that has received
// nothing.
func (c Claims) Nothing(r *Rules) bool { return c.Newest == r.Mask() && c.Named == 0 }

// Covered returns a mask with one bit for each sequence that the claims cover.
func (c Claims) Covered() uint64 { return ^uint64(0) >> (uint(64-c.Width) & 63) }

// Fate is the result of a packet's arrival.
type Fate uint8

const (
	Accepted    Fate = iota // entered and delivered
	Refused                 // not entered: the application rejected it
	Duplicate               // already in the buffer; dropped
	Stale                   // older than the window; dropped
	Redelivered             // a duplicate or stale packet that is delivered all the same
)

// Delivered reports whether the application got the packet. An endpoint reads the acks
// of exactly these packets.
func (f Fate) Delivered() bool { return f == Accepted || f == Redelivered }

// State is what one endpoint of the family knows about its connection. It has no role
// and no clock: callers pass instants. The zero State is not usable; call NewState.
type State struct {
	Rules *Rules

	SentBuffer []Sent // a ring that grows as needed, up to Rules.Sent
	SentSpan   int    // sequences that the ring must hold, up to Rules.Sent
	SentNext   uint32 // sequence of the next packet
	AckedTop   uint32 // acked is relative to this sequence
	acked      uint64 // bit n: AckedTop-n is acked; this saves a lookup of the entry
	arrived    uint64 // bit n: SentNext-1-n has SentArrived; likewise

	ReceivedBuffer []uint32
	receivedSpan   int
	Word           uint64 // bit n: ReceivedNext-1-n is in the buffer
	ReceivedNext   uint32 // newest received + 1

	partialNext   uint32
	PartialBuffer []Partial
}

// FirstRing is how many entries a buffer has room for when it is first used.
// Source: bound, the first size of a buffer
const FirstRing = 8

// NewState returns the state of an endpoint that has neither sent nor received. It
// keeps r, which must not change afterwards.
func NewState(r *Rules) State {
	s := State{Rules: r}
	if r.NoStaleClear {
		// Old entries count with this rule, so the whole ring exists from the start.
		s.ReceivedBuffer = emptyRing(r.Received)
	}
	return s
}

// UseFirstRings gives a state that has neither sent nor received the memory of its first buffers.
// It must be zero, and the state keeps it.
func (s *State) UseFirstRings(sent *[FirstRing]Sent, received *[FirstRing]uint32) {
	if ringSize(1, s.Rules.Sent) == FirstRing {
		s.SentBuffer = sent[:]
	}
	if ringSize(1, s.Rules.Received) == FirstRing && !s.Rules.NoStaleClear {
		for i := range received {
			received[i] = emptySlot(i)
		}
		s.ReceivedBuffer = received[:]
	}
}

// emptySlot returns the value of an empty slot i of a received buffer: a sequence
// number that belongs in the next slot. A lookup in slot i never asks for that number.
// (With 32-bit sequences no value is free to mean "empty".)
func emptySlot(i int) uint32 { return uint32(i) + 1 }

func emptyRing(n int) []uint32 {
	ring := make([]uint32, n)
	for i := range ring {
		ring[i] = emptySlot(i)
	}
	return ring
}

// Clone returns an independent copy.
func (s *State) Clone() State {
	c := *s
	c.SentBuffer = append([]Sent(nil), s.SentBuffer...)
	c.ReceivedBuffer = append([]uint32(nil), s.ReceivedBuffer...)
	c.PartialBuffer = append([]Partial(nil), s.PartialBuffer...)
	return c
}

// Size returns the memory of the buffers, in bytes.
func (s *State) Size() int {
	// sentBytes and partialBytes are the sizes of a Sent and a Partial in memory, in
	// bytes.
	// Source: bound, the size of an entry
	const sentBytes, partialBytes = int(unsafe.Sizeof(Sent{})), int(unsafe.Sizeof(Partial{}))
	return cap(s.SentBuffer)*sentBytes + cap(s.ReceivedBuffer)*4 + cap(s.PartialBuffer)*partialBytes
}

// ringSize returns the capacity of a ring that holds span entries of a buffer of size
// entries. If size is not a power of two, the index jumps when the sequence wraps. With
// 100 entries it jumps from 35 (65535) to 0. Only a ring of the full size reproduces
// that.
func ringSize(span, size int) int {
	if size&(size-1) != 0 || span >= size {
		return size
	}
	n := FirstRing
	for n < span {
		n *= 2
	}
	return min(n, size)
}

// Slot returns the index of a sequence in a ring of n entries.
func Slot(sequence uint32, n int) int {
	if n&(n-1) == 0 {
		return int(sequence) & (n - 1)
	}
	return int(sequence % uint32(n))
}

// Each calls do for every packet that the claims name, newest first.
func (c Claims) Each(r *Rules, do func(sequence uint32)) {
	for n, left := uint32(0), c.Named; left != 0; n, left = n+1, left>>1 {
		if left&1 == 1 {
			do((c.Newest - n) & r.Mask())
		}
	}
}

// Names reports whether the claims name a packet.
func (c Claims) Names(r *Rules, sequence uint32) bool {
	behind := r.Distance(c.Newest, sequence)
	return behind >= 0 && behind < c.Width && c.Named>>uint(behind)&1 != 0
}
