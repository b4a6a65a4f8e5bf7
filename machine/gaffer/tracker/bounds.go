package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// lossBounds bounds how many of a side's packets were lost on the way to its peer. It
// counts numbers: those from the oldest to the newest that passed the tap.
//
//	tap at the peer    what did not pass the tap was lost. If the capture lacks packets,
//	                   the peer's headers still show which packets did not come.
//	elsewhere          what a header names has arrived, so the rest is the most that was
//	                   lost. What headers covered and never named is the least. Packets
//	                   that no header covers lie between, such as those after the last one.
//
// A packet of fragments that came in part was lost. But where no packet of fragments has ever
// become whole, its sender may be at fault: its fragments may lack the header.
//
// A number that did not pass a tap at its sender was lost by the capture, or was never used. So it
// counts for the most only, if no header names it.
func (t *Tracker) lossBounds(x machine.Side) (b machine.LossBounds) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	if !s.Met {
		return b
	}
	missing := s.sent.missingAbove()
	missing -= min(missing, s.sent.leapt)
	b.Sent = s.sent.distinct - s.sent.below + missing
	if s.Near && peer.Near {
		b.Certainty = machine.Certain // there is no path
		return b
	}
	if peer.Near {
		parts := peer.reads.begun - peer.reads.whole
		b.Most = min(b.Sent, missing+parts)
		b.Least, b.Certainty = b.Most, t.grade(machine.Certain)
		if s.losses.unseen > 0 || !peer.sent.complete() {
			b.Least -= min(b.Least, peer.headers.uncovered)
			b.Certainty = t.grade(machine.Likely)
		}
		open := s.losses.unseen + t.mayStillCome(s)
		if peer.reads.whole == 0 {
			open += parts
		}
		if !s.sent.stepsOne {
			open += s.sent.behind
		}
		b.Least -= min(b.Least, open)
		return b
	}
	b.Most = b.Sent
	if peer.headers.last.Width == 0 {
		return b // no header of the peer passed the tap
	}
	b.Certainty = t.grade(machine.Likely)
	if !t.lied() {
		b.Most -= min(b.Most, s.acks.wireCount+s.losses.unseen)
	}
	if !t.mayComeUnnamed(s, peer) {
		b.Least = s.losses.unnamed + t.waitsUnnamed(s, peer)
		if t.facts.Vantage == machine.VantageBetween && s.losses.unseen == 0 {
			b.Least = max(b.Least, missing)
		}
		b.Least = min(b.Least, b.Most)
	}
	return b
}

// mayStillCome counts the missing numbers that are no further behind the newest than packets of
// the side have come late.
func (t *Tracker) mayStillCome(s *side) (n uint64) {
	for behind := range min(s.sent.overtaken, openMost, int(s.sent.extent())) {
		if s.Sent((s.sent.top-uint32(behind))&t.rules.Mask()) == nil {
			n++
		}
	}
	return n
}

// openMost is how far behind the newest a packet counts as one that may still come, at most.
// Source: bound, the packets that are looked at for each figure of a loss
const openMost = 64

// mayComeUnnamed reports whether packets that no header names may have arrived all the
// same. An application refuses packets: then its peer's may do so too. Or the network
// holds packets back for longer than headers cover them. Or the peer's headers leave out
// what they should name.
func (t *Tracker) mayComeUnnamed(s, peer *side) bool {
	return s.application.refuses || peer.application.refuses || peer.headers.bare || t.heldBack(s, peer)
}

// heldBack reports whether the network has held a packet back for so long that half of the
// packets that a header covers overtook it.
func (t *Tracker) heldBack(s, peer *side) bool {
	overtaken := max(peer.sent.overtaken, s.sent.overtaken, t.facts.Overtaken[machine.A], t.facts.Overtaken[machine.B])
	width := peer.headers.last.Width
	return width > 0 && overtaken >= width/2
}

// settleUnnamed settles the fate of the peer's packets that a header of the far side s
// has just moved out of its range. For example, packet 100 passes the tap, the side acks
// 131, then 140, and no header names 100. With 32 ack bits the header with 131 covers it
// for the last time: it did not arrive. These packets stay open:
//
//   - packets that no header covered;
//   - packets less than half a window behind the last header that covered them. Such a
//     packet may have been overtaken, and may arrive when no header covers it any more;
//   - packets that their receiver may have dropped, as droppedUnnamed tells.
func (t *Tracker) settleUnnamed(s, peer *side, c gaffer.Claims) {
	r, heard := t.rules, &s.headers.last
	ahead := r.Distance(c.Newest, heard.Newest)
	if heard.Width == 0 || ahead <= 0 {
		return
	}
	first := max(c.Width, ahead+heard.Width/2)
	for n := ahead + heard.Width - 1; n >= first; n-- {
		q := (c.Newest - uint32(n)) & r.Mask()
		if peer.HasArrived(q) { // as almost all have
			peer.losses.beyond.Settle(false)
			continue
		}
		e := peer.Sent(q)
		if e == nil {
			if peer.Met && !peer.Near && !s.Has(q) && peer.counts(q) {
				peer.losses.unnamed++
			}
			continue
		}
		lost := e.Flags&gaffer.SentArrived == 0
		if lost && peer.droppedUnnamed(e) {
			continue
		}
		peer.losses.beyond.Settle(lost)
		if lost && e.Flags&gaffer.SentUnnamed == 0 {
			e.Flags |= gaffer.SentUnnamed
			peer.losses.unnamed++
		}
	}
}

// droppedUnnamed reports whether the peer may have got a packet of the side and dropped it. The
// side restarted, and the peer takes the packet for one of the session before. Or it is a packet of
// fragments, and the peer has never accepted one.
func (s *side) droppedUnnamed(e *gaffer.Sent) bool {
	return e.Flags&gaffer.SentFragmented != 0 && !s.acks.parts || s.earlier.reaches(e.Sequence)
}

// counts reports whether a number that did not pass the tap lies among those that did.
func (s *side) counts(q uint32) bool {
	number := s.unwrap(q)
	return s.sent.first64 <= number && number < s.sent.top64
}

// overtakesLeast decides at the end of what headers show. A packet that a header leaves out
// counts as lost when so many newer packets have been named.
// Source: definition, steady-loss: a packet that two newer ones overtook was lost, where no more than one ever did
const overtakesLeast = 2

// waitsUnnamed counts the packets of s that the newest header of a far peer covers, and that
// no header has named. It leaves out those that newer packets may merely have overtaken.
func (t *Tracker) waitsUnnamed(s, peer *side) (n uint64) {
	c := &peer.headers.last
	for behind := max(overtakesLeast, min(2*peer.headers.named, c.Width/2)); behind < c.Width; behind++ {
		q := (c.Newest - uint32(behind)) & t.rules.Mask()
		switch e := s.Sent(q); {
		case e != nil && e.Flags&(gaffer.SentArrived|gaffer.SentUnnamed) == 0 && !s.droppedUnnamed(e),
			e == nil && !s.Near && !peer.Has(q) && s.counts(q):
			n++
		}
	}
	return n
}

// leftOut records that a header names q, which the newest header before covered and left
// out.
func (h *headers) leftOut(r *gaffer.Rules, q uint32) {
	if behind := r.Distance(h.last.Newest, q); h.last.Width > 0 && 0 <= behind && behind < h.last.Width {
		h.named = max(h.named, behind+1)
	}
}

// passOver records how many numbers lie between a header's range and the range before.
func (h *headers) passOver(r *gaffer.Rules, c gaffer.Claims) {
	if ahead := r.Distance(c.Newest, h.last.Newest) - c.Width; h.last.Width > 0 && ahead > 0 {
		h.uncovered += uint64(ahead)
	}
}
