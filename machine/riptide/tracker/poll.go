package tracker

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Pytide reads all that lies in its socket at once, and takes the newest first. A capture does not show
// what it read at once. So the tracker takes Acks in the order of the tap, and those that pass within a tick
// backwards as well. Where the two orders leave different messages acked, that is likely.

// pollMost is how many Acks of one poll are tried in both orders.
// Source: bound, the Acks of one poll that are tried
const pollMost = 16

// poll is the Acks that a side may have read at once.
type poll struct {
	first     machine.Instant // when the first of them passed
	before    riptide.Sender  // the sender's state before them
	acks      []pollAck
	cleared   []uint16 // what they clear in the order of the tap
	backwards []uint16 // and in the other
}

// pollAck is what an Ack says, and the newest id that its reader had received.
type pollAck struct{ last, bits, cause, received uint16 }

func (g *poll) clone() poll {
	c := *g
	c.before = g.before.Clone()
	c.acks, c.cleared, c.backwards = slices.Clone(g.acks), slices.Clone(g.cleared), slices.Clone(g.backwards)
	return c
}

// decidesPolled processes an Ack in Pytide's sending window. It marks the messages whose fate depends on the
// order of the Acks of one poll.
func (s *side) decidesPolled(at machine.Instant, m *wire.Message, decide func(id uint16, v riptide.Verdict)) {
	own, g := &s.out.sender, &s.poll
	if len(g.acks) == 0 || len(g.acks) == pollMost || at.Sub(g.first) > riptide.TickSlack {
		g.first, g.before, g.acks, g.cleared = at, own.Clone(), g.acks[:0], g.cleared[:0]
	}
	g.acks = append(g.acks, pollAck{m.Last, m.AckBits, m.Cause, s.in.receiver.Last})
	g.backwards = g.backwards[:0]
	if len(g.acks) > 1 {
		back := g.before.Clone()
		for i := len(g.acks) - 1; i >= 0; i-- {
			a := &g.acks[i]
			back.Received(a.received)
			back.Acked(a.last, a.bits, a.cause, func(id uint16, v riptide.Verdict) {
				if v == riptide.Cleared {
					g.backwards = append(g.backwards, id)
				}
			})
		}
	}
	own.Acked(m.Last, m.AckBits, m.Cause, func(id uint16, v riptide.Verdict) {
		if v == riptide.Cleared {
			g.cleared = append(g.cleared, id)
		}
		decide(id, v)
	})
	if len(g.acks) > 1 {
		s.dispute(g.cleared, g.backwards)
		s.dispute(g.backwards, g.cleared)
	}
}

// dispute marks the messages that are in one list of ids and not in the other.
func (s *side) dispute(list, other []uint16) {
	for _, id := range list {
		if slices.Contains(other, id) || !s.out.met {
			continue
		}
		if e := s.out.lives.find(s.out.unwrap(id)); e != nil {
			e.sender.disputed = true
		}
	}
}
