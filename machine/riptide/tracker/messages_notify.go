package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

func (s *side) unwrapNotify(id uint16) int64 {
	if !s.notifyMet {
		return int64(id)
	}
	return s.notifyTop + int64(int16(id-uint16(s.notifyTop)))
}

// notify takes a notify message of s: its header acknowledges messages of the peer.
func (t *follower) notify(s, peer *side, p *sighting, m *wire.Message, out *machine.Effects) {
	t.notifyEvidence(s, peer, p, m, out)
	if peer.ordered && !p.behind && (peer.toldLeft == 0 || p.at <= peer.toldLeft) {
		t.notifyAcked(peer, p, m, out)
	}
	id, hash := s.unwrapNotify(m.Sequence), machine.Digest(0, p.bytes)
	e := s.notes.lookup(id, hash)
	if e == nil {
		e = t.begins(s, &s.notes, id, hash, p, m, out)
		e.Mode = machine.ModeNotify
		t.event(out, machine.EventSent, s.side, machine.Certain, e, 0, 0, p)
		if !s.notifyMet {
			s.firstNotify = id
		}
		if s.near && !s.stream && s.notifyMet && id != s.notifyTop+1 {
			s.doubts.lacks++
		}
		if s.notifyMet && !s.near && !s.stream {
			s.gapOfNotify(id)
		}
		if id > s.notifyTop || !s.notifyMet {
			s.notifyTop, s.notifyMet = id, true
		}
	} else {
		t.copied(e, p)
	}
	if !peer.ordered || p.behind || peer.left != 0 || peer.toldLeft != 0 && p.at > peer.toldLeft {
		return
	}
	if peer.behaviour.NoNotify {
		out.Report(riptide.PortNotify, peer.side, peer.grade(), p.at, p.ref, 0, float64(m.Sequence))
		e.Delivered, e.Certainty = machine.No, peer.grade()
		return
	}
	if !peer.notified {
		peer.notified = true
		peer.notifyIn.Adopt(m.Sequence-1, 0xff)
		peer.notifyJoined = id
	}
	grade := peer.grade()
	if gap := riptide.GapOf(m.Sequence, peer.notifyIn.Last); gap >= riptide.JumpList && peer.behaviour.ShiftFault {
		out.Report(riptide.NotifyJump, peer.side, machine.Likely, p.at, p.ref, 0, float64(gap), float64(m.Sequence))
		grade = machine.Likely // a library with the repaired window takes what the others refuse
	}
	if peer.mayPort {
		grade = machine.Likely // Pytide throws
	}
	if peer.notifyIn.Take(m.Sequence) {
		t.taken(peer, e, p, out)
		e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Certainty = machine.Yes, p.at, p.ref, grade
		e.Deliveries++
		if !t.begun && id <= peer.notifyJoined {
			e.Certainty = machine.Likely
		}
	} else {
		peer.duplicates++
		t.event(out, machine.EventDuplicate, peer.side, peer.reads(p.at, p.ref), e, p.ref, 0, p)
		if e.Delivered == machine.Unanswered {
			e.Delivered, e.Certainty = machine.No, grade
		}
	}
}

// notifyAcked takes the acknowledgement of a header as the library of s does.
func (t *follower) notifyAcked(s *side, p *sighting, m *wire.Message, out *machine.Effects) {
	if !s.notifySending {
		s.notifySending = true
		if s.notifyMet {
			s.notifyOut.Join(uint16(s.firstNotify - 1))
		} else {
			s.notifyOut.Join(m.Last)
		}
	}
	s.notifyOut.Acked(m.Last, uint8(m.AckBits), func(id uint16, f riptide.Fate) {
		if !s.notifyMet {
			return
		}
		for e := s.notes.find(s.unwrapNotify(id)); e != nil; e = s.notes.older(e) {
			if e.Acked != machine.Unanswered {
				continue
			}
			e.Acked, e.AckedAt, e.AckedBy = machine.No, p.at, p.ref
			kind := machine.EventLost
			if f == riptide.LostUncounted {
				s.passedOver++
			} else {
				if !s.stream {
					s.beyond.Judge(f == riptide.Lost)
				}
				t.outcome(s, f == riptide.Lost, p, out)
			}
			if f == riptide.Delivered {
				e.Acked = machine.Yes
				kind = machine.EventAcked
				s.acked++
			}
			t.event(out, kind, s.side, s.reads(p.at, p.ref), e, e.frame, p.ref, p)
		}
	})
}

// notifyEvidence takes a header of s for what it says by its documented meaning.
func (t *follower) notifyEvidence(s, peer *side, p *sighting, m *wire.Message, out *machine.Effects) {
	if !peer.notifyMet {
		return
	}
	last := peer.unwrapNotify(m.Last)
	if last > s.notifyHeard {
		if last-s.notifyHeard >= riptide.JumpList || s.notifyHeard == 0 && !t.begun {
			s.notifyDoubt = last
		}
		s.notifyHeard = last
	}
	bits := m.AckBits
	for id := last; id > last-riptide.NotifyReach; id-- {
		came := id == last || bits>>uint(last-id-1)&1 == 1
		e := peer.notes.find(id)
		if e == nil {
			continue
		}
		if came && !e.Named {
			e.Named = true
			t.named(peer, e, p, out)
		}
		if s.ordered {
			e.attested = e.attested || came && id > s.notifyDoubt
			continue
		}
		if e.Delivered != machine.Unanswered && e.Certainty == machine.Certain {
			continue
		}
		e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Certainty = machine.No, p.at, p.ref, machine.Certain
		if came {
			e.Delivered, e.Deliveries = machine.Yes, 1
		}
		if id <= s.notifyDoubt {
			e.Certainty = machine.Likely
		}
	}
}
