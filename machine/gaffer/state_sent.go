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
	SentUnproved                         // tracker: no header shows that its first copy was accepted
)

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
	if ahead > 0 {
		return s.enterAhead(sequence, ahead)
	}
	if -ahead >= r.Sent {
		return nil
	}
	if need := min(1-ahead, r.Sent); need > s.sentSpan {
		s.sentSpan = need
		s.growSent()
	}
	return s.fill(sequence)
}

// enterAhead is EnterSent for a sequence that is known to lie ahead of all that
// were entered, by so much.
func (s *State) enterAhead(sequence uint32, ahead int) *Sent {
	r := s.rules
	if s.sentSpan < r.Sent {
		s.sentSpan = min(s.sentSpan+ahead, r.Sent)
		if s.sentSpan > len(s.sent) {
			s.growSent()
		}
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
	return s.fill(sequence)
}

// fill makes the entry of a sequence a live one that is otherwise empty.
func (s *State) fill(sequence uint32) *Sent {
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
	var told uint64
	fresh, recent := s.unread(c)
	for ; fresh != 0; fresh &= fresh - 1 {
		n := bits.TrailingZeros64(fresh)
		if s.ack(c, n, recent, now, by) != nil {
			told |= 1 << uint(n)
		}
	}
	return told
}

// unread gives those claims that are not known to have been read before: to look
// at an entry costs more than to look at a bit. recent tells that the bits reach
// up to these claims' newest.
func (s *State) unread(c Claims) (fresh uint64, recent bool) {
	fresh = c.Named
	switch ahead := s.rules.Distance(c.Newest, s.ackedTop); {
	case ahead >= 64, ahead <= -64:
		s.ackedTop, s.acked = c.Newest, 0
	case ahead >= 0:
		s.acked <<= uint(ahead) & 63
		s.ackedTop = c.Newest
		fresh &^= s.acked
	default:
		return fresh &^ (s.acked >> (uint(-ahead) & 63)), false
	}
	return fresh, true
}

// ack marks the packet that bit n of unread claims names, and gives its entry;
// nil where the buffer does not hold it, or it was acked before.
func (s *State) ack(c Claims, n int, recent bool, now machine.Instant, by machine.Ref) *Sent {
	e := s.Sent((c.Newest - uint32(n)) & s.rules.mask())
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
	if s.rules.AckBelow && n > 0 {
		e.Bit--
	}
	return e
}
