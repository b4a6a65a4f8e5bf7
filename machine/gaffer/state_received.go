package gaffer

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
	if s.slidPast(sequence) {
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

// slidPast reports whether the receive window has moved on past a sequence.
func (s *State) slidPast(sequence uint32) bool {
	r := s.rules
	return r.Newer((s.receivedNext-uint32(r.Received))&r.mask(), sequence)
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
	s.enterBehind(sequence, behind)
}

// enterBehind enters a sequence that lies so far behind the newest.
func (s *State) enterBehind(sequence uint32, behind int) {
	if behind >= len(s.received) || behind >= s.receivedSpan {
		if need := min(behind+1, s.rules.Received); need > s.receivedSpan || need > len(s.received) {
			s.receivedSpan = max(need, s.receivedSpan)
			s.growReceived()
		}
	}
	s.received[slot(sequence, len(s.received))] = sequence
	if behind < 64 {
		s.word |= 1 << (uint(behind) & 63)
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
		if s.receivedSpan < r.Received {
			s.receivedSpan = min(s.receivedSpan+ahead, r.Received)
			if s.receivedSpan > len(s.received) {
				s.growReceived()
			}
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
