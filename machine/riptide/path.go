package riptide

import "github.com/ackscope/ackscope/machine"

// What of a side's messages is lost on the way to its peer is judged by first
// copies, of reliable and of notify messages: further copies are sent because
// something was lost, and would count it twice.
//
//	the tap at the receiver   gaps in the numbers; one that is filled sooner than a
//	                          copy could come was an overtaking
//	the tap at the sender     why messages were sent again (resends.go); where it is
//	                          open whether the message was lost or its Ack, the way
//	                          there and back is judged as one

// judgePath takes a reliable message of s whose life has ended.
func (t *follower) judgePath(s *side, e *life) {
	peer := &t.sides[s.side.Other()]
	// Pytide 2.0 numbers nothing, and answers nothing but Welcome.
	if t.config.Stream || s.behaviour.OneSequence || peer.behaviour.OneSequence || e.clash || e.merged || peer.near {
		return
	}
	came := e.Named || e.answers > 0 || e.Acked == machine.Yes
	if e.Attempts == 1 {
		switch {
		case came:
			s.beyond.Judge(false)
			s.both.Judge(false)
		case e.passed: // Acks of later messages speak of it, and do not name it
			s.beyond.Judge(true)
			s.both.Judge(true)
		}
		return
	}
	switch rule, _ := t.resendCause(s, e); rule {
	case resentMessageLost:
		s.beyond.Judge(true)
		s.both.Judge(true)
	case resentAckLost:
		s.beyond.Judge(false)
		s.both.Judge(true)
	case resentLoss:
		s.both.Judge(true)
	default:
		s.beyond.Judge(false)
		s.both.Judge(false)
	}
}

// gapOfNotify judges a notify message of a far side, and those that its number
// passes over.
func (s *side) gapOfNotify(id int64) {
	if id > s.notifyTop {
		s.toTap.JudgeLost(uint64(id - s.notifyTop - 1))
		s.toTap.Judge(false)
	} else {
		s.toTap.Found() // nothing is sent again: it was overtaken
	}
}

// path gives what was lost of a side's messages on the way to its peer.
func (t *follower) path(x machine.Side) (p machine.PathLoss, sure machine.Certainty, both bool) {
	s, peer := &t.sides[x], &t.sides[x.Other()]
	switch {
	case t.config.Stream:
		return p, machine.Unknown, false // TCP repairs what is lost
	case s.near && peer.near:
		return machine.PathLoss{Judged: s.packets}, machine.Certain, false // there is no path
	case peer.near:
		return s.toTap, machine.Likely, false
	case !s.near && t.facts.Vantage == machine.VantageUnknown:
		return p, machine.Unknown, false
	}
	p, sure = s.beyond, machine.Likely
	// Where most of what was lost may have been an Ack, one way cannot be told.
	if open := s.both.Lost - min(s.both.Lost, s.beyond.Lost); open > s.beyond.Lost {
		p, both = s.both, true
	}
	if !s.near {
		p, sure = s.toTap.After(p), machine.Possible
	}
	return p, sure, both
}
