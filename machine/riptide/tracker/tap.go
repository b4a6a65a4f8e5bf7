package tracker

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/vantage"
)

// The tracker usually infers where the tap is. Everything that it reports of a near side rests on
// that. It assumes that what passed the tap towards the side reached it, once and in that order.
// The assumption is certain only where all of these hold:
//
//   - The times show it.
//   - No message of the side contradicts it. Messages of a relay on its address do, and those of
//     a side with the tap half way.
//   - The capture lacks no message. Any missing message can be the one that made the side refuse
//     another.

// skippedFew and skippedShare are how many Acks a capture can lack: skippedFew, and one for each
// skippedShare answers.
// Source: measured, TestMarginsRiptide
const skippedFew, skippedShare = 3, 12

// grade returns how sure it is that the tap sees the side's traffic. What passes towards the side
// must reach it, and all that it sends must pass.
func (d *tapEvidence) grade() machine.Certainty {
	if d.ordered && d.shown && d.against == 0 && d.lacks == 0 && !d.overflowed {
		return machine.Certain
	}
	return machine.Likely
}

// doubt records the arrivals that a near side skipped when it answered a later one. Each can mean
// that the tap is not at the side.
func (t *follower) doubt(p *step, skipped []arrival, answered *arrival) {
	s, peer, m := p.own, p.peer, p.m
	if s.tap.stream || s.behaviour.Port {
		return // Pytide answers the newest first
	}
	d := &s.tap
	d.answered++
	s.read.answered = proof{answered.at, answered.ref}
	if len(skipped) == 0 {
		return
	}
	d.skipped += len(skipped)
	if d.skipped > skippedFew+d.answered/skippedShare {
		d.against += len(skipped)
	}
	if riptide.GapOf(m.Cause, m.Last) > 0 || riptide.GapOf(m.Last, uint16(s.acks.last)) >= s.behaviour.Jump() {
		return // after such an Ack or jump, the window does not show what came
	}
	for i := range skipped {
		id := skipped[i].sequence
		behind := riptide.GapOf(m.Last, id)
		if s.acks.heard && peer.out.unwrap(id) <= s.acks.doubt {
			continue
		}
		if behind < 0 || behind > 0 && behind <= riptide.WindowAcks && m.AckBits>>(behind-1)&1 == 0 {
			d.against++
		}
	}
}

// sentAgain checks a copy of a message for a contradiction: the tap is not at s if s already knew
// that the message was acked. That is so where s had answered a message that passed the tap after
// the Ack. A server of 2.1.0 is an exception: it may wait for another id than the one that it
// wrote.
func (t *follower) sentAgain(s *side, e *life) {
	if s.tap.near && !s.tap.stream && !t.merges(s) && e.sender.acked == machine.Yes && e.sender.byCause &&
		s.read.answered.covers(e.sender.at, e.sender.by) {
		s.tap.against++
	}
}

// placeTap returns where the tap is, by all that has passed, and the reason.
func (t *follower) placeTap() (machine.Vantage, string) {
	v, reason := t.facts.Vantage, t.facts.VantageReason
	if !t.config.OneHost {
		found := t.place.Verdict()
		v, reason = found.Vantage, found.Reason
	}
	for i := range t.sides {
		s := &t.sides[i]
		after, far := t.place.Away(s.side)
		if far = far && t.config.OneHost; !v.Near(s.side) || !far && s.tap.against < vantage.Overruled {
			continue
		}
		was := v
		switch {
		case v == machine.VantageBoth && s.side == machine.A:
			v = machine.VantageB
		case v == machine.VantageBoth:
			v = machine.VantageA
		default:
			v = machine.VantageBetween
		}
		if far {
			reason = fmt.Sprintf("%v rather than %v: %v answers after %v at the least", v, was, s.side, machine.Rounded(after))
		} else {
			reason = fmt.Sprintf(
				"%v rather than %v: %d messages that were captured on their way to %v had not reached it when it went on", v, was,
				s.tap.against, s.side)
		}
	}
	for i := range t.sides {
		s := &t.sides[i]
		at := "at " + s.side.String()
		says := strings.HasPrefix(reason, at+":") || strings.HasPrefix(reason, at+" ") // and not "at both"
		if says && v.Near(s.side) && s.tap.grade() != machine.Certain {
			reason = "likely " + at + ", though it may have been some way off" + reason[len(at):]
		}
	}
	return v, reason
}
