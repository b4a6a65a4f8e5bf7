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

// pathLosses is what was lost of a side's numbered messages.
//
//	Lost ≤ Judged in each of them
//	beyond.Judged ≤ both.Judged but for notify messages, which both leaves out
type pathLosses struct {
	toTap   machine.PathLoss // on the way to the tap; of a far side only
	beyond  machine.PathLoss // of those that passed the tap, on the way to its peer
	both    machine.PathLoss // of the same, or their Acks on the way back
	unnamed unnamedPath      // where the peer's Acks name none
}

// stepped judges a message of a far side, and the ids between it and the newest before.
func (l *pathLosses) stepped(gap uint64) {
	l.toTap.JudgeLost(gap)
	l.toTap.Judge(false)
}

// came judges a message that came, and whose Ack came back.
func (l *pathLosses) came() {
	l.beyond.Judge(false)
	l.both.Judge(false)
}

// lost judges a message of which a copy was lost.
func (l *pathLosses) lost() {
	l.beyond.Judge(true)
	l.both.Judge(true)
}

// lostAck judges a message that came, and whose Ack was lost.
func (l *pathLosses) lostAck() {
	l.beyond.Judge(false)
	l.both.Judge(true)
}

// judgePath takes a reliable message of s whose life has ended.
func (t *follower) judgePath(s *side, e *life) {
	peer := &t.sides[s.side.Other()]
	// Pytide 2.0 numbers nothing, and answers nothing but Welcome.
	if t.config.Stream || s.behaviour.OneSequence || peer.behaviour.OneSequence || e.clash || e.sender.merged || peer.tap.near {
		return
	}
	if t.unnamed(peer) {
		return // unnamedPath
	}
	if e.copies.count == 1 {
		switch {
		case e.answers.named || e.answers.count > 0 || e.sender.acked == machine.Yes:
			s.path.came()
		case e.answers.passed: // Acks of later messages speak of it, and do not name it
			s.path.lost()
		}
		return
	}
	switch rule, _ := t.resendCause(s, e); rule {
	case riptide.ResentMessageLost:
		s.path.lost()
	case riptide.ResentAckLost:
		s.path.lostAck()
	case riptide.ResentLoss:
		s.path.both.Judge(true) // the message, or its Ack
	default:
		s.path.came()
	}
}

// unnamed reports whether Acks of a side do not say what they answer, and whether
// that does not follow from the order of what it reads either.
func (t *follower) unnamed(s *side) bool {
	return t.config.Senders[s.side].Codec.Dialect.AcksUnnamed && !s.tap.ordered
}

// unnamedPath judges what a side sends to a receiver whose Acks do not say what they
// answer. Each copy is answered at once, so of a block of copies that had its time
// to be answered, those without an Ack were lost on one of the two ways. Acks of
// later copies, and copies of Acks that the network made, hide losses: what is
// counted is the least.
//
//	block ≤ copies, judged ≤ copies, unanswered ≤ judged
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

// path gives what was lost of a side's messages on the way to its peer.
func (t *follower) path(x machine.Side) (p machine.PathLoss, sure machine.Certainty, both bool) {
	s, peer := &t.sides[x], &t.sides[x.Other()]
	switch {
	case t.config.Stream:
		return p, machine.Unknown, false // TCP repairs what is lost
	case s.tap.near && peer.tap.near:
		return machine.PathLoss{Judged: s.figures.packets}, machine.Certain, false // there is no path
	case peer.tap.near:
		return s.path.toTap, machine.Likely, false
	case !s.tap.near && t.facts.Vantage == machine.VantageUnknown:
		return p, machine.Unknown, false
	}
	p, sure = s.path.beyond, machine.Likely
	// Where most of what was lost may have been an Ack, one way cannot be told.
	if open := s.path.both.Lost - min(s.path.both.Lost, s.path.beyond.Lost); open > s.path.beyond.Lost || s.path.beyond.Judged == 0 && s.path.both.Judged > 0 {
		p, both = s.path.both, true
	}
	if !s.tap.near {
		p, sure = s.path.toTap.After(p), machine.Possible
	}
	return p, sure, both
}
