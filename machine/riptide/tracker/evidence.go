package tracker

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// evidence records an Ack by its documented meaning: which messages have reached the side that sent
// it. Of a far side, nothing else is known. answers is the id that the Ack answers.
func (t *follower) evidence(p *step, answers answering) {
	s, peer, m := p.own, p.peer, p.m
	if !peer.out.met {
		s.acks.foretell(m.Last)
		return
	}
	last, cause := peer.out.unwrap(m.Last), peer.out.unwrap(answers.id)
	if s.behaviour.OneSequence {
		// Pytide 2.0.0 acks only Welcome, and writes the client id in place of the sequence.
		last, cause = int64(s.behaviour.First), int64(s.behaviour.First)
	}
	if s.behaviour.Receive == riptide.ReceiveWindow && cause > last {
		s.acks.doubt = max(s.acks.doubt, cause) // its newest id stays behind: later Acks prove nothing certain
	}
	blind := s.acks.blind
	if jump := s.acks.advance(last, s.behaviour, t.begun); jump > 0 && !s.tap.ordered &&
		(s.behaviour.ShiftFault || s.behaviour.Receive == riptide.ReceiveWindow) {
		p.out.At(p.at, p.ref).Report(riptide.WindowJump, s.side, machine.Likely, 0, float64(jump), float64(m.Last))
	}
	e := peer.out.lives.find(cause)
	if e != nil {
		if answers.known || e.answers.count == 0 {
			e.answers.take(p.at, p.at.Sub(s.activity.before))
			peer.figures.arrived.answered(e)
			if e.answers.count == 1 && e.copies.count == 1 {
				peer.figures.trip(p.at.Sub(e.copies.first))
			}
		}
		if !s.tap.ordered {
			t.followFar(p, e)
			if s.acks.faulty && s.acks.faultyTo == last {
				s.acks.blind = blind // what the jump left behind is known
			}
		}
	} else if peer.tap.near && t.begun && cause > peer.out.top && !s.behaviour.OneSequence {
		p.out.At(p.at, p.ref).Report(riptide.AckOfNothing, s.side, machine.Likely, 0, float64(cause-peer.out.top))
	}
	t.name(p, e, cause)
	s.acks.finished.slide(last)
	if last != cause && !s.acks.finished.has(last) {
		t.name(p, peer.out.lives.find(last), last)
	}
	answered := machine.Instant(0)
	if e != nil && answers.known && !e.clash {
		answered = e.copies.first
	}
	t.nameBits(p, last, answered)
}

// nameBits records what the bits of an Ack say about the 16 ids before its newest. The Ack answers a
// message that passed first at answered; 0 if unknown.
func (t *follower) nameBits(p *step, last int64, answered machine.Instant) {
	done := &p.own.acks.finished
	for todo := ^done.behind(last); todo != 0; todo &= todo - 1 {
		bit := bits.TrailingZeros16(todo)
		id := last - 1 - int64(bit)
		e := p.peer.out.lives.find(id)
		if e == nil {
			continue
		}
		named := p.m.AckBits>>bit&1 == 1
		if named {
			t.name(p, e, id)
		} else {
			p.own.notYet(e, answered)
		}
		if e.answers.count == 0 {
			e.answers.byBit = e.answers.byBit || named
			e.answers.passed = e.answers.passed || !named
		} else if e.answers.named && !e.clash {
			done.add(id)
		}
	}
}

// advance records the newest id that an Ack names. It returns the size of the jump to it where that
// corrupts the side's window, or 0. The flag begun says that the capture has the connection's
// beginning.
func (a *ackTrail) advance(last int64, b *riptide.Behaviour, begun bool) (jump int64) {
	limit := int64(b.Jump())
	switch {
	case !a.heard:
		if !begun || last >= limit {
			a.doubt = max(a.doubt, last)
		}
		if begun && last >= limit && b.ShiftFault {
			a.blind = last
		}
	case last <= a.last:
		return 0
	case last-a.last >= limit:
		jump = last - a.last
		a.doubt = max(a.doubt, last)
		if b.ShiftFault {
			a.blind = last
		}
	}
	a.heard, a.last = true, last
	return jump
}

// foretell records the newest id of an Ack that comes before the first message that it could name.
func (a *ackTrail) foretell(last uint16) {
	if !a.foreknew || riptide.GapOf(last, a.foreknown) > 0 {
		a.foreknew, a.foreknown = true, last
	}
}

// foretold reports whether an Ack had an id, or a newer one, as its newest before the id passed.
// Then a copy of its message was sent before the capture.
func (a *ackTrail) foretold(id int64, sequence uint16) bool {
	return a.heard && id <= a.last || a.foreknew && riptide.GapOf(sequence, a.foreknown) <= 0
}

// grade returns how surely an id that an Ack names has arrived and was delivered.
func (a *ackTrail) grade(id int64) machine.Certainty {
	switch {
	case id <= a.blind:
		return machine.Possible // it came; the window may have refused it
	case id <= a.doubt:
		return machine.Likely
	}
	return machine.Certain
}

// finished holds the newest messages of the peer about which no further Ack can say anything new:
// they are answered and named. Most bits of an Ack name such messages. Bit i is id top-i; top never
// goes back.
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

// behind returns the bits of the 16 ids before last: bit i is id last-1-i.
func (f *finished) behind(last int64) uint16 { return uint16(f.bits >> min(f.top-last+1, 64)) }

// followFar runs the library's window over what a far side's Acks answer. The result is only likely
// where the window refuses a message that it never took. The Ack of the first copy may have been
// lost.
func (t *follower) followFar(p *step, e *life) {
	s, peer, m := p.own, p.peer, p.m
	if !s.in.known {
		s.in.known = true
		s.in.receiver.Adopt(m.Last, m.AckBits)
		return
	}
	gap := riptide.GapOf(m.Cause, s.in.receiver.Last)
	fresh := s.in.receiver.Take(m.Cause)
	_, bits := s.in.receiver.Ack()
	follows := s.in.receiver.Holds(m)
	s.in.agree(m, peer.out.unwrap(m.Last))
	switch {
	case gap >= riptide.JumpList && s.behaviour.ShiftFault:
		// Lost Acks look like a jump too, but they do not leave the bits that the fault leaves. A full
		// window looks the same with the fault and without it.
		s.acks.faulty = follows && bits != 0 && bits != 0xffff && !s.maybePort
		s.acks.faultyTo = e.sequence64
		for id := e.sequence64 - int64(gap) + 1; s.acks.faulty && id < e.sequence64; id++ {
			if has, _ := s.in.receiver.Received(uint16(id)); has {
				t.farRefused(p, peer.out.lives.find(id))
			}
		}
		if s.acks.faulty && !fresh {
			t.farRefused(p, e)
		}
	case !follows && e.sequence64 > s.acks.faultyTo:
		s.acks.faulty = false
	case fresh:
		e.receiver.taken = true
	case s.acks.faulty && e.sequence64 <= s.acks.faultyTo && !e.receiver.taken:
		t.farRefused(p, e)
	}
}

// farRefused records that a far side's window counts a message as received that it never took.
func (t *follower) farRefused(p *step, e *life) {
	if e == nil || e.receiver.refused || e.receiver.taken || e.clash || e.answers.named && e.certainty == machine.Certain {
		return
	}
	e.receiver.refused = true
	e.receiver.delivered, e.certainty, e.receiver.times = machine.No, machine.Likely, 0
	t.notDelivered(p, p.own, e.sequence64, machine.Likely, e.copies.frame)
}

// name records that an Ack of s names the peer's message e. e may be nil.
func (t *follower) name(p *step, e *life, id int64) {
	s, peer := p.own, p.peer
	if e == nil {
		return
	}
	if !e.answers.named && e.copies.count == 1 {
		peer.figures.roundTrip(p.at.Sub(e.copies.first))
	}
	unsure := s.behaviour.Port || s.maybePort || peer.behaviour.OneSequence
	if id > s.acks.doubt && !unsure && !e.clash {
		peer.figures.arrived.named(e)
	}
	for ; e != nil; e = peer.out.lives.older(e) {
		if !e.answers.named {
			e.answers.named = true
			t.named(p, e)
		}
		e.bounds.shown(p.at)
		if s.tap.ordered {
			e.receiver.attested = e.receiver.attested || id > s.acks.doubt && !unsure &&
				e.receiver.delivered == machine.Yes && s.knows(id)
			continue
		}
		grade := s.acks.grade(id)
		if unsure {
			grade = min(grade, machine.Likely)
		}
		if e.receiver.refused || e.receiver.delivered == machine.Yes && e.certainty >= grade {
			continue
		}
		if e.receiver.delivered != machine.Yes {
			e.receiver.took(p.at, p.ref)
			if e.mode == machine.ModeInternal {
				t.arrived(p, s.side, e, grade)
			}
		}
		e.certainty = grade
	}
}

// acked processes an Ack as the library of its receiver does.
func (t *follower) acked(p *step) {
	s, m := p.peer, p.m
	if s.end.endedBefore(p.at) {
		return
	}
	decide := func(id uint16, v riptide.Verdict) {
		if v != riptide.Cleared || !s.out.met {
			return
		}
		if !s.tap.ordered {
			s.out.markFalselyAcked(s.out.unwrap(id), p) // as far as the Ack got there
			return
		}
		for e := s.out.lives.find(s.out.unwrap(id)); e != nil; e = s.out.lives.older(e) {
			if e.sender.merged {
				if m := t.detailsOf(e); m.heldRef == 0 {
					m.heldAt, m.heldRef = p.at, p.ref
				}
				continue // pending under another id
			}
			if e.sender.acked == machine.Unanswered && !e.sender.forgot {
				e.sender.byCause = id == m.Cause
				t.clear(p, s, e)
			}
			return
		}
	}
	s.out.sender.Received(s.in.receiver.Last)
	if !s.out.known {
		s.out.known = true
		s.out.sender.Join(m.Last, m.AckBits, m.Cause, decide)
		return
	}
	threw := s.out.sender.Threw
	s.decides(p.at, m, decide)
	if s.out.sender.Threw > threw && (s.end.threw == 0 || s.activity.last > s.end.threw) {
		s.end.threw = p.at
	}
}

// clear records that the library of s counts a message as delivered.
func (t *follower) clear(p *step, s *side, e *life) {
	b := s.behaviour
	if b.Limit > 0 && !b.DropsConnection && int(e.copies.count) >= b.Limit &&
		p.at.Sub(e.copies.last) > e.wait()+riptide.TickSlack/2 {
		e.sender.forgot = true // given up before the Ack came
		return
	}
	e.sender.decide(machine.Yes, p.at, p.ref)
	s.figures.acked++
	mean := s.out.quality.Add(uint8(min(e.copies.count, 255)))
	t.countOutcome(p, s, &s.out.quality, b.QualityLimits && mean > riptide.QualitySends)
	sure := max(s.reads(p.at, p.ref), machine.Likely)
	if e.sender.disputed && s.repair == repairOpen || (b.Port || s.maybePort) && !e.sender.byCause {
		sure = machine.Likely // the order in which Pytide reads decides what bits ack
	}
	t.messageEvent(p, e, fact{
		kind: machine.EventAcked, of: s.side, sure: sure,
		about: e.copies.frame, by: p.ref,
	})
}
