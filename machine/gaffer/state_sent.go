package gaffer

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

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
	Waiting  uint32 // tracker: place in the peer's queue of its first copy that may still be under way; 0 none
	Newest   uint32 // tracker: place of its last copy there
	Flags    SentFlags
	Bit      uint8 // of ack_bits that acked its arrival
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
	SentUnproved                         // tracker: no header shows that its first copy was accepted
)

// NextSequence returns the sequence number of the next packet.
func (s *State) NextSequence() uint32 { return s.SentNext }

// StartAt says that the next packet has this sequence number; for an endpoint
// that is met in the middle of its life.
func (s *State) StartAt(sequence uint32) { s.SentNext = sequence & s.Rules.Mask() }

// Join sets the receive window by the header of an endpoint that is met in the
// middle of its life: what the header does not speak of stays unknown to the
// caller, and out of the buffer.
func (s *State) Join(c Claims) {
	r := s.Rules
	*s = State{Rules: r, SentNext: s.SentNext, SentBuffer: s.SentBuffer, SentSpan: s.SentSpan, AckedTop: s.AckedTop,
		acked: s.acked}
	if r.NoStaleClear {
		s.ReceivedBuffer = emptyRing(r.Received)
	}
	s.ReceivedNext = (c.Newest + 1) & r.Mask()
	s.partialNext = s.ReceivedNext
	for left := c.Named; left != 0; left &= left - 1 {
		s.EnterReceived((c.Newest - uint32(bits.TrailingZeros64(left))) & r.Mask())
	}
}

// Header returns the header of the next packet: what Send would enter.
func (s *State) Header() wire.Header {
	ack, ackBits := s.Acks()
	return wire.Header{Sequence: s.SentNext, Ack: ack, AckBits: ackBits}
}

// Send enters the next packet and gives its entry. Of p the caller fills At,
// Ref, Bytes and, if it wants them kept, Ack, AckBits and Flags.
func (s *State) Send(p Sent) *Sent {
	e := s.EnterSent(s.SentNext)
	p.Sequence, p.Flags = e.Sequence, p.Flags|SentLive
	*e = p
	return e
}

// EnterSent enters a packet under its own sequence number and gives its entry,
// live and otherwise empty: a newer one clears what lies between, as the buffer
// does. It gives nil where the sequence is older than the buffer reaches.
func (s *State) EnterSent(sequence uint32) *Sent {
	r := s.Rules
	if s.SentSpan == 0 {
		s.SentNext = sequence // the first one: nothing lies before it
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
	return s.fill(sequence)
}

// EnterAhead is EnterSent for a sequence that is known to lie ahead of all that
// were entered, by so much.
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
	s.SentNext = (sequence + 1) & r.Mask()
	return s.fill(sequence)
}

// fill makes the entry of a sequence a live one that is otherwise empty.
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

// Sent returns the entry of a packet, nil where the buffer does not hold it.
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

// ReadAcks takes the claims of a packet that was delivered. Each packet is
// acked once, and only while the sent buffer holds it. Bit n of the result:
// Newest-n has just been acked; its entry is marked with now and by.
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

// Unread returns those claims that are not known to have been read before: to look
// at an entry costs more than to look at a bit. recent tells that the bits reach
// up to these claims' newest.
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

// Ack marks the packet that bit n of unread claims names, and gives its entry;
// nil where the buffer does not hold it, or it was acked before.
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
