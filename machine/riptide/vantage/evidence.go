package vantage

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Evidence is what the messages of a connection show about the tap's place. Call New to make one.
type Evidence struct {
	of     [2]reach
	roles  riptide.BeatRoles
	opened bool
	opener machine.Side // who sent the first message
	begun  bool         // its Connect came before all Acks and reliable messages
	stream bool         // over TCP: nothing is lost between the tap and a side
}

// New returns the evidence for a connection before its first message. stream is set where its
// messages come over TCP.
func New(stream bool) Evidence { return Evidence{stream: stream} }

// Weigh adds a message that passed the tap to the figures of both sides. speaker is what its sender
// speaks.
func (e *Evidence) Weigh(at machine.Instant, from machine.Side, speaker *riptide.Speaker, m *wire.Message) {
	own, peer := &e.of[from], &e.of[from.Other()]
	d := speaker.Codec.Dialect
	is := e.roles.Take(from, d, m)
	own.pace.spoke(at)
	if !e.stream {
		e.contradict(from, riptide.BehaviourOf(d, speaker.Builds), is, m)
	}
	switch {
	case m.Type.Reliable():
		peer.open.add(wire.Reliable, m.Sequence, at)
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		own.answer(wire.Reliable, m.Cause, at)
	case is == riptide.BeatPing:
		own.rtts.take(m)
		peer.open.add(wire.Heartbeat, uint16(m.Ping), at)
	case is == riptide.BeatAnswer:
		if wait, ok := own.answer(wire.Heartbeat, uint16(m.Ping), at); ok {
			peer.rtts.lastPing = wait
		}
	case m.Type == wire.Notify && !m.Bare:
		own.answer(wire.Notify, m.Last, at)
		peer.open.add(wire.Notify, m.Sequence, at)
	}
}

// Shows reports whether a side is shown to be at the tap. It is if it answers sooner than any side
// that is away could.
func (e *Evidence) Shows(x machine.Side) bool { return e.of[x].shows() }

// Scrambled reports whether a network must lie between the tap and a side. Messages of the side
// came out of order, or twice though they are sent once. Or messages were lost both on the way
// to it and on the way from it. A side that is wrong shows one of the two.
func (e *Evidence) Scrambled(x machine.Side) bool {
	c := &e.of[x].against
	return c.late >= Overruled || min(c.gaps, c.missed) > 1
}

// relayLeast is the least answer time that shows a relay. A network path takes so long, and a tick
// does not. It applies to a side that has the other side's address.
// Source: measured, TestMarginsRiptide
const relayLeast = 36 * time.Millisecond

// Away reports whether a side is away from the tap although it has the address of the other side,
// as a relay does. It also returns the side's least time to an answer.
func (e *Evidence) Away(x machine.Side) (after time.Duration, away bool) {
	w := &e.of[x].waits
	after = w.Least()
	return after, w.Count() >= enoughAnswers && after > relayLeast
}

// Clone returns an independent copy.
func (e *Evidence) Clone() Evidence {
	c := *e
	for i := range c.of {
		c.of[i].open.cloneRings()
	}
	return c
}

// first returns the side that sent the first message. from is the sender of the current one.
func (e *Evidence) first(from machine.Side) machine.Side {
	if !e.opened {
		e.opened, e.opener = true, from
	}
	return e.opener
}
