package gaffer

// FragmentFate is the result of a fragment's arrival.
type FragmentFate uint8

const (
	FragmentKept     FragmentFate = iota // more fragments are missing
	FragmentComplete                     // the last missing one: call State.Arrive for the packet, then State.Forget
	FragmentIgnored                      // this fragment or its packet has already arrived
	FragmentInvalid                      // too old for the table, or its count differs from the first fragment's
)

// Partial is an incomplete packet: some of its fragments have arrived.
type Partial struct {
	Sequence uint32
	Count    int // fragments of the packet; 0 marks an empty slot
	Missing  int
	Have     [4]uint64 // bit set: that fragment has arrived
}

// ArriveFragment enters one fragment of a packet. id counts from 0; count is at most
// 256. The first fragment of a packet moves the receive window, unless the rules say
// otherwise. So ack may name a packet that has not been received.
func (s *State) ArriveFragment(sequence uint32, id, count int) FragmentFate {
	r := s.Rules
	if r.Partial == 0 || count < 1 || count > 256 || id < 0 || id >= count {
		return FragmentInvalid
	}
	if s.Has(sequence) {
		return FragmentIgnored
	}
	p := s.PartialOf(sequence)
	if p == nil {
		if r.Newer((s.partialNext-uint32(r.Partial))&r.Mask(), sequence) {
			return FragmentInvalid
		}
		s.advancePartial(sequence)
		if s.PartialBuffer == nil {
			s.PartialBuffer = make([]Partial, r.Partial)
		}
		p = &s.PartialBuffer[Slot(sequence, len(s.PartialBuffer))]
		*p = Partial{Sequence: sequence, Count: count, Missing: count}
		if !r.FragmentsWait {
			s.Advance(sequence)
		}
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

// PartialOf returns the packet's entry in the reassembly table. It returns nil if the
// packet has none.
func (s *State) PartialOf(sequence uint32) *Partial {
	if len(s.PartialBuffer) == 0 {
		return nil
	}
	p := &s.PartialBuffer[Slot(sequence, len(s.PartialBuffer))]
	if p.Count == 0 || p.Sequence != sequence {
		return nil
	}
	return p
}

// Forget drops a packet's fragments. Call it once the packet is complete, whatever its
// fate.
func (s *State) Forget(sequence uint32) {
	if p := s.PartialOf(sequence); p != nil {
		*p = Partial{}
	}
}

// advancePartial moves the table's window. Accepted packets move it too.
func (s *State) advancePartial(sequence uint32) {
	r := s.Rules
	ahead := r.Distance((sequence+1)&r.Mask(), s.partialNext)
	if ahead <= 0 {
		return
	}
	if len(s.PartialBuffer) > 0 {
		if ahead >= len(s.PartialBuffer) {
			clear(s.PartialBuffer)
		} else {
			for q := s.partialNext; ; q = (q + 1) & r.Mask() {
				s.PartialBuffer[Slot(q, len(s.PartialBuffer))] = Partial{}
				if q == sequence {
					break
				}
			}
		}
	}
	s.partialNext = (sequence + 1) & r.Mask()
}
