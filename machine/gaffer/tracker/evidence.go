package tracker

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// farHeader is a header of a far side while it is processed: the sender, its peer, the
// packet that carried it and its claims.
//
// It shows that the side read something in a certain frame. For example, packets 20 and
// 23 of the side pass the tap, and 21 and 22 are lost. Packet 23 names a packet that 20
// does not. So the side read it in frame 21, 22 or 23: before is 20 and own is 23. The
// field before is the last packet whose header passed the tap, before < own. (For an
// overtaken header it is not known.)
type farHeader struct {
	s, peer     *side
	p           *sighting
	claims      gaffer.Claims
	behind      int // how far the claims' newest is behind the newest known, after the window has moved up to it
	own, before int64
	jump        int // how far the header moved the window; 0 if that was less than a burst
	// No header covers hidden packets of the peer, from number uncovered on. They may have
	// arrived and carried what the side acks now.
	uncovered uint32
	hidden    int
}

// jumped reports whether the window jumped over a packet that the header names. behind
// is the packet's distance to the newest.
func (f *farHeader) jumped(behind int) bool { return 0 < behind && behind < f.jump }

// takeFarHeader processes a header of a far side. The packets that it names were
// received, and the acks in those packets were read. Nothing else is known about the
// side.
func (t *Tracker) takeFarHeader(s, peer *side, p *sighting, c gaffer.Claims, number int64, out *machine.Effects) {
	r := t.rules
	// An overtaken header shows an earlier moment.
	newest, f := true, farHeader{s: s, peer: peer, p: p, claims: c, own: number, before: number - 1}
	if !s.headers.opened {
		t.open(s, peer, p, c)
	} else if newest = number > s.headers.number; newest {
		f.before = s.headers.number
	}
	if newest {
		s.headers.number = number
	}
	newly := c.Named
	if newly == 0 && c.Nothing(r) {
		if newest && s.reads.count > 0 && !s.headers.last.Nothing(r) {
			t.ackWentBack(p, 0, out)
		}
		return
	}
	ahead := r.Distance(c.Newest, s.NewestReceived())
	if hidden := ahead - c.Width; hidden > 0 && ahead >= burstLeast {
		f.uncovered, f.hidden = (s.NewestReceived()+1)&r.Mask(), hidden
	}
	switch {
	case ahead >= 64:
		s.AdvanceBy(ahead, c.Newest)
		f.jump = ahead
	case ahead >= 0:
		known := s.Word << (uint(ahead) & 63)
		newly &^= known
		if gone := known &^ (c.Named | r.Silent(c)) & c.Covered(); gone != 0 && newest {
			t.withdrawBits(s, p, c, gone, out)
		}
		if ahead > 0 {
			s.AdvanceBy(ahead, c.Newest)
		}
		if ahead >= burstLeast {
			f.jump = ahead
		}
	default:
		f.behind = -ahead
		newly = t.unheld(s, c)
		if newest {
			t.ackWentBack(p, f.behind, out)
		}
	}
	switch {
	case newly == 0:
	case newly&(newly-1) == 0:
		n := bits.TrailingZeros64(newly)
		if e := t.named(&f, n, out); e != nil {
			t.receivedByFar(&f, e, f.behind+n, out)
		}
	default:
		t.prove(&f, newly, out)
	}
	if newest {
		if !peer.Near {
			t.expireUnnamed(s, peer, p, c, machine.Likely, out)
		}
		t.settleUnnamed(s, peer, c)
		s.headers.last = c
	}
}

// withdrawBits handles packets that an earlier header of the side named, and that this
// header covers but does not name.
func (t *Tracker) withdrawBits(s *side, p *sighting, c gaffer.Claims, gone uint64, out *machine.Effects) {
	for ; gone != 0; gone &= gone - 1 {
		q := (c.Newest - uint32(bits.TrailingZeros64(gone))) & t.rules.Mask()
		t.bitWithdrawn(p, c, q, out)
		s.Withdraw(q)
	}
}

// prove enters several packets that a far side's header names for the first time.
func (t *Tracker) prove(f *farHeader, newly uint64, out *machine.Effects) {
	// Oldest first, then sorted by frame: the order in which they passed the tap.
	var order [64]*gaffer.Sent
	n := 0
	for left := newly; left != 0; {
		bit := bits.Len64(left) - 1
		left &^= 1 << uint(bit)
		e := t.named(f, bit, out)
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
		t.receivedByFar(f, e, f.behind+t.rules.Distance(f.claims.Newest, e.Sequence), out)
	}
}

// named returns the packet that bit n of the claims names for the first time. It
// returns nil if the packet did not pass the tap, or is too old to count.
func (t *Tracker) named(f *farHeader, n int, out *machine.Effects) *gaffer.Sent {
	q := (f.claims.Newest - uint32(n)) & t.rules.Mask()
	e := f.peer.Sent(q)
	if e == nil {
		t.claimUnseen(f.p, f.claims, n, out)
		return nil
	}
	f.s.nearEdge(f.p, f.claims, n, f.own-1-f.before)
	f.s.headers.leftOut(t.rules, q)
	if f.s.SlidPast(q) && !t.rules.DeliverStale {
		return nil // named by a header from long ago; the window has moved on
	}
	return e
}

// receivedByFar records that a far side received e before it sent the header. The
// argument behind is the distance of e to the newest packet that the side received.
func (t *Tracker) receivedByFar(f *farHeader, e *gaffer.Sent, behind int, out *machine.Effects) {
	f.s.EnterBehind(e.Sequence, behind)
	f.s.reads.count++
	f.peer.arrived(e, f.p.at, true)
	if t.receipts != nil {
		t.readFar(f, e, t.gradeJump(machine.Certain, f.jumped(behind)))
	}
	if !out.NoEvents {
		v := emit(out, machine.EventReceived, f.p.from, t.gradeJump(machine.Certain, f.jumped(behind)), f.p.at, f.p.ref)
		v.Sequence, v.Sequence64, v.About = e.Sequence, f.peer.unwrap(e.Sequence), e.Ref
	}
	if e.Flags&gaffer.SentHeader != 0 {
		t.readByFar(f, e, behind, out)
	}
}

// readByFar records that a far side read the acks of e, a packet of its peer. It read
// them no later than in the frame that sent the header. So it had not sent the packet of
// that header yet, nor later ones: an ack that names these was not taken.
//
// An honest peer names no such packet. But a peer that does not know of a restart names
// packets of the session before. The same numbers come again.
func (t *Tracker) readByFar(f *farHeader, e *gaffer.Sent, behind int, out *machine.Effects) {
	r, s, p := t.rules, f.s, f.p
	claims := r.Claims(e.Ack, e.AckBits)
	fresh, recent := s.Unread(claims)
	mixed := e.Flags&gaffer.SentFragmented != 0 && s.mayMix(f.peer, e.Sequence)
	for ; fresh != 0; fresh &= fresh - 1 {
		n := bits.TrailingZeros64(fresh)
		number := s.unwrap((claims.Newest - uint32(n)) & r.Mask())
		if number >= f.own {
			continue // not sent yet
		}
		a := s.Ack(claims, n, recent, p.at, e.Ref)
		if a == nil {
			continue
		}
		s.acks.read(a)
		sure := machine.Certain
		switch {
		case f.own-number > int64(r.Sent), r.SentUnknown && f.own-number > int64(r.AckBits):
			sure = machine.Likely // the side may have sent more than its buffer holds before it read this
		case mixed, number > f.before && a.At >= e.At:
			sure = machine.Likely // the side may have read other acks, or read these before it sent the packet
		}
		carried := e.At
		if f.hidden > 0 {
			carried = t.carrierPassed(f, a.Sequence, e)
		}
		s.estimate.read(&farSample{number, f.before, f.own, carried})
		if !out.NoEvents {
			v := emit(out, machine.EventAcked, p.from, t.gradeJump(sure, f.jumped(behind)), p.at, p.ref)
			v.Bit, v.Sequence, v.Sequence64, v.By, v.About = a.Bit, a.Sequence, number, e.Ref, a.Ref
			v.RTT = int64(float64(f.own-number) * s.estimate.clock.tick)
		}
	}
}

// carrierPassed returns when a certain packet passed the tap: the one that most likely
// told a far side about the receipt of its packet q. That is e, the first known arrival
// that names q. If hidden packets before e name q, it is one of those. As many of them
// are skipped as the path usually loses.
func (t *Tracker) carrierPassed(f *farHeader, q uint32, e *gaffer.Sent) machine.Instant {
	r := t.rules
	wait := 0
	if loss, _ := t.loss(f.peer.side); loss > 0 && loss < 1 {
		wait = int(loss/(1-loss) + 0.5)
	}
	for n := range min(f.hidden, r.Sent) {
		h := f.peer.Sent((f.uncovered + uint32(n)) & r.Mask())
		if h == nil || h.Flags&gaffer.SentHeader == 0 || !r.Claims(h.Ack, h.AckBits).Names(r, q) {
			continue
		}
		if wait--; wait < 0 {
			return min(h.At, e.At)
		}
	}
	return e.At
}

// expireUnnamed handles packets of the peer that a header has just moved out of its
// range. Those that no header named can no longer be acked. It is for a far peer. For a
// near peer, the acks that the peer read decide (expireUnread).
//
// sure is Possible where the capture lacks headers that the side sent before this one. They may have
// named a packet. If some header that was captured could have named it and did not, it is likely lost.
// If there was none, nothing is known of it.
func (t *Tracker) expireUnnamed(s, peer *side, p *sighting, c gaffer.Claims, sure machine.Certainty,
	out *machine.Effects,
) {
	if peer.Near || !peer.Met || s.headers.last.Width == 0 {
		return
	}
	r := t.rules
	ahead := r.Distance(c.Newest, s.headers.last.Newest)
	if ahead <= 0 {
		return
	}
	if c.Width+ahead <= 64 {
		missing := ^s.Word >> (uint(c.Width) & 63) & (1<<(uint(ahead)&63) - 1)
		for ; missing != 0; missing &= missing - 1 {
			t.expire(s, peer, c.Width+bits.TrailingZeros64(missing), p, c, sure, out)
		}
		return
	}
	for n := min(c.Width+ahead, r.Sent) - 1; n >= c.Width; n-- {
		if !s.Has((c.Newest - uint32(n)) & r.Mask()) {
			t.expire(s, peer, n, p, c, sure, out)
		}
	}
}

// expire handles a packet of the peer so far behind the newest that a header names, for expireUnnamed.
func (t *Tracker) expire(s, peer *side, behind int, p *sighting, c gaffer.Claims, sure machine.Certainty,
	out *machine.Effects,
) {
	q := (c.Newest - uint32(behind)) & t.rules.Mask()
	if sure == machine.Possible {
		if t.rules.Distance(q, s.headers.last.Newest) > 0 {
			return
		}
		sure = machine.Likely
	}
	peer.loseUnnamed(p.from.Other(), q, p.at, p.ref, sure, out)
}

func (s *side) loseUnnamed(x machine.Side, q uint32, at machine.Instant, ref machine.Ref, sure machine.Certainty,
	out *machine.Effects,
) {
	if e := s.Sent(q); e != nil && e.Flags&(gaffer.SentAcked|gaffer.SentLost|gaffer.SentArrived) == 0 {
		s.lose(x, e, at, ref, sure, out)
	}
}

func (s *side) lose(x machine.Side, e *gaffer.Sent, at machine.Instant, ref machine.Ref, sure machine.Certainty,
	out *machine.Effects,
) {
	s.acks.lose(e)
	if v := emit(out, machine.EventLost, x, sure, at, ref); v != nil {
		v.Sequence, v.Sequence64, v.About = e.Sequence, s.unwrap(e.Sequence), e.Ref
	}
}

// expireUnread handles a near side's packets that no claims acked. The claims that it is about to read
// no longer cover them. told says that the capture lacks packets before the one with the claims. What
// only those may have named is not known to be lost.
func (s *side) expireUnread(x machine.Side, c gaffer.Claims, by *candidate, told bool, out *machine.Effects) {
	r := s.Rules
	ahead := r.Distance(c.Newest, s.AckedTop)
	if ahead <= 0 {
		return
	}
	for n := min(c.Width+ahead, r.Sent) - 1; n >= c.Width; n-- {
		q := (c.Newest - uint32(n)) & r.Mask()
		if told && r.Distance(q, s.AckedTop) > 0 {
			return
		}
		if e := s.Sent(q); e != nil && e.Flags&(gaffer.SentAcked|gaffer.SentLost) == 0 {
			s.lose(x, e, by.at, by.ref, machine.Likely, out)
		}
	}
}
