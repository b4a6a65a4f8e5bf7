package tracker

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// takeNearHeader processes a header of a near side. It finds the newest datagram that
// the header proves to have been read, and settles all candidates up to it.
func (t *Tracker) takeNearHeader(s, peer *side, p *sighting, c gaffer.Claims, out *machine.Effects) {
	r := t.rules
	if !s.headers.opened {
		t.open(s, peer, p, c)
	}
	s.headers.count++
	known := s.State.Claims()
	if c == known {
		s.headers.last, s.headers.at, s.headers.lacking = c, p.at, false
		return
	}
	ahead := r.Distance(c.Newest, known.Newest)
	var newly uint64
	switch {
	case ahead >= 64:
		newly = c.Named
	case ahead >= 0:
		newly = c.Named &^ (s.Word << uint(ahead))
	default:
		newly = t.unheld(s, c)
	}
	var until uint32
	for left := newly; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		if !s.headers.lacking {
			s.nearEdge(p, c, n, 0)
		}
		if place := s.completedBy(peer, (c.Newest-uint32(n))&r.Mask()); place != 0 && s.queue.later(place, until) {
			until = place
		}
	}
	if ahead > 0 && c.Named&1 == 0 && !c.Nothing(r) {
		// The window moved to a packet that is not received: its first fragment moved it.
		if place := s.waiting(peer, c.Newest); place != 0 && s.queue.at(place).count > 0 && s.queue.later(place, until) {
			until = place
		}
	}
	if until != 0 {
		t.settle(p.from, &settling{at: p.at, ref: p.ref, sequence: p.sequence, claims: c, until: until}, out)
	}
	if s.State.Claims() != c {
		t.reconcile(p, c, out)
	}
	sure := t.restOnBase(machine.Certain)
	if s.headers.lacking {
		sure, s.headers.lacking = machine.Possible, false
	}
	t.expireUnnamed(s, peer, p, c, sure, out)
	s.headers.passOver(r, c)
	s.headers.last, s.headers.at = c, p.at
}

// reconcile adapts the State of a near side to a header that it does not predict.
// Either the capture lacks packets, or no correct endpoint would write this header.
func (t *Tracker) reconcile(p *sighting, c gaffer.Claims, out *machine.Effects) {
	s := &t.Sides[p.from]
	r := t.rules
	newest := s.NewestReceived()
	if r.Distance(c.Newest, newest) > 0 {
		s.Advance(c.Newest)
	} else if back := r.Distance(s.headers.last.Newest, c.Newest); back > 0 {
		t.ackWentBack(p, back, out)
	}
	for left := t.unheld(s, c); left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		t.claimUnseen(p, c, n, out)
	}
	for n := range min(c.Width, 64) {
		q := (c.Newest - uint32(n)) & r.Mask()
		if r.Omits(c, n) && s.Has(q) && s.headers.last.Names(r, q) {
			t.bitWithdrawn(p, c, q, out)
			s.Withdraw(q)
		}
	}
}

// unheld returns the bits of the named packets that the received buffer does not hold.
func (t *Tracker) unheld(s *side, c gaffer.Claims) uint64 {
	newly := c.Named
	for left := c.Named; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		if s.Has((c.Newest - uint32(n)) & t.rules.Mask()) {
			newly &^= 1 << uint(n)
		}
	}
	return newly
}

// aheadOf returns how far ahead of a side's newest packet the first header of its peer may be
// before it speaks of another session. A side that counts far from 0 did not begin anew.
func (t *Tracker) aheadOf(s *side) int {
	switch {
	case s.headers.fresh:
		return 0
	case !s.Met || uint32(s.sent.began64)&t.rules.Mask() >= RestartMost:
		return int(t.rules.Mask())
	}
	return t.overtakes(s)
}

// open sets a side's receive window from its first header. A side's buffers are empty
// if its first packet was captured, or if it says that it has received nothing.
// Otherwise the side has what the header names, and anything older is unknown.
//
// Packet 0 is not the first one at a wrap. Its header then names packets from before the
// capture.
func (t *Tracker) open(s, peer *side, p *sighting, c gaffer.Claims) {
	s.headers.opened, s.headers.openedAt = true, p.at
	known := s.earlier.Known() || peer.earlier.Known()
	if c.Nothing(t.rules) || p.sequence == 0 && s.sent.starts && (known || !t.wraps(s, peer, c)) {
		s.headers.fresh = true
		s.headers.joined = peer.sent.first64
		return
	}
	if p.sequence >= StartWithin && t.rules.Distance(c.Newest, peer.sent.top) > t.aheadOf(peer) {
		// The peer began anew, and the side goes on from a session before the capture.
		peer.earlier.Found(c.Newest, uint32(peer.sent.began64)&t.rules.Mask())
	}
	before := c
	for left := c.Named; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		q := (c.Newest - uint32(n)) & t.rules.Mask()
		if s.Near && s.waiting(peer, q) != 0 || !s.Near && peer.Sent(q) != nil {
			before.Named &^= 1 << uint(n) // it passed the tap: its receipt is still to be reported
		}
	}
	s.Join(before)
	if peer.Met {
		s.headers.joined = peer.unwrap(c.Newest) - int64(c.Width) + 1
	} else {
		s.headers.joined = int64(c.Newest) - int64(c.Width) + 1
	}
}

// waiting returns the place of the oldest candidate of a sequence. It returns 0 if
// there is none.
func (s *side) waiting(peer *side, sequence uint32) uint32 {
	if e := peer.Sent(sequence); e != nil && s.queue.holds(e.Waiting) {
		return e.Waiting
	}
	if s.queue.hidden > 0 {
		return s.queue.find(sequence)
	}
	return 0
}

// completedBy returns the place of the candidate that completed a packet: its oldest
// copy, or the last of its fragments. It returns 0 if there is none.
func (s *side) completedBy(peer *side, sequence uint32) uint32 {
	place := s.waiting(peer, sequence)
	if place == 0 || s.queue.at(place).count == 0 {
		return place
	}
	have := gaffer.Partial{Missing: int(s.queue.at(place).count)}
	if p := s.PartialOf(sequence); p != nil {
		have = *p
	}
	for {
		c := s.queue.at(place)
		if c.count == 0 {
			return place
		}
		if have.Have[c.id/64&3]&(1<<(c.id%64)) == 0 {
			have.Have[c.id/64&3] |= 1 << (c.id % 64)
			have.Missing--
		}
		if have.Missing <= 0 || !s.queue.holds(c.next) {
			return place
		}
		place = c.next
	}
}
