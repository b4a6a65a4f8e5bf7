package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// countPath counts whether a reliable message of s was lost, at the end of its life. The cause of
// its resends shows it (resends.go).
func (t *follower) countPath(s *side, e *life) {
	peer := &t.sides[s.side.Other()]
	// Pytide 2.0 numbers nothing, and answers nothing but Welcome.
	if t.config.Stream || s.behaviour.OneSequence || peer.behaviour.OneSequence || e.clash || e.sender.merged ||
		peer.tap.near {
		return
	}
	if t.unnamed(peer) {
		return // copies are counted against Acks
	}
	if e.answers.count == 0 {
		s.path.Copies(1, 0) // the peer may refuse it again and again
	} else {
		s.path.Copies(uint64(e.copies.count), uint64(min(e.answers.count, e.copies.count)))
	}
	if e.copies.count == 1 {
		switch {
		case e.answers.named || e.answers.count > 0 || e.sender.acked == machine.Yes:
			s.path.Came()
		case e.answers.passed: // Acks of newer messages cover its id, and do not name it
			s.path.Lost()
		}
		return
	}
	switch rule, _ := t.resendCause(s, e); rule {
	case riptide.ResentMessageLost:
		s.path.Lost()
	case riptide.ResentAckLost:
		s.path.AckLost()
	case riptide.ResentLoss:
		s.path.EitherLost()
	default:
		s.path.Came()
	}
}

// unnamed reports whether nothing shows what an Ack of a side answers. The Acks do not name it, and
// the side does not read in the order of the tap.
func (t *follower) unnamed(s *side) bool {
	return !s.tap.ordered && t.config.Senders[s.side].Codec.Dialect.AcksUnnamed
}

// path returns what was lost of a side's messages on the way to its peer.
func (t *follower) path(x machine.Side) (p machine.PathLoss, sure machine.Certainty, both bool) {
	s, peer := &t.sides[x], &t.sides[x.Other()]
	switch {
	case t.config.Stream:
		return p, machine.Unknown, false // TCP repairs what is lost
	case s.tap.near && peer.tap.near:
		return machine.PathLoss{Settled: s.figures.packets}, machine.Certain, false // there is no path
	case peer.tap.near:
		p, sure = s.path.ToTap()
		return p, sure, false
	case !s.tap.near && t.facts.Vantage == machine.VantageUnknown:
		return p, machine.Unknown, false
	}
	p, both = s.path.Beyond(!s.figures.arrived.doubled)
	if s.tap.near {
		return p, machine.Likely, both
	}
	toTap, _ := s.path.ToTap()
	return toTap.After(p), machine.Possible, both
}
