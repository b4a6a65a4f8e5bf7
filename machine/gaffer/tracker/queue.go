package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// candidate is a datagram that passed the tap towards a near side. The side may not
// have read it yet.
type candidate struct {
	at       machine.Instant
	ref      machine.Ref
	ackBits  uint64
	sequence uint32
	ack      uint32
	next     uint32 // place of the next copy or fragment of the same sequence; 0: none
	own      uint32 // the side's own next sequence when this datagram passed the tap
	id       uint16 // number of the fragment
	count    uint16 // of fragments; 0 for a whole packet
	flags    candidateFlags
}

type candidateFlags uint8

const (
	candidateHeader candidateFlags = 1 << iota // ack and ackBits are set
	candidateHidden                            // its packet was already too old for the peer's sent buffer
	candidateRival                             // the side may have accepted this copy and refused the one before
)

// QueueMost is how many datagrams can wait to be settled. When so many have come to a
// silent side, it counts as having read the oldest.
// Source: bound, the datagrams that wait to be settled
const QueueMost = 4096

// queue holds a near side's candidates in the order in which they passed the tap. The
// side's socket has the same order. Places count up from 1 and wrap with 32 bits; 0 is
// no place.
type queue struct {
	ring       []candidate // its length is a power of two and grows as needed
	head, tail uint32      // places of the oldest candidate and of the next one
	hidden     int         // candidates with the flag candidateHidden
}

func (q *queue) len() int                   { return int(q.tail - q.head) }
func (q *queue) full() bool                 { return q.len() >= QueueMost }
func (q *queue) at(place uint32) *candidate { return &q.ring[int(place)&(len(q.ring)-1)] }
func (q *queue) holds(place uint32) bool    { return place != 0 && place-q.head < q.tail-q.head }
func (q *queue) later(place, than uint32) bool {
	return than == 0 || place-q.head > than-q.head
}

func (q *queue) clone() queue {
	c := *q
	c.ring = append([]candidate(nil), q.ring...)
	return c
}

// push appends p. Its packet's entry in the peer's sent buffer is e, or nil if the
// packet is too old for that buffer. The argument first reports whether the packet is
// new.
func (q *queue) push(e *gaffer.Sent, p *sighting, own uint32, first bool) {
	if q.tail == 0 {
		q.head, q.tail = 1, 1
	}
	if q.len() == len(q.ring) {
		q.grow()
	}
	place := q.tail
	c := q.at(place)
	c.at, c.ref, c.ackBits, c.sequence, c.ack = p.at, p.ref, p.ackBits, p.sequence, p.ack
	c.next, c.own, c.id, c.count, c.flags = 0, own, p.id, p.count, 0
	if p.header {
		c.flags = candidateHeader
	}
	if e == nil || place == 0 {
		c.flags |= candidateHidden
		q.hidden++
	} else {
		if first || !q.holds(e.Waiting) {
			e.Waiting = place
		} else {
			q.at(e.Newest).next = place
		}
		e.Newest = place
	}
	q.tail++
}

// find returns the place of the oldest candidate of a sequence that the peer's sent
// buffer does not hold. It returns 0 if there is none.
func (q *queue) find(sequence uint32) uint32 {
	for place := q.head; place != q.tail; place++ {
		if c := q.at(place); c.flags&candidateHidden != 0 && c.sequence == sequence {
			return place
		}
	}
	return 0
}

func (q *queue) grow() {
	old := *q
	q.ring = make([]candidate, max(4, 2*len(old.ring)))
	for place := old.head; place != old.tail; place++ {
		*q.at(place) = *old.at(place)
	}
}
