package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// What of a side's messages is lost on the way to its peer is judged by first
// copies, of reliable and of notify messages: further copies are sent because
// something was lost, and would count it twice.
//
//	the tap at the receiver   gaps in the numbers; one that is filled sooner than a
//	                          copy could come was an overtaking
//	the tap at the sender     why messages were sent again (resends.go); where it is
//	                          open whether the message was lost or its Ack, the way
//	                          there and back is judged as one
//	Acks without an id        the receiver answers each copy at once, but an Ack does
//	                          not say which: copies are counted against Acks

// judgePath takes a reliable message of s whose life has ended.
func (t *follower) judgePath(s *side, e *life) {
	peer := &t.sides[s.side.Other()]
	// Pytide 2.0 numbers nothing, and answers nothing but Welcome.
	if t.config.Stream || s.behaviour.OneSequence || peer.behaviour.OneSequence || e.clash || e.merged || peer.near {
		return
	}
	if t.unnamed(peer) {
		return // unnamedPath
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
	case riptide.ResentMessageLost:
		s.beyond.Judge(true)
		s.both.Judge(true)
	case riptide.ResentAckLost:
		s.beyond.Judge(false)
		s.both.Judge(true)
	case riptide.ResentLoss:
		s.both.Judge(true)
	default:
		s.beyond.Judge(false)
		s.both.Judge(false)
	}
}

// unnamed reports whether Acks of a side do not say what they answer, and whether
// that does not follow from the order of what it reads either.
func (t *follower) unnamed(s *side) bool {
	return t.config.Senders[s.side].Codec.Dialect.AcksUnnamed && !s.ordered
}

// unnamedPath judges what a side sends to a receiver whose Acks do not say what they
// answer. Each copy is answered at once, so of a block of copies that had its time
// to be answered, those without an Ack were lost on one of the two ways. Acks of
// later copies, and copies of Acks that the network made, hide losses: what is
// counted is the least.
type unnamedPath struct {
	acks       uint64 // of the receiver, that passed the tap
	copies     uint64 // of the sender's reliable messages, that passed the tap
	block      uint64 // of them, those up to the end of the last full block
	blockAt    machine.Instant
	judged     uint64
	unanswered uint64 // of the judged ones
}

// sent takes a copy that passed the tap.
func (u *unnamedPath) sent(at machine.Instant) {
	if u.copies++; u.copies%machine.PathBlock == 0 && u.block == u.judged {
		u.block, u.blockAt = u.copies, at
	}
}

// judge judges the copies of a block, of which answers take so long at the most.
func (u *unnamedPath) judge(now machine.Instant, answer time.Duration, both *machine.PathLoss) {
	if u.block > u.judged && now.Sub(u.blockAt) > answer {
		u.upTo(u.block, both)
	}
}

// upTo judges the copies up to one of them.
func (u *unnamedPath) upTo(copies uint64, both *machine.PathLoss) {
	unanswered := copies - min(copies, u.acks)
	for ; u.judged < copies; u.judged++ {
		lost := u.unanswered < unanswered
		if lost {
			u.unanswered++
		}
		both.Judge(lost)
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
	if open := s.both.Lost - min(s.both.Lost, s.beyond.Lost); open > s.beyond.Lost || s.beyond.Judged == 0 && s.both.Judged > 0 {
		p, both = s.both, true
	}
	if !s.near {
		p, sure = s.toTap.After(p), machine.Possible
	}
	return p, sure, both
}
