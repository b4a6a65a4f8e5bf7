package tracker

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/vantage"
)

// Where the tap stands is inferred, as a rule, and all that is told of a near side
// hangs on it: that what passed the tap towards it has reached it, once and in that
// order. Where times do not show it, or the side's own messages contradict it (a
// relay on its address, a tap half way), that is likely and no more. The same holds
// where the capture lacks messages: each can be the one that made the side refuse
// another.

// A capture can lack some of the Acks: these many, and one in so many.
const skippedFew, skippedShare = 3, 12

// grade returns how surely what passes the tap towards the side has reached it, and
// what passes from it is all that it sent.
func (d *tapEvidence) grade() machine.Certainty {
	if d.ordered && d.shown && d.against == 0 && d.lacks == 0 && !d.blurred {
		return machine.Certain
	}
	return machine.Likely
}

// doubt looks at the arrivals that a near side passed over when it answered a
// later one.
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
		return // the window does not show what came
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

// sentAgain looks at a copy of a message that s, if the tap is at it, knew to be
// acked: it had answered what passed the tap after that Ack. A server of 2.1.0
// does so, where it waits for another id than the one that it wrote.
func (t *follower) sentAgain(s *side, e *life) {
	if s.tap.near && !s.tap.stream && !t.merges(s) && e.sender.acked == machine.Yes && e.sender.byCause &&
		s.read.answered.covers(e.sender.at, e.sender.by) {
		s.tap.against++
	}
}

// placeTap tells where the tap placeTap, by all that has passed.
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
				"%v rather than %v: %d messages that passed the tap towards %v had not reached it when it went on", v, was,
				s.tap.against, s.side)
		}
	}
	for i := range t.sides {
		s := &t.sides[i]
		at := "at " + s.side.String()
		says := strings.HasPrefix(reason, at+":") || strings.HasPrefix(reason, at+" ") // and not "at both"
		if says && v.Near(s.side) && s.tap.grade() != machine.Certain {
			reason = "likely " + at + ", though it may stand some way off" + reason[len(at):]
		}
	}
	return v, reason
}
