package gaffer

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
)

// farFrame is a frame of a far side that read something: the one that sent the
// packet numbered own, or one after that of packet before, the last whose header
// passed the tap. (Of an overtaken header the one before it is not known.)
type farFrame struct{ own, before int64 }

// testify takes a header of a far side: what it names was received, and the acks
// that those packets carried were read. Nothing else is known of that side.
func (t *Tracker) testify(p *sighting, c Claims, number int64, out *machine.Effects) {
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	r := t.rules
	// A header that was overtaken on its way tells of an earlier moment.
	newest, frame := true, farFrame{number, number - 1}
	if !s.opened {
		t.open(s, peer, p, c)
	} else if newest = number > s.headed; newest {
		frame.before = s.headed
	}
	if newest {
		s.headed = number
	}
	var newly uint64
	ahead := r.Distance(c.Newest, s.NewestReceived())
	switch {
	case c.Nothing(r):
		if newest && s.received > 0 && !s.heard.Nothing(r) {
			t.ackWentBack(p, 0, out)
		}
		return
	case ahead >= 64:
		newly = c.Named
	case ahead >= 0:
		newly = c.Named &^ (s.word << uint(ahead))
	default:
		newly = t.unheld(s, c)
		if newest {
			t.ackWentBack(p, -ahead, out)
		}
	}
	if newest {
		t.checkWithdrawn(p, c, out)
	}
	s.Advance(c.Newest)
	if newly != 0 {
		t.prove(p, c, newly, frame, out)
	}
	if newest {
		t.pass(p, c, machine.Likely, out)
		s.heard = c
	}
}

// checkWithdrawn looks for packets that an earlier header of the side named, that
// this one speaks of, and that it does not name.
func (t *Tracker) checkWithdrawn(p *sighting, c Claims, out *machine.Effects) {
	s := &t.sides[p.from]
	ahead := t.rules.Distance(c.Newest, s.NewestReceived())
	if ahead < 0 || ahead >= 64 {
		return
	}
	gone := s.word << uint(ahead) &^ c.Named
	if c.Width < 64 {
		gone &= 1<<uint(c.Width) - 1
	}
	for ; gone != 0; gone &= gone - 1 {
		q := (c.Newest - uint32(bits.TrailingZeros64(gone))) & t.rules.mask()
		t.bitWithdrawn(p, c, q, out)
		s.Withdraw(q)
	}
}

// prove takes packets that a far side's header names for the first time.
func (t *Tracker) prove(p *sighting, c Claims, newly uint64, frame farFrame, out *machine.Effects) {
	if newly&(newly-1) == 0 {
		if e := t.named(p, c, bits.TrailingZeros64(newly), out); e != nil {
			t.receivedByFar(p, e, frame, out)
		}
		return
	}
	// Oldest first: the order in which they were sent. What was overtaken before
	// the tap is put right here.
	var order [64]*Sent
	n := 0
	for left := newly; left != 0; {
		bit := bits.Len64(left) - 1
		left &^= 1 << uint(bit)
		e := t.named(p, c, bit, out)
		if e == nil {
			continue
		}
		i := n
		for ; i > 0 && order[i-1].Ref > e.Ref; i-- {
			order[i] = order[i-1]
		}
		order[i] = e
		n++
	}
	for _, e := range order[:n] {
		t.receivedByFar(p, e, frame, out)
	}
}

// named gives the packet that bit n of c names for the first time; nil where it
// did not pass the tap, or is too old to count.
func (t *Tracker) named(p *sighting, c Claims, n int, out *machine.Effects) *Sent {
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	q := (c.Newest - uint32(n)) & t.rules.mask()
	e := peer.Sent(q)
	if e == nil {
		t.claimUnseen(p, c, n, out)
		return nil
	}
	s.nearEdge(p, c, n)
	if s.Judge(q) == Stale {
		return nil // named by a header from long ago; the window has moved on
	}
	return e
}

// receivedByFar takes it that a far side received e before it sent p.
func (t *Tracker) receivedByFar(p *sighting, e *Sent, frame farFrame, out *machine.Effects) {
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	s.EnterReceived(e.Sequence)
	s.received++
	if e.Flags&SentArrived == 0 {
		e.Flags |= SentArrived
		peer.wireRTT += int64(p.at - e.At)
		peer.wireCount++
	}
	if v := tell(out, machine.EventReceived, p.from, t.grade(machine.Certain), p.at, p.ref); v != nil {
		v.Sequence, v.Sequence64, v.About = e.Sequence, peer.unwrap(e.Sequence), e.Ref
	}
	if e.Flags&SentHeader != 0 {
		t.readByFar(p, e, frame, out)
	}
}

// readByFar takes it that a far side read the acks of e, a packet of its peer,
// no later than in the frame that sent p.
func (t *Tracker) readByFar(p *sighting, e *Sent, frame farFrame, out *machine.Effects) {
	s := &t.sides[p.from]
	r := t.rules
	claims := r.Claims(e.Ack, e.AckBits)
	told := s.ReadAcks(claims, p.at, e.Ref)
	if told == 0 {
		return
	}
	for ; told != 0; told &= told - 1 {
		n := bits.TrailingZeros64(told)
		a := s.Sent((claims.Newest - uint32(n)) & r.mask())
		s.acked++
		if a.Flags&SentLost != 0 {
			a.Flags &^= SentLost
			s.lost--
		}
		number := s.unwrap(a.Sequence)
		sure := machine.Certain
		if frame.own-number > int64(r.Sent) {
			// The side may have sent more than its buffer holds before it read this.
			sure = machine.Likely
		}
		s.estimate.read(farSample{number, frame.before, frame.own, e.At})
		if v := tell(out, machine.EventAcked, p.from, t.grade(sure), p.at, p.ref); v != nil {
			v.Bit, v.Sequence, v.Sequence64, v.By, v.About = a.Bit, a.Sequence, number, e.Ref, a.Ref
			v.RTT = int64(float64(frame.own-number) * s.estimate.clock.tick)
		}
	}
}

// pass looks at the peer's packets that a header has just moved out of what it
// speaks of: those that no header named can no longer be acked. Of a near peer
// the acks that it read decide (slide); here it is a far one.
func (t *Tracker) pass(p *sighting, c Claims, sure machine.Certainty, out *machine.Effects) {
	x := p.from.Other()
	s, peer := &t.sides[p.from], &t.sides[x]
	if peer.near || !peer.met || s.heard.Width == 0 {
		return
	}
	r := t.rules
	ahead := r.Distance(c.Newest, s.heard.Newest)
	if ahead <= 0 {
		return
	}
	if c.Width+ahead <= 64 {
		missing := ^s.word >> uint(c.Width) & (1<<uint(ahead) - 1)
		for ; missing != 0; missing &= missing - 1 {
			q := (c.Newest - uint32(c.Width+bits.TrailingZeros64(missing))) & r.mask()
			peer.loseUnnamed(x, q, p.at, p.ref, sure, out)
		}
		return
	}
	for n := min(c.Width+ahead, r.Sent) - 1; n >= c.Width; n-- {
		if q := (c.Newest - uint32(n)) & r.mask(); !s.Has(q) {
			peer.loseUnnamed(x, q, p.at, p.ref, sure, out)
		}
	}
}

func (s *side) loseUnnamed(x machine.Side, q uint32, at machine.Instant, ref machine.Ref, sure machine.Certainty, out *machine.Effects) {
	if e := s.Sent(q); e != nil && e.Flags&(SentAcked|SentLost|SentArrived) == 0 {
		s.lose(x, e, at, ref, sure, out)
	}
}

func (s *side) lose(x machine.Side, e *Sent, at machine.Instant, ref machine.Ref, sure machine.Certainty, out *machine.Effects) {
	e.Flags |= SentLost
	s.lost++
	if v := tell(out, machine.EventLost, x, sure, at, ref); v != nil {
		v.Sequence, v.Sequence64, v.About = e.Sequence, s.unwrap(e.Sequence), e.Ref
	}
}

// slide looks at a near side's packets that the claims it is about to read no
// longer speak of, and that no earlier ones acked.
func (s *side) slide(x machine.Side, c Claims, by *candidate, out *machine.Effects) {
	r := s.rules
	ahead := r.Distance(c.Newest, s.ackedTop)
	if ahead <= 0 {
		return
	}
	if ahead <= c.Width {
		from := c.Width - ahead
		missing := ^s.acked >> uint(from)
		if ahead < 64 {
			missing &= 1<<uint(ahead) - 1
		}
		for ; missing != 0; missing &= missing - 1 {
			q := (s.ackedTop - uint32(from+bits.TrailingZeros64(missing))) & r.mask()
			s.loseUnread(x, q, by, out)
		}
		return
	}
	for n := min(c.Width+ahead, r.Sent) - 1; n >= c.Width; n-- {
		s.loseUnread(x, (c.Newest-uint32(n))&r.mask(), by, out)
	}
}

func (s *side) loseUnread(x machine.Side, q uint32, by *candidate, out *machine.Effects) {
	if e := s.Sent(q); e != nil && e.Flags&(SentAcked|SentLost) == 0 {
		s.lose(x, e, by.at, by.ref, machine.Likely, out)
	}
}
