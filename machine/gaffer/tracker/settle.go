package tracker

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// settling is what decides the fate of a near side's candidates: a header of its own
// that proves them read, or the lack of any.
type settling struct {
	at  machine.Instant // when that header passed the tap
	ref machine.Ref
	// sequence is that of its packet.
	sequence uint32
	claims   gaffer.Claims
	until    uint32 // place of the newest candidate that is proved read; 0: all, and none is proved
	silent   bool   // there is no such header
	// doubtful: the header proves that the packet was read, but not which datagram
	// completed it.
	doubtful bool
}

// settle decides the fate of a near side's candidates, in the order in which they were
// read.
func (t *Tracker) settle(x machine.Side, by *settling, out *machine.Effects) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	for s.queue.len() > 0 {
		place := s.queue.head
		c := *s.queue.at(place)
		s.queue.head++
		if c.flags&candidateHidden != 0 {
			s.queue.hidden--
		} else if e := peer.Sent(c.sequence); e != nil && e.Waiting == place {
			e.Waiting = c.next
		}
		if c.count == 0 {
			t.settleWhole(x, &c, by, out)
		} else {
			t.settleFragment(x, &c, by, out)
		}
		if place == by.until || by.silent && by.until == 0 && s.queue.len() < QueueMost/2 {
			return
		}
	}
}

func (t *Tracker) settleFragment(x machine.Side, c *candidate, by *settling, out *machine.Effects) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	if e := peer.Sent(c.sequence); e != nil && c.flags&candidateHeader == 0 && e.Flags&gaffer.SentHeader != 0 {
		// Fragment 0 brought the header. It counts now that all fragments have arrived.
		c.ack, c.ackBits = e.Ack, e.AckBits
		c.flags |= candidateHeader
	}
	begins := s.PartialOf(c.sequence) == nil
	fate := s.ArriveFragment(c.sequence, int(c.id), int(c.count))
	if begins && fate <= gaffer.FragmentComplete {
		s.reads.begun++
		s.reads.cutAt = c.ref
	}
	if fate == gaffer.FragmentComplete {
		s.reads.whole++
	}
	if fate == gaffer.FragmentKept && !by.silent && !s.queue.holds(c.next) && by.claims.Names(t.rules, c.sequence) {
		// The capture lacks the other fragments. The header says that they arrived.
		fate = gaffer.FragmentComplete
		doubtful := *by
		doubtful.until, doubtful.doubtful = 0, true
		by = &doubtful
	}
	if fate == gaffer.FragmentComplete {
		if s.mayMix(peer, c.sequence) {
			mixed := *by
			mixed.doubtful = true
			by = &mixed
		}
		t.settleWhole(x, c, by, out)
		s.Forget(c.sequence)
	}
}

// settleWhole decides the fate of a packet that has been read whole.
func (t *Tracker) settleWhole(x machine.Side, c *candidate, by *settling, out *machine.Effects) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	sure := t.restOnBase(machine.Certain)
	if by.silent {
		sure = machine.Likely
	}
	fate, named := s.Classify(c.sequence), false
	// A received buffer holds at least as many as ack_bits can name.
	held := !t.rules.ReceivedUnknown || t.rules.Distance(s.NewestReceived(), c.sequence) <= t.rules.AckBits
	doubted := !s.application.takesAll()
	if fate == gaffer.Accepted {
		fate, named = t.decideFresh(s, c, by, out)
		if doubted && fate == gaffer.Accepted {
			s.markRival(c)
		}
		if named && fate == gaffer.Accepted {
			s.application.takes()
		}
		switch {
		case by.doubtful, by.silent, !s.headers.fresh && s.mayPrecede(peer, c):
			sure = machine.Likely
		case !named:
			// No header covers it. By the window rule it was accepted, if the application
			// accepts every packet.
			if doubted || fate == gaffer.Refused {
				sure = machine.Likely
			}
		case s.application.refuses && c.count == 0 && fate == gaffer.Accepted && s.queue.holds(c.next):
			sure = machine.Likely // this copy may have been refused, and the next one accepted
		}
	}
	if !named {
		sure = machine.AmongOpen(sure, held)
	}
	switch fate {
	case gaffer.Duplicate:
		switch {
		case c.flags&candidateRival != 0:
			sure = min(sure, machine.Likely)
			s.markRival(c)
		case doubted && s.unproved(peer, c):
			sure = min(sure, machine.Likely)
		}
		sure = machine.AmongOpen(sure, !t.rules.DuplicatesUnknown)
		s.reads.duplicates++
		t.arrival(machine.EventDuplicate, x, c, sure, out)
	case gaffer.Stale:
		s.reads.stale++
		if ahead := peer.unwrap(c.sequence) - peer.unwrap(s.NewestReceived()); ahead > 0 {
			out.At(c.at, c.ref).Report(gaffer.HalfRangeStarvation, x, sure, 0, float64(ahead))
		}
		t.arrival(machine.EventStale, x, c, sure, out)
	case gaffer.Refused:
		s.reads.refused++
		out.At(c.at, c.ref).Report(gaffer.RefusedPacket, x, sure, 0)
		t.arrival(machine.EventRejected, x, c, sure, out)
	case gaffer.Accepted:
		s.Accept(c.sequence)
		if e := peer.Sent(c.sequence); e != nil && sure < machine.Certain {
			e.Flags |= gaffer.SentUnproved
		}
		readAt := by.at
		if !named || s.lacksNext(c, by) {
			readAt = t.readAt(s, c, by)
		}
		t.readNear(s, peer, c, by, sure)
		t.accept(x, c, readAt, named, sure, out)
	case gaffer.Redelivered:
		if doubted {
			sure = min(sure, machine.Likely)
		}
		t.readNear(s, peer, c, by, sure)
		t.accept(x, c, t.readAt(s, c, by), false, sure, out)
	}
}

// unproved reports whether a near side may not have accepted a packet before this copy
// of it. Then this copy may be the one that it accepted.
func (s *side) unproved(peer *side, c *candidate) bool {
	e := peer.Sent(c.sequence)
	return (e == nil || e.Flags&gaffer.SentUnproved != 0) && !s.headers.last.Names(s.Rules, c.sequence)
}

// markRival marks the next waiting copy of a packet. No header between the two shows
// which of them the application accepted.
func (s *side) markRival(c *candidate) {
	if c.count == 0 && s.queue.holds(c.next) {
		s.queue.at(c.next).flags |= candidateRival
	}
}

// decideFresh returns the fate of a packet that was not received before. named reports
// whether a header of the side covers the packet.
func (t *Tracker) decideFresh(s *side, c *candidate, by *settling, out *machine.Effects) (fate gaffer.Fate,
	named bool,
) {
	if by.silent {
		return s.decideSilent(c), false
	}
	r := t.rules
	behind := r.Distance(by.claims.Newest, c.sequence)
	switch {
	case r.Silent(by.claims)>>(uint(behind)&63)&1 != 0 && behind >= 0 && behind < 64:
		return gaffer.Accepted, false
	case behind >= by.claims.Width:
		if !s.lacksNext(c, by) { // or a header that the capture lacks may have named it
			out.At(c.at, c.ref).Report(gaffer.AckWindowSlide, s.side, machine.Likely, 0, float64(behind))
		}
		// Only headers before this one could have named it.
		if s.application.refuses && r.Distance(s.headers.last.Newest, c.sequence) < by.claims.Width && s.skipped(c) >= 2 {
			return gaffer.Refused, false
		}
		return gaffer.Accepted, false
	case behind < 0, by.claims.Named>>uint(behind)&1 == 0:
		// Read, covered by the header, and not named.
		s.application.refuses = true
		return gaffer.Refused, true
	case s.application.refuses && c.count == 0 && s.queue.holds(c.next) && s.skipped(c) >= 2:
		if s.queue.later(c.next, by.until) {
			by.until = c.next // the next copy was accepted, so it has been read too
		}
		return gaffer.Refused, true
	}
	return gaffer.Accepted, true
}

// decideSilent is decideFresh without a later header of the side that proves anything
// read.
func (s *side) decideSilent(c *candidate) gaffer.Fate {
	last := &s.headers.last
	behind := s.Rules.Distance(last.Newest, c.sequence)
	if s.application.refuses && s.skipped(c) >= 2 && (behind < 0 || s.Rules.Omits(*last, behind)) {
		return gaffer.Refused
	}
	return gaffer.Accepted
}

// skipped counts the side's own headers that passed between a candidate and its next
// copy, or what settles it. A single header may have been under way already. Two that
// do not name the packet skip it.
func (s *side) skipped(c *candidate) uint32 {
	next := s.SentNext
	if c.count == 0 && s.queue.holds(c.next) {
		next = s.queue.at(c.next).own
	}
	return (next - c.own) & s.Rules.Mask()
}

// readAt returns when a candidate was read that no header names, or that a later header names than
// the side's next one. It was at the side's first send after the candidate arrived. If the capture
// lacks that one, it was in the side's next frame.
func (t *Tracker) readAt(s *side, c *candidate, by *settling) machine.Instant {
	if e := s.Sent(c.own); e != nil && e.At >= c.at {
		return e.At
	}
	if by.silent {
		return s.estimate.clock.after(s.sent.topAt, c.at)
	}
	if e := s.Sent((c.own - 1) & s.Rules.Mask()); e != nil && s.lacksNext(c, by) {
		return min(by.at, s.estimate.clock.after(e.At, c.at))
	}
	return by.at
}

// lacksNext reports whether the capture lacks what the side sent first after a candidate arrived.
func (s *side) lacksNext(c *candidate, by *settling) bool {
	return !by.silent && c.own != by.sequence && s.Sent(c.own) == nil
}

// mayPrecede reports whether a copy or a fragment of a packet may have arrived before a
// capture that began in the middle.
func (s *side) mayPrecede(peer *side, c *candidate) bool {
	known := s.headers.joined
	if c.count > 0 {
		known += int64(s.headers.last.Width + s.Rules.Partial)
	}
	return s.headers.count == 1 || peer.unwrap(c.sequence) < known
}

// arrival reports the fate of a packet at the frame that brought it.
func (t *Tracker) arrival(kind machine.EventKind, x machine.Side, c *candidate, sure machine.Certainty,
	out *machine.Effects,
) {
	if v := emit(out, kind, x, sure, c.at, c.ref); v != nil {
		v.Sequence, v.Sequence64, v.About = c.sequence, t.Sides[x.Other()].unwrap(c.sequence), c.ref
	}
}

// accept records that a near side accepted a packet, and read its acks at readAt. If a
// header names the packet (named), that header passed the tap at readAt.
func (t *Tracker) accept(x machine.Side, c *candidate, readAt machine.Instant, named bool, sure machine.Certainty,
	out *machine.Effects,
) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	s.reads.count++
	t.arrival(machine.EventReceived, x, c, sure, out)
	if e := peer.Sent(c.sequence); e != nil {
		peer.arrived(e, readAt, named)
	}
	if c.flags&candidateHeader == 0 {
		return
	}
	claims := t.rules.Claims(c.ack, c.ackBits)
	// The packets that the capture lacks before this one may have told the same.
	told := peer.burst.lacked > 0 && peer.unwrap(c.sequence) == peer.burst.lacked+1
	s.expireUnread(x, claims, c, told, out)
	sure = t.grade(sure)
	fresh, recent := s.Unread(claims)
	for ; fresh != 0; fresh &= fresh - 1 {
		e := s.Ack(claims, bits.TrailingZeros64(fresh), recent, c.at, c.ref)
		if e == nil {
			continue
		}
		s.acks.read(e)
		sure := sure
		if t.rules.SentUnknown {
			// A buffer of sent packets holds at least as many as ack_bits can name.
			sure = machine.AmongOpen(sure, t.rules.Distance(s.SentNext, e.Sequence) <= t.rules.AckBits)
		}
		if sure != machine.Certain {
			e.Flags |= gaffer.SentDoubtful
		}
		sample := int64(readAt - e.At)
		if told {
			sample = -1
		} else if usual := int64(s.estimate.rtt); sample > 2*usual+int64(spikeLeast) && s.estimate.samples > 16 {
			out.At(c.at, c.ref).Report(gaffer.RTTSpike, x, t.restOnBase(machine.Certain), e.Ref, float64(sample)/1e6,
				float64(usual)/1e6)
		}
		if !told {
			s.estimate.sample(float64(sample), rttSame)
		}
		if v := emit(out, machine.EventAcked, x, sure, c.at, c.ref); v != nil {
			v.Bit, v.Sequence, v.Sequence64, v.By, v.About, v.RTT = e.Bit, e.Sequence, s.unwrap(e.Sequence), c.ref, e.Ref, sample
		}
	}
}

// drain settles the datagrams that a near side may have read after its last header.
func (t *Tracker) drain(x machine.Side, out *machine.Effects) {
	s := &t.Sides[x]
	for s.queue.len() > 0 {
		t.settle(x, &settling{silent: true, until: s.queue.tail - 1}, out)
	}
}
