package riptide

// portList is the list of acked ids of Pytide 2.1.0-alpha. After the first shift its capacity
// equals its count. From then on, every shift must first trim as many bits as it will add. Where
// there are fewer bits, the library throws and leaves the rest of the Ack unread.
type portList struct {
	words    []uint32
	count    int
	capacity int
}

// portCapacity is the first capacity of a portList, in bits.
// Source: library, Pytide 2.1.0-alpha: the capacity of its bit list
const portCapacity = 128

// set reports whether a bit, from 1, is set. Bits beyond the count are.
func (l *portList) set(bit int) bool {
	return bit > l.count || (bit-1)/wordBits < len(l.words) && l.words[(bit-1)/wordBits]>>((bit-1)%wordBits)&1 == 1
}

func (l *portList) mark(bit int) {
	if bit > l.count {
		return // the library marks it and never reads it
	}
	for (bit-1)/wordBits >= len(l.words) {
		l.words = append(l.words, 0)
	}
	l.words[(bit-1)/wordBits] |= 1 << ((bit - 1) % wordBits)
}

// merge sets those of the first 16 bits that an Ack has set.
func (l *portList) merge(bits uint16) {
	for i := range WindowAcks {
		if bits>>i&1 == 1 {
			l.mark(i + 1)
		}
	}
}

// shift moves the bits away from the newest id. It drops bits beyond the count, since they never
// come back.
func (l *portList) shift(by int) {
	l.count += by
	l.capacity = l.count
	whole, rest := by/wordBits, by%wordBits
	need := (l.count + wordBits - 1) / wordBits
	moved := make([]uint32, need)
	for i := range moved {
		if j := i - whole; j >= 0 && j < len(l.words) {
			moved[i] |= l.words[j] << rest
			if rest > 0 && i+1 < need {
				moved[i+1] |= l.words[j] >> (wordBits - rest)
			}
		}
	}
	l.words = moved
}

// port records an Ack as Pytide does. Pytide counts from the newest id that its own side has
// received. Its author meant the newest acked id.
func (s *Sender) port(last, bits uint16, decide func(id uint16, v Verdict)) {
	l := &s.ported
	if l.capacity == 0 {
		l.capacity = portCapacity
	}
	gap := GapOf(last, s.received)
	switch {
	case gap < 0:
		l.mark(-gap)
		return
	case gap == 0:
		l.merge(bits)
		return
	}
	for range l.count + gap - l.capacity {
		at := l.count
		if at == 0 {
			s.Threw++
			return
		}
		v := Again
		if l.set(at) {
			v = Cleared
		}
		l.count--
		decide(s.received-uint16(at), v)
	}
	l.shift(gap)
	s.Last = last
	for i := range WindowAcks {
		if bits>>i&1 == 1 && !l.set(i+1) {
			decide(last-uint16(i+1), Cleared)
		}
	}
	l.merge(bits)
	l.mark(gap)
	decide(last, Cleared)
}
