package riptide

import (
	mathbits "math/bits"
	"slices"
)

// Sender is the sending half of the reliable sequencer: what the library concludes from Acks. The
// caller keeps the list of pending ids.
type Sender struct {
	behaviour *Behaviour
	Last      uint16 // newest id that an Ack had as its last
	list      bitList
	bits      uint16 // of the 16-bit window of 2.0.0

	// State of Pytide 2.1.0-alpha.
	ported   portList
	received uint16
	Threw    int // Acks at which the library threw
}

// NewSender returns the state at the start of a connection.
func NewSender(b *Behaviour) Sender {
	return Sender{behaviour: b, list: newBitList(true, b)}
}

// Verdict is what an Ack decides about a pending id.
type Verdict uint8

const (
	Cleared Verdict = iota // delivered, for the library
	Again                  // to be sent again, since it leaves the window unacked
)

// Acked records an Ack: the newest id received, its 16 bits and the id that it answers. It calls
// decide with every id that the Ack decides, pending or not.
func (s *Sender) Acked(last, bits, cause uint16, decide func(id uint16, v Verdict)) {
	decide(cause, Cleared)
	switch s.behaviour.Send {
	case SendCauseOnly:
		return
	case SendReceived:
		s.port(last, bits, decide)
		return
	case SendOldestBit, SendNotes:
		s.ackedWindow(last, bits, decide)
		return
	}
	gap := GapOf(last, s.Last)
	switch {
	case gap < 0:
		s.list.mark(-gap)
	case gap == 0:
		s.list.merge(uint32(bits))
	case s.behaviour.Send == SendOlderBits:
		for i := range 16 {
			// The mask is a 32-bit shift, whose count wraps round.
			if !s.list.set(i+1) && uint32(bits)&(1<<(uint(gap+i)&31)) != 0 {
				decide(s.Last-uint16(i+1), Cleared)
			}
		}
		s.pushOut(gap, decide)
		s.list.shift(gap)
		s.list.merge(uint32(bits))
		s.list.mark(gap)
		s.Last = last
		decide(last, Cleared)
	default:
		s.pushOut(gap, decide)
		s.list.shift(gap)
		s.Last = last
		for fresh := bits &^ s.list.first16(); fresh != 0; fresh &= fresh - 1 {
			decide(s.Last-uint16(mathbits.TrailingZeros16(fresh)+1), Cleared)
		}
		s.list.merge(uint32(bits))
		s.list.mark(gap)
		decide(last, Cleared)
	}
}

// pushOut decides the ids that leave the window of 32.
func (s *Sender) pushOut(gap int, decide func(id uint16, v Verdict)) {
	for range s.list.overflow(gap) {
		at, set := s.list.trimLast()
		v := Again
		if set {
			v = Cleared
		}
		decide(s.Last-uint16(at), v)
	}
}

func (s *Sender) ackedWindow(last, bits uint16, decide func(id uint16, v Verdict)) {
	const oldest = 1 << (WindowAcks - 1)
	check := func(id uint16) {
		if s.bits&oldest != 0 {
			decide(id, Cleared)
		} else {
			decide(id, Again)
		}
	}
	gap := GapOf(last, s.Last)
	switch {
	case gap > 0:
		for i := 1; i < gap; i++ {
			s.bits <<= 1
			check(s.Last - WindowAcks + uint16(i))
		}
		s.bits <<= 1
		s.bits |= bits | uint16(uint32(1)<<(uint(gap-1)&31))
		s.Last = last
		check(s.Last - WindowAcks)
	case gap < 0:
		s.bits |= uint16(uint32(1) << (uint(uint16(-gap-1)) & 31))
		if s.behaviour.Send == SendNotes {
			// The notes (chapter "Acknowledge Messages", negative gap) OR both fields as they stand. The bits
			// of the older Ack count from an older id. So each of them then names a newer id than it meant.
			s.bits |= bits
		}
		decide(last, Cleared)
	default:
		s.bits |= bits
		check(s.Last - WindowAcks)
	}
}

// Received sets the newest id that the sender's own side has received. Pytide counts acks from it.
func (s *Sender) Received(last uint16) { s.received = last }

// Join sets the state from the first Ack of a capture that begins in the middle of a connection. It
// clears the ids that the Ack names.
func (s *Sender) Join(last, bits, cause uint16, decide func(id uint16, v Verdict)) {
	decide(cause, Cleared)
	decide(last, Cleared)
	s.Last, s.bits = last, bits
	if s.behaviour.Send == SendBits {
		for i := range 16 {
			if bits>>i&1 == 1 {
				decide(last-uint16(i+1), Cleared)
			}
		}
	}
	s.list.reset(1, uint32(bits))
	s.list.count = wordBits
}

// As returns a copy that goes on as another behaviour with the same kind of window.
func (s *Sender) As(b *Behaviour) Sender {
	c := s.Clone()
	c.behaviour, c.list.Fault = b, b.ShiftFault
	return c
}

// Clone returns an independent copy.
func (s *Sender) Clone() Sender {
	c := *s
	c.list = s.list.clone()
	c.ported.words = slices.Clone(s.ported.words)
	return c
}
