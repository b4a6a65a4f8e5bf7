package tracker

import (
	"sync"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// room is the memory of a tracker whose vantage is decided: its facts, its sides, and the first
// entries of their buffers. Most flows of a capture with very many flows need no more. Trackers
// that have ended hand it on.
type room struct {
	facts    machine.Facts
	sides    [2]side
	sent     [2][gaffer.FirstRing]gaffer.Sent
	received [2][gaffer.FirstRing]uint32
	trips    [2]machine.Trips
	transit  [2][transitsKept]float32
	early    [2][transitsLeast]farSample
	settled  [transitsKept]float32 // for rtt
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// takeRoom gives t new sides, which know nothing, and facts of its own. Where the vantage is known
// from the start, buffers grow by need: very many such flows can go on at a time.
func (t *Tracker) takeRoom() {
	r := t.room
	if r == nil && !t.Holds() {
		facts, sides := *t.facts, [2]side{}
		for i := range sides {
			sides[i].Rules = t.rules
		}
		t.facts, t.Sides = &facts, &sides
		return
	}
	if r == nil {
		r = rooms.Get().(*room)
	}
	facts := *t.facts
	*r = room{facts: facts}
	t.room, t.facts, t.Sides = r, &r.facts, &r.sides
	for i := range r.sides {
		s := &r.sides[i]
		s.Rules = t.rules
		s.UseFirstRings(&r.sent[i], &r.received[i])
		s.trips, s.estimate.transit, s.estimate.early = &r.trips[i], r.transit[i][:0], r.early[i][:0]
	}
}

// Release hands the tracker's memory on to others. The tracker must not be used any more.
func (t *Tracker) Release() {
	if t.room != nil {
		rooms.Put(t.room)
	}
	*t = Tracker{}
}

// Release hands the tracker's memory on to others. The conversation must not be used any more.
func (c *Conversation) Release() { c.inner.Release() }

// copySides gives t copies of the facts and sides of another tracker. They share the buffers.
func (t *Tracker) copySides(of *Tracker) {
	facts, sides := *of.facts, *of.Sides
	t.facts, t.Sides = &facts, &sides
}
