package tracker

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/vantage"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Where the tap stands is inferred, as a rule, and all that is told of a near side
// hangs on it: that what passed the tap towards it has reached it, once and in that
// order. Where times do not show it, or the side's own messages contradict it (a
// relay on its address, a tap half way), that is likely and no more. The same holds where the capture lacks messages: each can
// be the one that made the side refuse another.

// doubts is what speaks against the tap standing at a side.
type doubts struct {
	against  int  // messages that passed the tap towards it, and that it had not got when it went on
	lacks    int  // signs that the capture lacks messages: gaps in what it sends, answers to what is not there
	blurred  bool // so many waited for its Acks that some were forgotten
	answered int  // reliable copies that it answered
	skipped  int  // copies of which no Ack has passed, though later ones were answered
}

// A capture can lack some of the Acks: these many, and one in so many.
const skippedFew, skippedShare = 3, 12

// grade gives how surely what passes the tap towards s has reached it, and what
// passes from it is all that it sent.
func (s *side) grade() machine.Certainty {
	if d := &s.doubts; s.ordered && s.shown && d.against == 0 && d.lacks == 0 && !d.blurred {
		return machine.Certain
	}
	return machine.Likely
}

// doubt looks at the arrivals that a near side passed over when it answered a
// later one.
func (t *follower) doubt(s, peer *side, skipped []arrival, answered *arrival, m *wire.Message) {
	if s.stream || s.behaviour.Port {
		return // Pytide answers the newest first
	}
	d := &s.doubts
	d.answered++
	s.readTo = proof{answered.at, answered.ref}
	if len(skipped) == 0 {
		return
	}
	d.skipped += len(skipped)
	if d.skipped > skippedFew+d.answered/skippedShare {
		d.against += len(skipped)
	}
	if riptide.GapOf(m.Cause, m.Last) > 0 || riptide.GapOf(m.Last, uint16(s.heardLast)) >= s.behaviour.Jump() {
		return // the window does not show what came
	}
	for i := range skipped {
		id := skipped[i].sequence
		behind := riptide.GapOf(m.Last, id)
		if s.heard && peer.unwrap(id) <= s.doubt {
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
	if s.near && !s.stream && !t.merges(s) && e.Acked == machine.Yes && e.byCause && s.readTo.covers(e.AckedAt, e.AckedBy) {
		s.doubts.against++
	}
}

// stands tells where the tap stands, by all that has passed.
func (t *follower) stands() (machine.Vantage, string) {
	v, reason := t.facts.Vantage, t.facts.VantageReason
	if !t.config.OneHost {
		found := t.place.Verdict()
		v, reason = found.Vantage, found.Reason
	}
	for i := range t.sides {
		s := &t.sides[i]
		after, far := t.place.Away(s.side)
		if far = far && t.config.OneHost; !v.Near(s.side) || !far && s.doubts.against < vantage.Overruled {
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
			reason = fmt.Sprintf("%v rather than %v: %d messages that passed the tap towards %v had not reached it when it went on", v, was, s.doubts.against, s.side)
		}
	}
	for i := range t.sides {
		s := &t.sides[i]
		at := "at " + s.side.String()
		says := strings.HasPrefix(reason, at+":") || strings.HasPrefix(reason, at+" ") // and not "at both"
		if says && v.Near(s.side) && s.grade() != machine.Certain {
			reason = "likely " + at + ", though it may stand some way off" + reason[len(at):]
		}
	}
	return v, reason
}
