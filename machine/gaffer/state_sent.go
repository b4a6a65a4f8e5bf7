package gaffer

import (
	"math/bits"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Sent is an entry of the sent buffer.
type Sent struct {
	At       machine.Instant // when it was sent
	Ref      machine.Ref     // the frame it was seen in; zero in simulations
	AckedAt  machine.Instant // when the ack was read
	AckedBy  machine.Ref     // the frame whose header carried that ack
	AckBits  uint64          // of its own header
	Sequence uint32
	Ack      uint32 // of its own header
	Bytes    uint32 // of the payload, without the header
	Waiting  uint32 // tracker: place in the peer's queue of its first copy that may still be unread; 0: none
	Newest   uint32 // tracker: place of its last copy in that queue
	Flags    SentFlags
	Bit      uint8 // of the ack_bits that acked it
}

// SentFlags are the known facts about a sent packet.
type SentFlags uint16

const (
	SentLive       SentFlags = 1 << iota // the slot holds a packet
	SentAcked                            // its ack was read
	SentHeader                           // Ack and AckBits were seen
	SentFragmented                       // it was sent in fragments
	SentArrived                          // tracker: the peer is known to have accepted it
	SentLost                             // tracker: the peer's headers have moved past it without naming it
	SentDoubtful                         // tracker: its ack depends on a doubtful receipt
	SentUnproved                         // tracker: no header proves that its first copy was accepted
	SentUnnamed                          // tracker: the peer's headers covered it and named it in none
)

// NextSequence returns the sequence number of the next packet.
func (s *State) NextSequence() uint32 { return s.SentNext }

// StartAt sets the sequence number of the next packet. It is for an endpoint whose
// connection is already running.
func (s *State) StartAt(sequence uint32) { s.SentNext, s.arrived = sequence&s.Rules.Mask(), 0 }

// Join sets the receive window from a header of an endpoint whose connection is already
// running. Packets that the header does not cover stay out of the buffer: whether they
// arrived is unknown.
func (s *State) Join(c Claims) {
	r := s.Rules
	*s = State{
		Rules: r, SentNext: s.SentNext, SentBuffer: s.SentBuffer, SentSpan: s.SentSpan, AckedTop: s.AckedTop,
		acked: s.acked,
	}
	if r.NoStaleClear {
		s.ReceivedBuffer = emptyRing(r.Received)
	}
	s.ReceivedNext = (c.Newest + 1) & r.Mask()
	s.partialNext = s.ReceivedNext
	for left := c.Named; left != 0; left &= left - 1 {
		s.EnterReceived((c.Newest - uint32(bits.TrailingZeros64(left))) & r.Mask())
	}
}

// Header returns the header of the next packet, the one that Send would enter.
func (s *State) Header() wire.Header {
	ack, ackBits := s.Acks()
	return wire.Header{Sequence: s.SentNext, Ack: ack, AckBits: ackBits}
}

// Send enters the next packet and returns its entry. The caller sets At, Ref and Bytes
// of p and, to keep them, Ack, AckBits and Flags.
func (s *State) Send(p Sent) *Sent {
	e := s.EnterSent(s.SentNext)
	p.Sequence, p.Flags = e.Sequence, p.Flags|SentLive
	*e = p
	return e
}

// EnterSent enters a packet under its own sequence number and returns its entry, which
// is live and otherwise empty. A newer sequence clears the entries between. EnterSent
// returns nil if the sequence is too old for the buffer.
func (s *State) EnterSent(sequence uint32) *Sent {
	r := s.Rules
	if s.SentSpan == 0 {
		s.SentNext = sequence // the first one: nothing precedes it
	}
	ahead := r.Distance((sequence+1)&r.Mask(), s.SentNext)
	if ahead > 0 {
		return s.EnterAhead(sequence, ahead)
	}
	if -ahead >= r.Sent {
		return nil
	}
	if need := min(1-ahead, r.Sent); need > s.SentSpan {
		s.SentSpan = need
		s.growSent()
	}
	s.arrived &^= 1 << uint(-ahead)
	return s.fill(sequence)
}

// EnterAhead is EnterSent for a sequence that is known to be newer than all entered
// ones. ahead is its distance from the newest of them.
func (s *State) EnterAhead(sequence uint32, ahead int) *Sent {
	r := s.Rules
	if s.SentSpan < r.Sent {
		s.SentSpan = min(s.SentSpan+ahead, r.Sent)
		if s.SentSpan > len(s.SentBuffer) {
			s.growSent()
		}
	}
	if ahead > 1 {
		if ahead >= len(s.SentBuffer) {
			clear(s.SentBuffer)
		} else {
			for q := s.SentNext; q != sequence; q = (q + 1) & r.Mask() {
				s.SentBuffer[Slot(q, len(s.SentBuffer))] = Sent{}
			}
		}
	}
	s.SentNext, s.arrived = (sequence+1)&r.Mask(), s.arrived<<uint(ahead)
	return s.fill(sequence)
}

// ExpectSent prepares for EnterSent of a sequence. The slot was last used a whole buffer ago, so
// it has left the processor's caches where there are many flows. Without this call, the writes of
// the entry wait for it, and all later writes wait behind them.
func (s *State) ExpectSent(sequence uint32) {
	if n := len(s.SentBuffer); n > 0 {
		machine.Prefetch(unsafe.Pointer(&s.SentBuffer[Slot(sequence, n)]))
	}
}

// fill resets the entry of a sequence to a live one that is otherwise empty.
func (s *State) fill(sequence uint32) *Sent {
	e := &s.SentBuffer[Slot(sequence, len(s.SentBuffer))]
	*e = Sent{}
	e.Sequence, e.Flags = sequence, SentLive
	return e
}

func (s *State) growSent() {
	n := ringSize(s.SentSpan, s.Rules.Sent)
	if n <= len(s.SentBuffer) {
		return
	}
	old := s.SentBuffer
	s.SentBuffer = make([]Sent, n)
	for i := range old {
		if old[i].Flags&SentLive != 0 {
			s.SentBuffer[Slot(old[i].Sequence, n)] = old[i]
		}
	}
}

// Sent returns the entry of a packet. It returns nil if the buffer does not hold it.
func (s *State) Sent(sequence uint32) *Sent {
	if len(s.SentBuffer) == 0 {
		return nil
	}
	e := &s.SentBuffer[Slot(sequence, len(s.SentBuffer))]
	if e.Flags&SentLive == 0 || e.Sequence != sequence {
		return nil
	}
	return e
}

// MarkArrived sets SentArrived of an entry. If the buffer still holds it, HasArrived knows of it.
func (s *State) MarkArrived(e *Sent) {
	e.Flags |= SentArrived
	n := s.Rules.Distance(s.SentNext, e.Sequence) - 1
	if n >= 0 && n < min(64, len(s.SentBuffer)) && e == &s.SentBuffer[Slot(e.Sequence, len(s.SentBuffer))] {
		s.arrived |= 1 << uint(n)
	}
}

// HasArrived reports whether a packet has SentArrived, if it is among the newest. It does without
// the entry, which may have left the processor's caches. A false answer says nothing.
func (s *State) HasArrived(sequence uint32) bool {
	n := s.Rules.Distance(s.SentNext, sequence) - 1
	return n >= 0 && n < min(64, s.Rules.Sent) && s.arrived>>uint(n)&1 != 0
}

// ReadAcks reads the claims of a delivered packet. Each packet is acked once, and only
// while the sent buffer holds it. Bit n of the result means that packet Newest-n has
// just been acked; its entry gets the given instant and frame.
func (s *State) ReadAcks(c Claims, now machine.Instant, by machine.Ref) uint64 {
	var acked uint64
	fresh, recent := s.Unread(c)
	for ; fresh != 0; fresh &= fresh - 1 {
		n := bits.TrailingZeros64(fresh)
		if s.Ack(c, n, recent, now, by) != nil {
			acked |= 1 << uint(n)
		}
	}
	return acked
}

// Unread returns the claims that have not been read before, as far as the acked bits
// show. A bit is cheaper to check than an entry. recent reports whether these bits
// reach up to the newest claimed packet.
func (s *State) Unread(c Claims) (fresh uint64, recent bool) {
	fresh = c.Named
	switch ahead := s.Rules.Distance(c.Newest, s.AckedTop); {
	case ahead >= 64, ahead <= -64:
		s.AckedTop, s.acked = c.Newest, 0
	case ahead >= 0:
		s.acked <<= uint(ahead) & 63
		s.AckedTop = c.Newest
		fresh &^= s.acked
	default:
		return fresh &^ (s.acked >> (uint(-ahead) & 63)), false
	}
	return fresh, true
}

// Ack marks the packet that bit n of unread claims names, and returns its entry. It
// returns nil if the buffer does not hold the packet, or the packet was already acked.
func (s *State) Ack(c Claims, n int, recent bool, now machine.Instant, by machine.Ref) *Sent {
	e := s.Sent((c.Newest - uint32(n)) & s.Rules.Mask())
	if e == nil {
		return nil
	}
	if recent {
		s.acked |= 1 << (uint(n) & 63)
	}
	if e.Flags&SentAcked != 0 {
		return nil
	}
	e.Flags |= SentAcked
	e.AckedAt, e.AckedBy = now, by
	e.Bit = uint8(n)
	if s.Rules.AckBelow && n > 0 {
		e.Bit--
	}
	return e
}
