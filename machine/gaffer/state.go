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
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
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

// mask gives the largest sequence number.
func (r *Rules) mask() uint32 { return ^uint32(0) >> r.unused() }

// unused gives the high bits of a uint32 that a sequence number leaves free.
func (r *Rules) unused() uint32 { return (32 - uint32(r.SequenceBits)) & 31 }

// Newer reports whether sequence a is newer than b.
func (r *Rules) Newer(a, b uint32) bool { return r.Distance(a, b) > 0 }

// Distance gives how far sequence a lies ahead of b, negative where it lies
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
	if ack == r.mask() && ackBits == 0 {
		return Claims{ack, 0, r.AckBits + 1}
	}
	return Claims{ack, ackBits<<1 | 1, min(r.AckBits+1, 64)}
}

// Nothing reports whether the claims are those of an endpoint that has not
// received anything.
func (c Claims) Nothing(r *Rules) bool { return c.Newest == r.mask() && c.Named == 0 }

// Sent is an entry of the sent buffer.
type Sent struct {
	At       machine.Instant // when it was sent
	Ref      machine.Ref     // the frame it was seen in; zero in simulations
	AckedAt  machine.Instant // when the ack was read
	AckedBy  machine.Ref     // the frame whose header carried that ack
	AckBits  uint64          // its own header's
	Sequence uint32
	Ack      uint32 // its own header's
	Bytes    uint32 // of payload, without the header
	waiting  uint32 // tracker: place in the peer's queue of its first copy that may still be under way; 0 none
	newest   uint32 // tracker: place of its last copy there
	Flags    SentFlags
	Bit      uint8 // of ack_bits that told its arrival
}

// SentFlags says what is known of a sent packet.
type SentFlags uint16

const (
	SentLive       SentFlags = 1 << iota // the slot holds a packet
	SentAcked                            // its ack was read
	SentHeader                           // Ack and AckBits were seen
	SentFragmented                       // it travelled as fragments
	SentArrived                          // tracker: the peer is known to have accepted it
	SentLost                             // tracker: the peer's headers have moved past it and none named it
	SentDoubtful                         // tracker: its ack rests on a doubtful receipt
)

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

// FragmentFate is what becomes of a fragment that arrives.
type FragmentFate uint8

const (
	FragmentKept     FragmentFate = iota // more are to come
	FragmentComplete                     // the last one missing: the packet now arrives (State.Arrive), then State.Forget
	FragmentIgnored                      // known already, or its packet is
	FragmentInvalid                      // too old for the table, or at odds with the first one's count
)

// Partial is a packet of which some fragments have come.
type Partial struct {
	Sequence uint32
	Count    int // fragments of the whole; 0 marks an empty slot
	Missing  int
	Have     [4]uint64 // bit set: that fragment came
}

// State is what one endpoint of the family knows of its connection. It knows
// neither role nor clock: instants are handed in. The zero State is not ready:
// use NewState.
type State struct {
	rules *Rules

	sentNext uint32 // sequence of the next packet
	sent     []Sent // a ring that grows with use up to rules.Sent
	sentSpan int    // sequences that the ring must hold, up to rules.Sent
	ackedTop uint32 // acked is relative to this sequence
	acked    uint64 // bit n: ackedTop-n is acked: saves looking at the entry

	receivedNext uint32 // newest received + 1
	received     []uint32
	receivedSpan int
	word         uint64 // bit n: receivedNext-1-n is in the buffer

	partial     []Partial
	partialNext uint32
}

const firstRing = 8 // entries of a buffer that begins to be used

// NewState gives the state of an endpoint that has neither sent nor received.
// The rules are shared, not copied: they must not change.
func NewState(r *Rules) State {
	s := State{rules: r}
	if r.NoStaleClear {
		// Its old entries count: they are all there from the start.
		s.received = emptyRing(r.Received)
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

// Rules gives the rules that the state obeys.
func (s *State) Rules() *Rules { return s.rules }

// Clone gives an independent copy.
func (s *State) Clone() State {
	c := *s
	c.sent = append([]Sent(nil), s.sent...)
	c.received = append([]uint32(nil), s.received...)
	c.partial = append([]Partial(nil), s.partial...)
	return c
}

// Size gives the bytes of memory that the buffers take.
func (s *State) Size() int {
	return cap(s.sent)*sentBytes + cap(s.received)*4 + cap(s.partial)*partialBytes
}

// ringSize gives the capacity that holds span entries of a buffer of size
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

func slot(sequence uint32, n int) int {
	if n&(n-1) == 0 {
		return int(sequence) & (n - 1)
	}
	return int(sequence % uint32(n))
}

// --- sent

// NextSequence gives the sequence number of the next packet.
func (s *State) NextSequence() uint32 { return s.sentNext }

// StartAt says that the next packet has this sequence number; for an endpoint
// that is met in the middle of its life.
func (s *State) StartAt(sequence uint32) { s.sentNext = sequence & s.rules.mask() }

// Join sets the receive window by the header of an endpoint that is met in the
// middle of its life: what the header does not speak of stays unknown to the
// caller, and out of the buffer.
func (s *State) Join(c Claims) {
	r := s.rules
	*s = State{rules: r, sentNext: s.sentNext, sent: s.sent, sentSpan: s.sentSpan, ackedTop: s.ackedTop, acked: s.acked}
	if r.NoStaleClear {
		s.received = emptyRing(r.Received)
	}
	s.receivedNext = (c.Newest + 1) & r.mask()
	s.partialNext = s.receivedNext
	for left := c.Named; left != 0; left &= left - 1 {
		s.EnterReceived((c.Newest - uint32(bits.TrailingZeros64(left))) & r.mask())
	}
}

// Header gives the header of the next packet: what Send would enter.
func (s *State) Header() wire.Header {
	ack, ackBits := s.Acks()
	return wire.Header{Sequence: s.sentNext, Ack: ack, AckBits: ackBits}
}

// Send enters the next packet and gives its entry. Of p the caller fills At,
// Ref, Bytes and, if it wants them kept, Ack, AckBits and Flags.
func (s *State) Send(p Sent) *Sent {
	e := s.EnterSent(s.sentNext)
	p.Sequence, p.Flags = e.Sequence, p.Flags|SentLive
	*e = p
	return e
}

// EnterSent enters a packet under its own sequence number and gives its entry,
// live and otherwise empty: a newer one clears what lies between, as the buffer
// does. It gives nil where the sequence is older than the buffer reaches.
func (s *State) EnterSent(sequence uint32) *Sent {
	r := s.rules
	if s.sentSpan == 0 {
		s.sentNext = sequence // the first one: nothing lies before it
	}
	ahead := r.Distance((sequence+1)&r.mask(), s.sentNext)
	if ahead <= 0 {
		if -ahead >= r.Sent {
			return nil
		}
		if need := min(1-ahead, r.Sent); need > s.sentSpan {
			s.sentSpan = need
			s.growSent()
		}
	} else {
		s.sentSpan = min(s.sentSpan+ahead, r.Sent)
		if s.sentSpan > len(s.sent) {
			s.growSent()
		}
		if ahead > 1 {
			if ahead >= len(s.sent) {
				clear(s.sent)
			} else {
				for q := s.sentNext; q != sequence; q = (q + 1) & r.mask() {
					s.sent[slot(q, len(s.sent))] = Sent{}
				}
			}
		}
		s.sentNext = (sequence + 1) & r.mask()
	}
	e := &s.sent[slot(sequence, len(s.sent))]
	*e = Sent{}
	e.Sequence, e.Flags = sequence, SentLive
	return e
}

func (s *State) growSent() {
	n := ringSize(s.sentSpan, s.rules.Sent)
	if n <= len(s.sent) {
		return
	}
	old := s.sent
	s.sent = make([]Sent, n)
	for i := range old {
		if old[i].Flags&SentLive != 0 {
			s.sent[slot(old[i].Sequence, n)] = old[i]
		}
	}
}

// Sent gives the entry of a packet, nil where the buffer does not hold it.
func (s *State) Sent(sequence uint32) *Sent {
	if len(s.sent) == 0 {
		return nil
	}
	e := &s.sent[slot(sequence, len(s.sent))]
	if e.Flags&SentLive == 0 || e.Sequence != sequence {
		return nil
	}
	return e
}

// ReadAcks takes the claims of a packet that was delivered. Each packet is
// acked once, and only while the sent buffer holds it. Bit n of the result:
// Newest-n has just been acked; its entry is marked with now and by.
func (s *State) ReadAcks(c Claims, now machine.Instant, by machine.Ref) uint64 {
	fresh := c.Named
	r := s.rules
	// What was acked already need not be looked at.
	ahead := r.Distance(c.Newest, s.ackedTop)
	switch {
	case ahead >= 64:
		s.acked = 0
	case ahead >= 0:
		s.acked <<= uint(ahead)
	case ahead > -64:
		fresh &^= s.acked >> uint(-ahead)
	}
	if ahead >= 0 {
		s.ackedTop = c.Newest
		fresh &^= s.acked
	} else if ahead <= -64 {
		s.ackedTop, s.acked, ahead = c.Newest, 0, 0
	}
	var told uint64
	for left := fresh; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		e := s.Sent((c.Newest - uint32(n)) & r.mask())
		if e == nil {
			continue
		}
		if ahead >= 0 {
			s.acked |= 1 << uint(n)
		}
		if e.Flags&SentAcked != 0 {
			continue
		}
		e.Flags |= SentAcked
		e.AckedAt, e.AckedBy = now, by
		e.Bit = uint8(n)
		if r.AckBelow && n > 0 {
			e.Bit--
		}
		told |= 1 << uint(n)
	}
	return told
}

// --- received

// NewestReceived gives the sequence that ack names: the newest received, or
// that of a newer packet of which fragments came. A fresh endpoint gives the
// largest sequence number, which says "nothing".
func (s *State) NewestReceived() uint32 { return (s.receivedNext - 1) & s.rules.mask() }

// Acks gives the fields of the next header.
func (s *State) Acks() (ack uint32, ackBits uint64) {
	c := s.Claims()
	if s.rules.AckBelow {
		return c.Newest, c.Named >> 1 & (1<<uint(s.rules.AckBits) - 1)
	}
	return c.Newest, c.Named
}

// Claims gives what the next header will name.
func (s *State) Claims() Claims {
	r := s.rules
	width := r.AckBits
	if r.AckBelow {
		width = min(width+1, 64)
	}
	named := s.word
	if r.NoStaleClear {
		named = 0
		for n := range width {
			if s.Has((s.receivedNext - 1 - uint32(n)) & r.mask()) {
				named |= 1 << uint(n)
			}
		}
	}
	if width < 64 {
		named &= 1<<uint(width) - 1
	}
	return Claims{s.NewestReceived(), named, width}
}

// Has reports whether the received buffer holds a packet.
func (s *State) Has(sequence uint32) bool {
	return len(s.received) > 0 && s.received[slot(sequence, len(s.received))] == sequence
}

// Judge says what would become of a whole packet that arrives, if the
// application does not refuse it. It changes nothing.
func (s *State) Judge(sequence uint32) Fate {
	r := s.rules
	if r.Newer((s.receivedNext-uint32(r.Received))&r.mask(), sequence) {
		if r.DeliverStale {
			return Redelivered
		}
		return Stale
	}
	if s.Has(sequence) {
		if r.DeliverDuplicates {
			return Redelivered
		}
		return Duplicate
	}
	return Accepted
}

// Arrive takes a whole packet, or one whose fragments are complete. refuse is
// the application's answer, should it be handed the packet.
func (s *State) Arrive(sequence uint32, refuse bool) Fate {
	f := s.Judge(sequence)
	if !f.Delivered() {
		return f
	}
	if refuse {
		return Refused
	}
	if f == Accepted {
		s.Accept(sequence)
	}
	return f
}

// Accept enters a packet that is neither stale nor a duplicate, and that the
// application took.
func (s *State) Accept(sequence uint32) {
	s.EnterReceived(sequence)
	if s.rules.Partial > 0 {
		s.advancePartial(sequence)
	}
}

// EnterReceived puts a sequence into the received buffer. A newer one than the
// newest clears what lies between.
func (s *State) EnterReceived(sequence uint32) {
	r := s.rules
	behind := -r.Distance(sequence, s.NewestReceived())
	if behind < 0 {
		s.advanceBy(-behind, sequence)
		behind = 0
	}
	if need := min(behind+1, r.Received); need > s.receivedSpan || need > len(s.received) {
		s.receivedSpan = max(need, s.receivedSpan)
		s.growReceived()
	}
	s.received[slot(sequence, len(s.received))] = sequence
	if behind < 64 {
		s.word |= 1 << uint(behind)
	}
}

// Withdraw takes a sequence out of the received buffer again: a correct endpoint
// never does, one that is observed may.
func (s *State) Withdraw(sequence uint32) {
	if !s.Has(sequence) {
		return
	}
	i := slot(sequence, len(s.received))
	s.received[i] = emptySlot(i)
	if behind := -s.rules.Distance(sequence, s.NewestReceived()); behind >= 0 && behind < 64 {
		s.word &^= 1 << uint(behind)
	}
}

// Advance moves the receive window up to a sequence without entering it, as the
// first fragment of a packet does.
func (s *State) Advance(sequence uint32) {
	if ahead := s.rules.Distance(sequence, s.NewestReceived()); ahead > 0 {
		s.advanceBy(ahead, sequence)
	}
}

func (s *State) advanceBy(ahead int, sequence uint32) {
	r := s.rules
	if len(s.received) > 0 && !r.NoStaleClear {
		s.receivedSpan = min(s.receivedSpan+ahead, r.Received)
		if s.receivedSpan > len(s.received) {
			s.growReceived()
		}
		if ahead >= len(s.received) {
			for i := range s.received {
				s.received[i] = emptySlot(i)
			}
		} else {
			for q := s.receivedNext; ; q = (q + 1) & r.mask() {
				i := slot(q, len(s.received))
				s.received[i] = emptySlot(i)
				if q == sequence {
					break
				}
			}
		}
	}
	s.receivedNext = (sequence + 1) & r.mask()
	if ahead >= 64 {
		s.word = 0
	} else {
		s.word <<= uint(ahead)
	}
}

func (s *State) growReceived() {
	n := ringSize(s.receivedSpan, s.rules.Received)
	if n <= len(s.received) {
		return
	}
	old := s.received
	s.received = emptyRing(n)
	for i, q := range old {
		if q != emptySlot(i) {
			s.received[slot(q, n)] = q
		}
	}
}

// --- fragments

// ArriveFragment takes one fragment of a packet: id counts from 0, count is at
// most 256. The first fragment of a packet moves the receive window, so that
// ack may come to name a packet that has not been received.
func (s *State) ArriveFragment(sequence uint32, id, count int) FragmentFate {
	r := s.rules
	if r.Partial == 0 || count < 1 || count > 256 || id < 0 || id >= count {
		return FragmentInvalid
	}
	if s.Has(sequence) {
		return FragmentIgnored
	}
	p := s.PartialOf(sequence)
	if p == nil {
		if r.Newer((s.partialNext-uint32(r.Partial))&r.mask(), sequence) {
			return FragmentInvalid
		}
		s.advancePartial(sequence)
		if s.partial == nil {
			s.partial = make([]Partial, r.Partial)
		}
		p = &s.partial[slot(sequence, len(s.partial))]
		*p = Partial{Sequence: sequence, Count: count, Missing: count}
		s.Advance(sequence)
	}
	if p.Count != count {
		return FragmentInvalid
	}
	if p.Have[id/64]&(1<<(id%64)) != 0 {
		return FragmentIgnored
	}
	p.Have[id/64] |= 1 << (id % 64)
	p.Missing--
	if p.Missing > 0 {
		return FragmentKept
	}
	return FragmentComplete
}

// PartialOf gives the packet's entry in the table of those that are being
// reassembled, nil where it has none.
func (s *State) PartialOf(sequence uint32) *Partial {
	if len(s.partial) == 0 {
		return nil
	}
	p := &s.partial[slot(sequence, len(s.partial))]
	if p.Count == 0 || p.Sequence != sequence {
		return nil
	}
	return p
}

// Forget drops a packet's fragments: after it was complete, whatever became of it.
func (s *State) Forget(sequence uint32) {
	if p := s.PartialOf(sequence); p != nil {
		*p = Partial{}
	}
}

// advancePartial moves the table's window: accepted packets do so too.
func (s *State) advancePartial(sequence uint32) {
	r := s.rules
	ahead := r.Distance((sequence+1)&r.mask(), s.partialNext)
	if ahead <= 0 {
		return
	}
	if len(s.partial) > 0 {
		if ahead >= len(s.partial) {
			clear(s.partial)
		} else {
			for q := s.partialNext; ; q = (q + 1) & r.mask() {
				s.partial[slot(q, len(s.partial))] = Partial{}
				if q == sequence {
					break
				}
			}
		}
	}
	s.partialNext = (sequence + 1) & r.mask()
}
