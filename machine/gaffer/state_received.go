package gaffer

// NewestReceived returns the sequence that ack names: the newest packet received, or a
// newer one that has some of its fragments. A fresh endpoint returns the largest
// sequence number, which means "nothing".
func (s *State) NewestReceived() uint32 { return (s.ReceivedNext - 1) & s.Rules.Mask() }

// Acks returns the fields of the next header.
func (s *State) Acks() (ack uint32, ackBits uint64) {
	c := s.Claims()
	if s.Rules.AckBelow {
		return c.Newest, c.Named >> 1 & (1<<uint(s.Rules.AckBits) - 1)
	}
	return c.Newest, c.Named
}

// Claims returns the packets that the next header will name.
func (s *State) Claims() Claims {
	r := s.Rules
	width := r.AckBits
	if r.AckBelow {
		width = min(width+1, 64)
	}
	named := s.Word
	if r.NoStaleClear {
		named = 0
		for n := range width {
			if s.Has((s.ReceivedNext - 1 - uint32(n)) & r.Mask()) {
				named |= 1 << uint(n)
			}
		}
	}
	if width < 64 {
		named &= 1<<uint(width) - 1
	}
	if zeroed := r.ZeroedAckBits; named&zeroed != zeroed {
		named &^= zeroed
	}
	return Claims{s.NewestReceived(), named, width}
}

// Has reports whether the received buffer holds a packet.
func (s *State) Has(sequence uint32) bool {
	return len(s.ReceivedBuffer) > 0 && s.ReceivedBuffer[Slot(sequence, len(s.ReceivedBuffer))] == sequence
}

// Classify returns the fate that a whole packet would have if it arrived now and the
// application accepted it. It changes nothing.
func (s *State) Classify(sequence uint32) Fate {
	r := s.Rules
	if s.SlidPast(sequence) {
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

// SlidPast reports whether the receive window has moved past a sequence.
func (s *State) SlidPast(sequence uint32) bool {
	r := s.Rules
	return r.Newer((s.ReceivedNext-uint32(r.Received))&r.Mask(), sequence)
}

// Arrive enters a whole packet, or one whose fragments are complete. refuse is the
// application's answer if it gets the packet.
func (s *State) Arrive(sequence uint32, refuse bool) Fate {
	f := s.Classify(sequence)
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
// application accepted.
func (s *State) Accept(sequence uint32) {
	s.EnterReceived(sequence)
	if s.Rules.Partial > 0 {
		s.advancePartial(sequence)
	}
}

// EnterReceived puts a sequence into the received buffer. A sequence newer than the
// newest clears the entries between the two.
func (s *State) EnterReceived(sequence uint32) {
	r := s.Rules
	behind := -r.Distance(sequence, s.NewestReceived())
	if behind < 0 {
		s.AdvanceBy(-behind, sequence)
		behind = 0
	}
	s.EnterBehind(sequence, behind)
}

// EnterBehind enters a sequence at the given distance behind the newest one.
func (s *State) EnterBehind(sequence uint32, behind int) {
	if behind >= len(s.ReceivedBuffer) || behind >= s.receivedSpan {
		if need := min(behind+1, s.Rules.Received); need > s.receivedSpan || need > len(s.ReceivedBuffer) {
			s.receivedSpan = max(need, s.receivedSpan)
			s.growReceived()
		}
	}
	s.ReceivedBuffer[Slot(sequence, len(s.ReceivedBuffer))] = sequence
	if behind < 64 {
		s.Word |= 1 << (uint(behind) & 63)
	}
}

// Withdraw removes a sequence from the received buffer. A correct endpoint never does
// this; an observed one may.
func (s *State) Withdraw(sequence uint32) {
	if !s.Has(sequence) {
		return
	}
	i := Slot(sequence, len(s.ReceivedBuffer))
	s.ReceivedBuffer[i] = emptySlot(i)
	if behind := -s.Rules.Distance(sequence, s.NewestReceived()); behind >= 0 && behind < 64 {
		s.Word &^= 1 << uint(behind)
	}
}

// Advance moves the receive window up to a sequence without entering it. The first
// fragment of a packet does this.
func (s *State) Advance(sequence uint32) {
	if ahead := s.Rules.Distance(sequence, s.NewestReceived()); ahead > 0 {
		s.AdvanceBy(ahead, sequence)
	}
}

// AdvanceBy moves the receive window forward by ahead sequences, up to sequence.
func (s *State) AdvanceBy(ahead int, sequence uint32) {
	r := s.Rules
	if s.receivedSpan > 0 && !r.NoStaleClear {
		if s.receivedSpan < r.Received {
			s.receivedSpan = min(s.receivedSpan+ahead, r.Received)
			if s.receivedSpan > len(s.ReceivedBuffer) {
				s.growReceived()
			}
		}
		if ahead >= len(s.ReceivedBuffer) {
			for i := range s.ReceivedBuffer {
				s.ReceivedBuffer[i] = emptySlot(i)
			}
		} else {
			for q := s.ReceivedNext; ; q = (q + 1) & r.Mask() {
				i := Slot(q, len(s.ReceivedBuffer))
				s.ReceivedBuffer[i] = emptySlot(i)
				if q == sequence {
					break
				}
			}
		}
	}
	s.ReceivedNext = (sequence + 1) & r.Mask()
	if ahead >= 64 {
		s.Word = 0
	} else {
		s.Word <<= uint(ahead)
	}
}

func (s *State) growReceived() {
	n := ringSize(s.receivedSpan, s.Rules.Received)
	if n <= len(s.ReceivedBuffer) {
		return
	}
	old := s.ReceivedBuffer
	s.ReceivedBuffer = emptyRing(n)
	for i, q := range old {
		if q != emptySlot(i) {
			s.ReceivedBuffer[Slot(q, n)] = q
		}
	}
}
