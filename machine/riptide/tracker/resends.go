package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// The Acks of a message show why it was sent again. The receiver answers each arriving copy at once
// with an Ack of its own.
//
// If as many Acks came as copies were sent, nothing was lost. The question is then why the Ack came
// after the timer:
//
//	timer below RTT   the usual way there and back takes longer than the timer
//	peer stalled      the peer sent nothing at all meanwhile, then answered
//	ack late          this once it took longer
//
// If fewer Acks came, something was lost. An Ack of another message may decide what:
//
//   - If one of its bits names the message, the message had arrived. So its own Ack was lost.
//   - If it covers the id and does not name it, the message was lost.
//
// With too little traffic for either, it stays open which of the two was lost.

// stallLeast is how far beyond the usual round trip a silence must last to count as a stall. It is
// several ticks of a slow application.
// Source: measured, TestMarginsRiptide
const stallLeast = 60 * time.Millisecond

// resent reports why a message of s was sent again.
func (t *follower) resent(s *side, e *life, last machine.Ref, out *machine.Effects) {
	rule, sure := t.resendCause(s, e)
	out.At(e.copies.last, last).Report(rule, s.side, sure, e.copies.frame, float64(e.copies.count), float64(e.sequence),
		machine.Milliseconds(e.copies.timer()))
}

func (t *follower) resendCause(s *side, e *life) (*machine.Rule, machine.Certainty) {
	peer := &t.sides[s.side.Other()]
	switch {
	case t.config.Stream:
		return s.lateCause(e), machine.Likely // TCP loses nothing
	case !s.tap.near && peer.tap.near:
		// Every copy that passed here was answered here: the Ack did not reach the sender in time.
		if e.answers.first != 0 && e.copies.last.Sub(e.answers.first) > s.roundTrip()+riptide.TickSlack {
			return riptide.ResentAckLost, machine.Likely
		}
		return riptide.ResentLate, machine.Possible
	case t.config.Senders[peer.side].Codec.Dialect.AcksUnnamed && !peer.tap.ordered:
		return s.unnamedCause(e)
	case e.answers.count >= e.copies.count:
		return s.lateCause(e), machine.Likely
	case e.answers.byBit:
		return riptide.ResentAckLost, machine.Likely
	case e.answers.passed:
		return riptide.ResentMessageLost, machine.Likely
	}
	return riptide.ResentLoss, machine.Likely
}

// unnamedCause returns the cause where the receiver's Acks do not say what they answer. An Ack that
// comes sooner than a round trip after the last copy answers an earlier copy.
func (s *side) unnamedCause(e *life) (*machine.Rule, machine.Certainty) {
	if e.answers.first != 0 && e.answers.first.Sub(e.copies.last) < s.roundTrip()-riptide.TickSlack {
		return s.lateCause(e), machine.Likely
	}
	return riptide.ResentLoss, machine.Possible
}

// lateCause returns why the Ack came after the timer, for a message of which nothing was lost.
func (s *side) lateCause(e *life) *machine.Rule {
	took, usual := e.answers.first.Sub(e.copies.first), s.figures.usual()
	switch {
	case usual > 0 && usual >= e.copies.timer():
		return riptide.ResentTimer
	case e.answers.silence > usual+stallLeast && took > usual+stallLeast:
		return riptide.ResentStalled
	}
	return riptide.ResentLate
}
