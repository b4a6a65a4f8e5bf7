package tracker

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// evidence takes an Ack of s for what it says by its documented meaning: which
// messages of the peer have come to s. Of a far side it is all that is known.
// answers is the id that the Ack answers.
func (t *follower) evidence(s, peer *side, p *sighting, m *wire.Message, answers answering, out *machine.Effects) {
	if !peer.met {
		return
	}
	last, cause := peer.unwrap(m.Last), peer.unwrap(answers.id)
	if s.behaviour.OneSequence {
		// It acks Welcome only, and with the client id in place of the sequence.
		last, cause = int64(s.behaviour.First), int64(s.behaviour.First)
	}
	jump := int64(s.behaviour.Jump())
	if s.behaviour.Receive == riptide.ReceiveWindow {
		if cause > last {
			s.doubt = max(s.doubt, cause) // its newest id stays behind: from here on anything can be
		}
	}
	blind := s.blind
	switch {
	case !s.heard:
		s.heard, s.heardLast = true, last
		if !t.begun || last >= jump {
			s.doubt = max(s.doubt, last)
		}
		if t.begun && last >= jump && s.behaviour.ShiftFault {
			s.blind = last
		}
	case last > s.heardLast:
		if last-s.heardLast >= jump {
			s.doubt = max(s.doubt, last)
			if s.behaviour.ShiftFault {
				s.blind = last
			}
			if !s.ordered && (s.behaviour.ShiftFault || s.behaviour.Receive == riptide.ReceiveWindow) {
				out.Report(riptide.WindowJump, s.side, machine.Likely, p.at, p.ref, 0, float64(last-s.heardLast), float64(m.Last))
			}
		}
		s.heardLast = last
	}
	e := peer.sent.find(cause)
	if e != nil {
		if answers.known || e.answers == 0 {
			e.answered(s, p.at)
		}
		if !s.ordered {
			t.far(s, peer, e, p, m, out)
			if s.faulty && s.faultyTo == last {
				s.blind = blind // what the jump left behind is known
			}
		}
	} else if peer.near && t.begun && cause > peer.top && !s.behaviour.OneSequence {
		out.Report(riptide.AckOfNothing, s.side, machine.Likely, p.at, p.ref, 0, float64(cause-peer.top))
	}
	t.name(s, peer, p, e, cause, out)
	s.finished.slide(last)
	if last != cause && !s.finished.has(last) {
		t.name(s, peer, p, peer.sent.find(last), last, out)
	}
	for todo := ^s.finished.behind(last); todo != 0; todo &= todo - 1 {
		bit := bits.TrailingZeros16(todo)
		id := last - 1 - int64(bit)
		e := peer.sent.find(id)
		if e == nil {
			continue
		}
		named := m.AckBits>>bit&1 == 1
		if named {
			t.name(s, peer, p, e, id, out)
		}
		if e.answers == 0 {
			e.byBit = e.byBit || named
			e.passed = e.passed || !named
		} else if e.Named && !e.clash {
			s.finished.add(id)
		}
	}
}

// finished is the newest messages of the peer of which another Ack can tell
// nothing new: answered, and named. Most bits of an Ack are of such.
type finished struct {
	top  int64 // newest id that an Ack had as its last
	bits uint64
}

// slide moves the window up to a newer id.
func (f *finished) slide(last int64) {
	if by := last - f.top; by > 0 {
		f.bits <<= min(by, 64)
		f.top = last
	}
}

func (f *finished) add(id int64) {
	if at := f.top - id; at >= 0 && at < 64 {
		f.bits |= 1 << at
	}
}

func (f *finished) has(id int64) bool {
	at := f.top - id
	return at >= 0 && at < 64 && f.bits>>at&1 == 1
}

// behind gives the 16 ids before one: bit i is id last-1-i.
func (f *finished) behind(last int64) uint16 { return uint16(f.bits >> min(f.top-last+1, 64)) }

// far runs the library's window over what a far side's Acks answer. Where it
// finds a message refused that it never saw taken, that is likely: the Ack of
// its first copy may have been lost.
func (t *follower) far(s, peer *side, e *life, p *sighting, m *wire.Message, out *machine.Effects) {
	if !s.received {
		s.received = true
		s.receiver.Adopt(m.Last, m.AckBits)
		return
	}
	before := s.receiver.Last
	gap := riptide.GapOf(m.Cause, before)
	fresh := s.receiver.Take(m.Cause)
	last, bits := s.receiver.Ack()
	follows := last == m.Last && bits == m.AckBits
	t.agree(s, peer, m)
	switch {
	case gap >= riptide.JumpList && s.behaviour.ShiftFault:
		// Acks that were lost make a jump too, but not one that leaves the bits as
		// the fault does.
		s.faulty = follows && bits != 0 && bits != 0xffff && !s.mayPort // a window that is full is the same with the fault or without
		s.faultyTo = e.Sequence64
		for id := e.Sequence64 - int64(gap) + 1; s.faulty && id < e.Sequence64; id++ {
			if has, _ := s.receiver.Received(uint16(id)); has {
				t.refused(s, peer.sent.find(id), p, out)
			}
		}
		if s.faulty && !fresh {
			t.refused(s, e, p, out)
		}
	case !follows && e.Sequence64 > s.faultyTo:
		s.faulty = false
	case fresh:
		e.taken = true
	case s.faulty && e.Sequence64 <= s.faultyTo && !e.taken:
		t.refused(s, e, p, out)
	}
}

// refused notes that a far side's window takes a message for received that it
// never took.
func (t *follower) refused(s *side, e *life, p *sighting, out *machine.Effects) {
	if e == nil || e.refused || e.taken || e.clash || e.Named && e.Certainty == machine.Certain {
		return
	}
	e.refused = true
	e.Delivered, e.Certainty, e.Deliveries = machine.No, machine.Likely, 0
	t.notDelivered(s, e.Sequence64, machine.Likely, p.at, p.ref, e.frame, out)
}

// name notes that an Ack of s names the peer's message e, if there is one.
func (t *follower) name(s, peer *side, p *sighting, e *life, id int64, out *machine.Effects) {
	if e == nil {
		return
	}
	if !e.Named && e.Attempts == 1 {
		peer.wireRTT += p.at.Sub(e.At)
		peer.wireCount++
	}
	for ; e != nil; e = peer.sent.older(e) {
		if !e.Named {
			e.Named = true
			t.named(peer, e, p, out)
		}
		if s.ordered {
			e.attested = e.attested || id > s.doubt && !s.behaviour.Port && !peer.behaviour.OneSequence && e.Delivered == machine.Yes && s.knows(id)
			continue
		}
		grade := machine.Certain
		switch {
		case id <= s.blind:
			grade = machine.Possible // it came; the window may have thrown it away
		case id <= s.doubt || s.behaviour.Port || peer.behaviour.OneSequence:
			grade = machine.Likely
		}
		if e.refused || e.Delivered == machine.Yes && e.Certainty >= grade {
			continue
		}
		if e.Delivered != machine.Yes {
			e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Deliveries = machine.Yes, p.at, p.ref, 1
			if e.Mode == machine.ModeInternal {
				t.arrived(s.side, e, grade, p, out)
			}
		}
		e.Certainty = grade
	}
}

// acked takes an Ack as the library of s, to which it goes, does.
func (t *follower) acked(s *side, p *sighting, m *wire.Message, out *machine.Effects) {
	if s.toldLeft != 0 && p.at > s.toldLeft {
		return
	}
	judge := func(id uint16, v riptide.Verdict) {
		if v != riptide.Cleared || !s.met {
			return
		}
		if !s.ordered {
			s.lied(s.unwrap(id), p) // as far as the Ack got there
			return
		}
		for e := s.sent.find(s.unwrap(id)); e != nil; e = s.sent.older(e) {
			if e.merged {
				if m := t.moreOf(e); m.heldRef == 0 {
					m.heldAt, m.heldRef = p.at, p.ref
				}
				continue // pending under another id
			}
			if e.Acked == machine.Unanswered && !e.forgot {
				t.clear(s, e, p, out)
				e.byCause = id == m.Cause
			}
			return
		}
	}
	s.sender.Received(s.receiver.Last)
	if !s.sending {
		s.sending = true
		s.sender.Join(m.Last, m.AckBits, m.Cause, judge)
		return
	}
	threw := s.sender.Threw
	s.sender.Acked(m.Last, m.AckBits, m.Cause, judge)
	if s.sender.Threw > threw && (s.threwAt == 0 || s.spoke > s.threwAt) {
		s.threwAt = p.at
	}
}

// clear notes that the library of s counts a message as delivered.
func (t *follower) clear(s *side, e *life, p *sighting, out *machine.Effects) {
	b := s.behaviour
	if b.Limit > 0 && !b.DropsConnection && int(e.Attempts) >= b.Limit && p.at.Sub(e.lastAt) > e.wait()+riptide.TickSlack/2 {
		e.forgot = true // given up before the Ack came
		return
	}
	e.Acked, e.AckedAt, e.AckedBy = machine.Yes, p.at, p.ref
	s.acked++
	mean := s.sendQuality.Add(uint8(min(e.Attempts, 255)))
	t.judge(&s.sendQuality, b.QualityLimits && mean > riptide.QualitySends, s, p, out)
	t.event(out, machine.EventAcked, s.side, max(s.reads(p.at, p.ref), machine.Likely), e, e.frame, p.ref, p)
}
