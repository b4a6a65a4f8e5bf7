package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// trusted returns a divergence of s, but where it rests on what its peer sent and the
// peer, at the tap, is shown to have been wrong: what is wrong may be anything that
// s answers.
func (j *Judge) trusted(s, peer *judged, p *sight, v *machine.Divergence) *machine.Divergence {
	if v == nil || !v.RestsOn.Peer() {
		return v
	}
	if peer.near && peer.opinion.Divergence == nil {
		// What s names may be there, under a wrong type.
		peer.opinion.Divergence = j.mistold(peer, p)
	}
	if peer.doubtful() || v.Rule == AckUnasked && peer.near && p.m.Cause == peer.sends.next && s.acks.holds(p.m) {
		// What it answers was there, and is another thing in the capture.
		s.opinion.Undecided++
		return nil
	}
	return v
}

// doubtful reports whether a side that all of what passes reaches is known to have
// gone wrong.
func (s *judged) doubtful() bool { return s.opinion.Divergence != nil && s.ordered }

// withdraw takes back what was found of a side where it rests on what the other
// sent before, and that was shown later to be wrong.
func (j *Judge) withdraw() {
	for i := range j.sides {
		s, peer := &j.sides[i], &j.sides[1-i]
		v := s.opinion.Divergence
		if v != nil && v.RestsOn.Peer() && peer.doubtful() && peer.opinion.Divergence.Ref < v.Ref {
			s.opinion.Divergence = nil
			s.opinion.Undecided++
		}
	}
}

// mistold looks for what a message of its peer's names and a side at the tap has
// not sent, as far as can be seen.
func (j *Judge) mistold(s *judged, p *sight) *machine.Divergence {
	c, m := j.config.Senders[s.side].Codec, p.m
	switch {
	case m.Type == wire.Notify && !m.Bare && m.Last == s.notes.next:
		return s.unsentNotify(c, p, m.Last)
	case (m.Type == wire.Ack || m.Type == wire.AckExtra) && (m.Cause == s.sends.next || m.Last == s.sends.next):
		return s.unsentAs(c, p, s.sends.next)
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		x, last := s.sends.at(m.Cause), s.sends.at(s.sends.next-1)
		if x != nil && last != nil && last.attempts == 1 && last.first == s.sends.ref && s.sends.like(last) == x &&
			j.sides[s.side.Other()].acks.holds(m) {
			return s.renumbered(p, x, last, machine.RestsOnAbsence)
		}
		if x != nil {
			return s.unsentCopy(c, p, x)
		}
	case p.is == riptide.BeatAnswer && (s.behaviour.Port || s.session.own.pinged && m.Ping == s.session.own.ping+1 ||
		!s.session.own.pinged && m.Ping == 0):
		return s.unsentBeat(c, p, m.Ping, s.session.own.ref, true)
	}
	return nil
}
