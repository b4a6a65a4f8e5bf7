package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// unwrap returns the sequence nearest to the newest that has passed.
func (o *notifyOutbound) unwrap(id uint16) int64 {
	if !o.met {
		return int64(id)
	}
	return o.top + int64(int16(id-uint16(o.top)))
}

// pass records the first copy of a message. id is its unwrapped sequence.
func (o *notifyOutbound) pass(id int64) {
	if !o.met {
		o.met, o.first, o.top = true, id, id
	}
	o.top = max(o.top, id)
}

// advance records the newest id that a header names. The flag begun says that the capture has the
// connection's beginning.
func (i *notifyInbound) advance(last int64, begun bool) {
	if last <= i.heard {
		return
	}
	if last-i.heard >= riptide.JumpList || i.heard == 0 && !begun {
		i.doubt = last
	}
	i.heard = last
}

// notify records a notify message. Its header acks messages of the peer.
func (t *follower) notify(p *step) {
	t.notifyEvidence(p)
	peer := p.peer
	reads := peer.tap.ordered && !p.behind && !peer.end.endedBefore(p.at)
	if reads {
		t.notifyAcked(p)
	}
	e := t.notifyCopy(p)
	if reads && peer.end.left == 0 {
		t.notifyArrives(p, e)
	}
}

// notifyCopy records a copy of a notify message. The library sends it once, but the network can
// duplicate it.
func (t *follower) notifyCopy(p *step) *life {
	s := p.own
	s.figures.arrived.asked++
	id, hash := s.notifyOut.unwrap(p.m.Sequence), machine.Digest(0, p.bytes)
	if e := s.notifyOut.lives.lookup(id, hash); e != nil {
		t.copied(p, e)
		return e
	}
	e := t.begins(p, &s.notifyOut.lives, id, hash)
	e.mode = machine.ModeNotify
	t.messageEvent(p, e, fact{kind: machine.EventSent, of: s.side, sure: machine.Certain})
	if s.notifyOut.met && !s.tap.stream {
		switch gap := id - s.notifyOut.top - 1; {
		case s.tap.near && gap != 0:
			s.tap.lacks++
		case s.tap.near:
		case gap >= 0:
			s.path.Stepped(uint64(gap))
			s.path.Once(uint64(gap))
		default:
			s.path.Overtaken() // nothing is sent twice, so the network overtook it
			s.path.OnceLate()
		}
	}
	s.notifyOut.pass(id)
	t.notifySent(p, e)
	return e
}

// notifySent records what the header of a notify message shows of when it was sent. It names messages that its
// sender had read.
func (t *follower) notifySent(p *step, e *life) {
	s, peer := p.own, p.peer
	if s.behaviour.Port || s.maybePort || !peer.notifyOut.met {
		return
	}
	last := peer.notifyOut.unwrap(p.m.Last)
	if named := peer.notifyOut.lives.find(last); named != nil && !named.clash && last > s.notifyIn.doubt {
		e.bounds.sent = named.copies.first
	}
}

// notifyArrives delivers a notify message to the library of the peer, if that takes it. The peer
// reads in order what passes the tap.
func (t *follower) notifyArrives(p *step, e *life) {
	peer, m := p.peer, p.m
	grade := peer.tap.grade()
	if peer.behaviour.NoNotify {
		p.out.At(p.at, p.ref).Report(riptide.PortNotify, peer.side, grade, 0, float64(m.Sequence))
		e.receiver.delivered, e.certainty = machine.No, grade
		return
	}
	if !peer.notifyIn.known {
		peer.notifyIn.known = true
		peer.notifyIn.receiver.Adopt(m.Sequence-1, 0xff)
		peer.notifyIn.joined = e.sequence64
	}
	gap := riptide.GapOf(m.Sequence, peer.notifyIn.receiver.Last)
	if gap >= riptide.JumpList && peer.behaviour.ShiftFault {
		p.out.At(p.at, p.ref).Report(riptide.NotifyJump, peer.side, machine.Likely, 0, float64(gap), float64(m.Sequence))
		grade = machine.Likely // a library with the repaired window takes what the others refuse
	}
	if peer.maybePort {
		grade = machine.Likely // Pytide throws
	}
	if peer.notifyIn.receiver.Take(m.Sequence) {
		t.taken(p, peer, e)
		e.receiver.took(p.at, p.ref)
		e.certainty = grade
		if !t.begun && e.sequence64 <= peer.notifyIn.joined {
			e.certainty = machine.Likely
		}
		return
	}
	peer.figures.duplicates++
	t.messageEvent(p, e, fact{kind: machine.EventDuplicate, of: peer.side, sure: peer.reads(p.at, p.ref), about: p.ref})
	if e.receiver.delivered == machine.Unanswered {
		e.receiver.delivered, e.certainty = machine.No, grade
	}
}

// notifyAcked processes the acks of a header as the library of its receiver does.
func (t *follower) notifyAcked(p *step) {
	s, m := p.peer, p.m
	if !s.notifyOut.known {
		s.notifyOut.known = true
		if s.notifyOut.met {
			s.notifyOut.sender.Join(uint16(s.notifyOut.first - 1))
		} else {
			s.notifyOut.sender.Join(m.Last)
		}
	}
	s.notifyOut.sender.Acked(m.Last, uint8(m.AckBits), func(id uint16, f riptide.Fate) {
		if !s.notifyOut.met {
			return
		}
		for e := s.notifyOut.lives.find(s.notifyOut.unwrap(id)); e != nil; e = s.notifyOut.lives.older(e) {
			if e.sender.acked != machine.Unanswered {
				continue
			}
			e.sender.decide(machine.No, p.at, p.ref)
			kind := machine.EventLost
			if f == riptide.LostUncounted {
				s.notifyOut.passedOver++
			} else {
				if !s.tap.stream {
					s.path.Notify(f == riptide.Lost)
				}
				t.notifyOutcome(p, s, f == riptide.Lost)
			}
			if f == riptide.Delivered {
				e.sender.acked = machine.Yes
				kind = machine.EventAcked
				s.figures.acked++
			}
			t.messageEvent(p, e, fact{kind: kind, of: s.side, sure: s.reads(p.at, p.ref), about: e.copies.frame, by: p.ref})
		}
	})
}

// notifyEvidence records the acks of a header by their documented meaning.
func (t *follower) notifyEvidence(p *step) {
	s, peer, m := p.own, p.peer, p.m
	if !peer.notifyOut.met {
		return
	}
	last := peer.notifyOut.unwrap(m.Last)
	s.notifyIn.advance(last, t.begun)
	bits := m.AckBits
	for id := last; id > last-riptide.NotifySpan; id-- {
		came := id == last || bits>>uint(last-id-1)&1 == 1
		e := peer.notifyOut.lives.find(id)
		if e == nil {
			continue
		}
		if came && !e.answers.named {
			e.answers.named = true
			peer.figures.quickest.add(p.at.Sub(e.copies.first))
			t.named(p, e)
			e.bounds.shown(p.at)
			if s.tap.ordered && e.receiver.delivered == machine.Yes {
				t.showRead(s, proof{e.receiver.at, e.receiver.by}, p.at)
			}
			if id > s.notifyIn.doubt {
				peer.figures.arrived.one()
			}
		}
		if s.tap.ordered {
			e.receiver.attested = e.receiver.attested || came && id > s.notifyIn.doubt
			continue
		}
		if e.receiver.delivered != machine.Unanswered && e.certainty == machine.Certain {
			continue
		}
		e.receiver.delivered, e.receiver.at, e.receiver.by, e.certainty = machine.No, p.at, p.ref, machine.Certain
		if came {
			e.receiver.delivered, e.receiver.times = machine.Yes, 1
		}
		if id <= s.notifyIn.doubt {
			e.certainty = machine.Likely
		}
	}
}
