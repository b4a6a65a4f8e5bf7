package srdp

import (
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
)

// Sent is a packet in the sent queue: sent, and not acknowledged yet.
type Sent struct {
	Datagram []byte // what is sent again; nil in trackers

	FirstAt machine.Instant // when its first copy was sent
	LastAt  machine.Instant // when its newest copy was sent
	Timeout time.Duration   // between copies: the document's Delta_Time
	First   machine.Ref     // the frame of the first copy seen; zero in simulations
	Last    machine.Ref     // the frame of the newest

	ID64    int64        // unwrapped
	Peer    machine.Peer // whom it was sent to; 0 in trackers of one flow
	Token   uint32       // the driver's own
	Copies  uint32       // sent so far
	ID      uint16
	Repeats uint8 // copies that are to be sent; 0 for as many as it takes
	Flags   uint8 // as on the wire
	Adapts  bool  // Timeout was the library's choice

	handle agenda.Handle
}

// Exhausted reports whether all copies that were to be sent have been.
func (s *Sent) Exhausted() bool { return s.Repeats > 0 && s.Copies >= uint32(s.Repeats) }

// Sample is what an acknowledgement tells of the time that a packet and its
// acknowledgement take together.
type Sample struct {
	FromLast  time.Duration // since the newest copy sent before it
	FromFirst time.Duration // since the first copy
	// Ambiguous: there was more than one copy, so it may answer any of them, and by
	// Karn's rule counts in no estimate.
	Ambiguous bool
}

// Sample returns what an acknowledgement read at now tells.
func (s *Sent) Sample(now machine.Instant) Sample {
	return Sample{FromLast: now.Sub(s.LastAt), FromFirst: now.Sub(s.FirstAt), Ambiguous: s.Copies > 1}
}

// Queue is the sent queue: the packets sent and not acknowledged, in order of
// retry time. It grows with use, and finds a packet by its id as fast as the
// head. The zero Queue is empty and ready.
//
// Its entries are kept for later packets, with the memory of their Datagram, so
// that a queue in steady use allocates nothing.
type Queue struct {
	due   agenda.Agenda[machine.Instant, Sent]
	index []agenda.Handle // 1 + the handle, by id: open addressing, linear probing; a power of two
}

// Len returns how many packets are in the queue.
func (q *Queue) Len() int { return q.due.Len() }

// Enter puts the first copy of a packet, sent at now, in the queue: due again
// after timeout. It gives nil where a packet of this id is in the queue already.
// The caller fills the entry's further fields; Datagram is empty and has what
// memory the entry's last packet had.
func (q *Queue) Enter(id uint16, now machine.Instant, timeout time.Duration) *Sent {
	if q.Find(id) != nil {
		return nil
	}
	h, s := q.due.Enter(now.Add(timeout))
	*s = Sent{Datagram: s.Datagram[:0], ID: id, FirstAt: now, LastAt: now, Timeout: timeout, Copies: 1, handle: h}
	q.enlist(s)
	return s
}

// Head returns the packet with the earliest retry time, nil where the queue is
// empty. It is what the timer is set to.
func (q *Queue) Head() *Sent { return q.due.First() }

// RetryAt returns when the next copy of a packet is due, or it is given up.
func (q *Queue) RetryAt(s *Sent) machine.Instant { return q.due.At(s.handle) }

// Resend enters a further copy of a packet, sent at now, and requeues it.
func (q *Queue) Resend(s *Sent, now machine.Instant) {
	s.Copies++
	s.LastAt = now
	q.Requeue(s, now.Add(s.Timeout))
}

// Requeue returns a packet another retry time.
func (q *Queue) Requeue(s *Sent, at machine.Instant) { q.due.Move(s.handle, at) }

// Remove takes a packet out of the queue: it was acknowledged, or given up. Its
// entry stays readable until the next Enter.
func (q *Queue) Remove(s *Sent) {
	q.delist(s.ID)
	q.due.Remove(s.handle)
}

// InOrder calls do for every packet in order of retry time, until it returns
// false. do must not change the queue. It allocates: views call it, not packets.
func (q *Queue) InOrder(do func(*Sent) bool) { q.due.InOrder(do) }

// Clone returns an independent copy.
func (q *Queue) Clone() Queue {
	c := Queue{due: q.due.Clone(), index: slices.Clone(q.index)}
	for i := range c.due.Values() {
		s := &c.due.Values()[i]
		s.Datagram = slices.Clone(s.Datagram)
	}
	return c
}

// Size returns the bytes of memory that the queue takes.
func (q *Queue) Size() int {
	n := q.due.Size() + cap(q.index)*int(unsafe.Sizeof(agenda.Handle(0)))
	for i := range q.due.Values() {
		n += cap(q.due.Values()[i].Datagram)
	}
	return n
}

// Find returns the packet of an id, nil where it is not in the queue. It is valid
// until the next Enter.
func (q *Queue) Find(id uint16) *Sent {
	if len(q.index) == 0 {
		return nil
	}
	mask := len(q.index) - 1
	for i := Home(id, mask); q.index[i] != 0; i = (i + 1) & mask {
		if s := q.seated(i); s.ID == id {
			return s
		}
	}
	return nil
}

const firstIndex = 8

// Home returns the place at which an id is looked for first. It scatters ids that
// follow each other: side by side they would make one long run, which each
// removal had to walk.
func Home(id uint16, mask int) int { return int(uint32(id)*2654435769>>16) & mask }

// seated returns the packet at a place of the index that is taken.
func (q *Queue) seated(i int) *Sent { return q.due.Value(q.index[i] - 1) }

// enlist enters a packet in the index, which is at most half full.
func (q *Queue) enlist(s *Sent) {
	if 2*q.due.Len() <= len(q.index) {
		q.seat(s.handle, s.ID)
		return
	}
	old := q.index
	q.index = make([]agenda.Handle, max(firstIndex, 2*len(old)))
	for _, taken := range old {
		if taken != 0 {
			q.seat(taken-1, q.due.Value(taken-1).ID)
		}
	}
	q.seat(s.handle, s.ID)
}

func (q *Queue) seat(h agenda.Handle, id uint16) {
	mask := len(q.index) - 1
	i := Home(id, mask)
	for q.index[i] != 0 {
		i = (i + 1) & mask
	}
	q.index[i] = h + 1
}

// delist takes an id out of the index and closes the gap that it leaves in the
// runs of others.
func (q *Queue) delist(id uint16) {
	mask := len(q.index) - 1
	i := Home(id, mask)
	for q.seated(i).ID != id {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if q.index[j] == 0 {
			break
		}
		// The entry at j may move to i unless its home lies between them.
		if first := Home(q.seated(j).ID, mask); (j-first)&mask >= (j-i)&mask {
			q.index[i] = q.index[j]
			i = j
		}
	}
	q.index[i] = 0
}
