package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// lacks reports whether the capture lacks bytes of the connection: segments of a stream, or
// what stands behind its snap length. What a side seems not to have sent can be there.
func (j *Judge) lacks() bool { return j.sides[machine.A].cut || j.sides[machine.B].cut }

// trusted returns a divergence of s, or nil where the peer or the capture explains it. A
// divergence can rest on what the peer sent. If the peer is at the tap and was shown to be
// wrong, what it sent is open. A divergence can rest on an absence, and the capture lacks bytes.
func (j *Judge) trusted(s, peer *judged, p *observed, v *machine.Divergence) *machine.Divergence {
	switch {
	case v != nil && v.RestsOn.Absence() && j.lacks():
		s.opinion.Undecided++
		return nil
	case v == nil || !v.RestsOn.Peer():
		return v
	}
	if peer.near && peer.opinion.Divergence == nil && !j.lacks() {
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

// doubtful reports whether a side that reads all that passes is known to be wrong.
func (s *judged) doubtful() bool { return s.opinion.Divergence != nil && s.ordered }

// withdraw takes back the divergence of a side that rests on what the other side sent, if that
// side was shown to be wrong before.
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

// mistold looks for a message that a message of the peer names. A side at the tap seems not to
// have sent it, but may have sent it under a wrong type or number.
func (j *Judge) mistold(s *judged, p *observed) *machine.Divergence {
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
