// Package gaffer holds what an endpoint of the Gaffer family knows, and how it
// comes to know it: the sequence buffers of "Reliable Ordered Messages" and of
// the libraries that descend from it.
//
//	sent buffer                         received buffer
//	index = sequence mod size           index = sequence mod size
//	+------+------+-----+------+        +------+------+-----+------+
//	| 512  | 513  | ... | 511  |        | 768  | 257* | ... | 767  |   * stored 257, asked 769:
//	| acked|      |     | acked|        |      |      |     |      |     not the same, so empty
//	+------+------+-----+------+        +------+------+-----+------+
//
// State (this file) is the one transition code. Two drivers share it: Endpoint
// (endpoint.go) decides what to send; Tracker (tracker.go) reads off a capture
// what two endpoints must have done.
//
// Source of truth: the article's listings, and reliable 1.4.0 where the article
// is silent (windows, duplicates, fragments).
package gaffer

import (
	"math"
	"unsafe"

	"github.com/ackscope/ackscope/wire/seq"
)

// Rules are the settings by which an endpoint keeps its buffers. They never
// travel on the wire: a profile states them.
type Rules struct {
	SequenceBits seq.Space // width of a sequence number: 8, 16 or 32
	AckBits      int       // width of ack_bits: 8 to 64
	AckBelow     bool      // bit n of ack_bits means ack-n-1; else ack-n, the article's rule
	Sent         int       // entries of the sent buffer
	Received     int       // entries of the received buffer, and with that its window; at least 2
	Partial      int       // packets that can be reassembled at a time; 0: the dialect has no fragments

	DeliverDuplicates bool // hand a packet over again, and read its acks again
	DeliverStale      bool // hand over a packet older than the window, and read its acks
	// NoStaleClear keeps what lies between the newest sequence and a newer one,
	// as the article's first listing does: entries of one wrap ago come back.
	NoStaleClear bool
}

// Mask returns the largest sequence number.
func (r *Rules) Mask() uint32 { return ^uint32(0) >> r.unused() }

// unused returns the high bits of a uint32 that a sequence number leaves free.
func (r *Rules) unused() uint32 { return (32 - uint32(r.SequenceBits)) & 31 }

// Newer reports whether sequence a is newer than b.
func (r *Rules) Newer(a, b uint32) bool { return r.Distance(a, b) > 0 }

// Distance returns how far sequence a lies ahead of b, negative where it lies
// behind: seq.Space.Distance, by sign extension, since it is asked a dozen times
// for every packet.
func (r *Rules) Distance(a, b uint32) int {
	n := r.unused()
	d := int32((a - b) << n)
	if d == math.MinInt32 && a > b {
		return 1 << (r.SequenceBits - 1) // exactly half the range: the larger number is newer
	}
	return int(d >> n)
}

// Claims says which packets a header names, in one form for every dialect: bit
// n of Named is Newest-n. A header that says "nothing received yet" names none.
type Claims struct {
	Newest uint32
	Named  uint64
	Width  int // how many sequences, from Newest down, the header speaks of
}

// Claims reads the ack fields of a header.
func (r *Rules) Claims(ack uint32, ackBits uint64) Claims {
	if !r.AckBelow {
		return Claims{ack, ackBits, r.AckBits}
	}
	if ack == r.Mask() && ackBits == 0 {
		return Claims{ack, 0, r.AckBits + 1}
	}
	return Claims{ack, ackBits<<1 | 1, min(r.AckBits+1, 64)}
}

// Nothing reports whether the claims are those of an endpoint that has not
// received anything.
func (c Claims) Nothing(r *Rules) bool { return c.Newest == r.Mask() && c.Named == 0 }

// Covered has a bit for each sequence that the claims speak of.
func (c Claims) Covered() uint64 { return ^uint64(0) >> (uint(64-c.Width) & 63) }

// Fate is what becomes of a packet that arrives.
type Fate uint8

const (
	Accepted    Fate = iota // entered and handed over
	Refused                 // not entered: the application did not want it
	Duplicate               // entered before; dropped
	Stale                   // older than the window; dropped
	Redelivered             // a duplicate or stale one that is handed over all the same
)

// Delivered reports whether the application was handed the packet, which is
// also when its acks are read.
func (f Fate) Delivered() bool { return f == Accepted || f == Redelivered }

// State is what one endpoint of the family knows of its connection. It knows
// neither role nor clock: instants are handed in. The zero State is not ready:
// use NewState.
type State struct {
	Rules *Rules

	SentBuffer []Sent // a ring that grows with use up to rules.Sent
	SentSpan   int    // sequences that the ring must hold, up to rules.Sent
	SentNext   uint32 // sequence of the next packet
	AckedTop   uint32 // acked is relative to this sequence
	acked      uint64 // bit n: ackedTop-n is acked: saves looking at the entry

	ReceivedBuffer []uint32
	receivedSpan   int
	Word           uint64 // bit n: receivedNext-1-n is in the buffer
	ReceivedNext   uint32 // newest received + 1

	partialNext   uint32
	PartialBuffer []Partial
}

const firstRing = 8 // entries of a buffer that begins to be used

// NewState returns the state of an endpoint that has neither sent nor received.
// The rules are shared, not copied: they must not change.
func NewState(r *Rules) State {
	s := State{Rules: r}
	if r.NoStaleClear {
		// Its old entries count: they are all there from the start.
		s.ReceivedBuffer = emptyRing(r.Received)
	}
	return s
}

// emptySlot is what slot i of a received buffer holds while it holds nothing: a
// sequence number that belongs into the next slot, so that none asked for here
// equals it. (No value is free to mean "empty" where sequences have 32 bits.)
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

// Size returns the bytes of memory that the buffers take.
func (s *State) Size() int {
	const sentBytes, partialBytes = int(unsafe.Sizeof(Sent{})), int(unsafe.Sizeof(Partial{}))
	return cap(s.SentBuffer)*sentBytes + cap(s.ReceivedBuffer)*4 + cap(s.PartialBuffer)*partialBytes
}

// ringSize returns the capacity that holds span entries of a buffer of size
// entries. Where the size is no power of two, the index jumps at the wrap of
// the sequence number; only the whole buffer shows that.
func ringSize(span, size int) int {
	if size&(size-1) != 0 || span >= size {
		return size
	}
	n := firstRing
	for n < span {
		n *= 2
	}
	return min(n, size)
}

// Slot returns the index of a sequence in a ring of so many entries.
func Slot(sequence uint32, n int) int {
	if n&(n-1) == 0 {
		return int(sequence) & (n - 1)
	}
	return int(sequence % uint32(n))
}

// Each calls do for all packets that are named.
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
