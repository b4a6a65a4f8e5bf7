package gaffer

// NewestReceived returns the sequence that ack names: the newest received, or
// that of a newer packet of which fragments came. A fresh endpoint gives the
// largest sequence number, which says "nothing".
func (s *State) NewestReceived() uint32 { return (s.ReceivedNext - 1) & s.Rules.Mask() }

// Acks returns the fields of the next header.
func (s *State) Acks() (ack uint32, ackBits uint64) {
	c := s.Claims()
	if s.Rules.AckBelow {
		return c.Newest, c.Named >> 1 & (1<<uint(s.Rules.AckBits) - 1)
	}
	return c.Newest, c.Named
}

// Claims returns what the next header will name.
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
	return Claims{s.NewestReceived(), named, width}
}

// Has reports whether the received buffer holds a packet.
func (s *State) Has(sequence uint32) bool {
	return len(s.ReceivedBuffer) > 0 && s.ReceivedBuffer[Slot(sequence, len(s.ReceivedBuffer))] == sequence
}

// Judge says what would become of a whole packet that arrives, if the
// application does not refuse it. It changes nothing.
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

// SlidPast reports whether the receive window has moved on past a sequence.
func (s *State) SlidPast(sequence uint32) bool {
	r := s.Rules
	return r.Newer((s.ReceivedNext-uint32(r.Received))&r.Mask(), sequence)
}

// Arrive takes a whole packet, or one whose fragments are complete. refuse is
// the application's answer, should it be handed the packet.
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
// application took.
func (s *State) Accept(sequence uint32) {
	s.EnterReceived(sequence)
	if s.Rules.Partial > 0 {
		s.advancePartial(sequence)
	}
}

// EnterReceived puts a sequence into the received buffer. A newer one than the
// newest clears what lies between.
func (s *State) EnterReceived(sequence uint32) {
	r := s.Rules
	behind := -r.Distance(sequence, s.NewestReceived())
	if behind < 0 {
		s.AdvanceBy(-behind, sequence)
		behind = 0
	}
	s.EnterBehind(sequence, behind)
}

// EnterBehind enters a sequence that lies so far behind the newest.
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

// Withdraw takes a sequence out of the received buffer again: a correct endpoint
// never does, one that is observed may.
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

// Advance moves the receive window up to a sequence without entering it, as the
// first fragment of a packet does.
func (s *State) Advance(sequence uint32) {
	if ahead := s.Rules.Distance(sequence, s.NewestReceived()); ahead > 0 {
		s.AdvanceBy(ahead, sequence)
	}
}

// AdvanceBy moves the receive window on by so many sequences.
func (s *State) AdvanceBy(ahead int, sequence uint32) {
	r := s.Rules
	if len(s.ReceivedBuffer) > 0 && !r.NoStaleClear {
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
