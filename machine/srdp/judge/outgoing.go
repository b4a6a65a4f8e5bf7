package judge

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// outgoing is a data packet that a side sent.
type outgoing struct {
	hash     uint64
	ref      machine.Ref // the first copy's frame
	lastRef  machine.Ref
	lastAt   machine.Instant
	ackedAt  machine.Instant
	ackRef   machine.Ref
	ackPlace uint64 // the place of the first acknowledgement among what passed the tap towards the side
	acks     int
	copies   int
	at       machine.Instant // when the first copy passed
	// Bounds of the time between two copies; most is 0 before there were two.
	least, most time.Duration
	round       uint32 // judgedLane.round of its first copy
	id          uint16
	behind      bool // a newer plain packet had passed before it
	ordered     bool
	replaced    bool // another packet has its id since
}

// outbox is the packets of a lane that the judge knows, by age. At most keptMost of them are not replaced.
//
//   - 0 ≤ first ≤ next, and next-first ≤ len(ring) ≤ 2*keptMost
//   - len(ring) is 0 or a power of two
//   - places has the place in the ring of each packet from first on that is not replaced
type outbox struct {
	ring   []outgoing // packet n is at n mod len
	first  int64      // number of the oldest packet
	next   int64      // number of the next one
	places srdp.Places
}

// firstOutbox is how many packets an outbox has room for when it is first used.
// Source: bound, the first size of a ring
const firstOutbox = 8

func (o *outbox) place(n int64) int { return int(n & int64(len(o.ring)-1)) }

// find returns the packet that was sent last with an id, or nil. It is valid until the next add.
func (o *outbox) find(id uint16) *outgoing {
	if place := o.places.Find(id); place >= 0 {
		return &o.ring[place]
	}
	return nil
}

// each calls do with each packet that is not replaced, the oldest first.
func (o *outbox) each(do func(*outgoing)) {
	for n := o.first; n < o.next; n++ {
		if e := &o.ring[o.place(n)]; !e.replaced {
			do(e)
		}
	}
}

// drop forgets the packet of an id, if there is one.
func (o *outbox) drop(id uint16) {
	if e := o.find(id); e != nil {
		e.replaced = true
		o.places.Remove(id)
	}
}

// dropOldest forgets the oldest packet and returns its id. There must be one that is not replaced.
func (o *outbox) dropOldest() uint16 {
	for {
		e := &o.ring[o.place(o.first)]
		o.first++
		if !e.replaced {
			o.places.Remove(e.id)
			return e.id
		}
	}
}

// add appends a packet with an id that no other has. The caller fills it.
func (o *outbox) add(id uint16) *outgoing {
	if o.next-o.first == int64(len(o.ring)) {
		o.makeRoom()
	}
	place := o.place(o.next)
	o.places.Set(id, place)
	o.next++
	e := &o.ring[place]
	*e = outgoing{id: id}
	return e
}

// makeRoom lets the ring grow. While no packet was dropped, all keep their places. At its full size, at least half
// of its packets are replaced: it leaves these out.
func (o *outbox) makeRoom() {
	old := *o
	o.ring = make([]outgoing, min(max(firstOutbox, 2*len(old.ring)), 2*keptMost))
	if len(o.ring) > len(old.ring) && o.first == 0 {
		copy(o.ring, old.ring)
		return
	}
	o.first, o.next = 0, 0
	old.each(func(e *outgoing) {
		place := o.place(o.next)
		o.ring[place] = *e
		o.places.Set(e.id, place)
		o.next++
	})
}
