package srdp

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
)

// Sent is a packet in the sent queue: it was sent and is not acknowledged yet.
type Sent struct {
	Datagram []byte // the bytes to send again; nil in trackers

	FirstAt machine.Instant // when its first copy was sent
	LastAt  machine.Instant // when its newest copy was sent
	Timeout time.Duration   // between copies: the document's Delta_Time
	First   machine.Ref     // the frame of the first copy seen; zero in simulations
	Last    machine.Ref     // the frame of the newest copy

	ID64    int64        // unwrapped
	Peer    machine.Peer // the peer that it was sent to; 0 in trackers of one flow
	Token   uint32       // for the driver's use
	Copies  uint32       // copies sent so far
	ID      uint16
	Repeats uint8 // the most copies to send; 0 for no limit
	Flags   uint8 // as on the wire
	Adapts  bool  // the library chose Timeout

	handle agenda.Handle
}

// Exhausted reports whether all requested copies were sent.
func (s *Sent) Exhausted() bool { return s.Repeats > 0 && s.Copies >= uint32(s.Repeats) }

// Sample is what an acknowledgement shows of the round trip of a packet and its
// acknowledgement.
type Sample struct {
	FromLast  time.Duration // since the newest copy sent before it
	FromFirst time.Duration // since the first copy
	// Ambiguous is set when there was more than one copy: the acknowledgement
	// may answer any of them. By Karn's rule no estimate uses such a sample.
	Ambiguous bool
}

// Sample returns the sample of an acknowledgement that is read at now.
func (s *Sent) Sample(now machine.Instant) Sample {
	return Sample{FromLast: now.Sub(s.LastAt), FromFirst: now.Sub(s.FirstAt), Ambiguous: s.Copies > 1}
}

// Queue is the sent queue: packets that were sent and not acknowledged, in
// order of retry time. It grows with use. Finding a packet by its id is as fast
// as finding the head. The zero Queue is empty and ready.
//
// The queue reuses its entries, with the memory of their Datagram. In steady
// use it therefore allocates nothing.
type Queue struct {
	due   agenda.Agenda[machine.Instant, Sent]
	index Places // the handles, by id
}

// Len returns how many packets are in the queue.
func (q *Queue) Len() int { return q.due.Len() }

// Enter adds the first copy of a packet, sent at now and due again after
// timeout. It returns nil when the queue already holds a packet of this id. The
// caller fills the entry's other fields. Datagram is empty and keeps the
// capacity of the entry's previous packet.
func (q *Queue) Enter(id uint16, now machine.Instant, timeout time.Duration) *Sent {
	if q.Find(id) != nil {
		return nil
	}
	h, s := q.due.Enter(now.Add(timeout))
	*s = Sent{Datagram: s.Datagram[:0], ID: id, FirstAt: now, LastAt: now, Timeout: timeout, Copies: 1, handle: h}
	q.index.Set(id, int(h))
	return s
}

// Head returns the packet with the earliest retry time, to which the endpoint
// sets its timer. It returns nil when the queue is empty.
func (q *Queue) Head() *Sent { return q.due.First() }

// RetryAt returns when the next copy of a packet is due, or when it is given
// up.
func (q *Queue) RetryAt(s *Sent) machine.Instant { return q.due.At(s.handle) }

// Resend records a further copy of a packet, sent at now, and requeues it.
func (q *Queue) Resend(s *Sent, now machine.Instant) {
	s.Copies++
	s.LastAt = now
	q.Requeue(s, now.Add(s.Timeout))
}

// Requeue sets another retry time for a packet.
func (q *Queue) Requeue(s *Sent, at machine.Instant) { q.due.Move(s.handle, at) }

// Remove takes a packet out of the queue: it was acknowledged or given up. Its
// entry stays readable until the next Enter.
func (q *Queue) Remove(s *Sent) {
	q.index.Remove(s.ID)
	q.due.Remove(s.handle)
}

// InOrder calls do for every packet in order of retry time, until do returns
// false. do must not change the queue. InOrder allocates: use it for views
// only.
func (q *Queue) InOrder(do func(*Sent) bool) { q.due.InOrder(do) }

// Clone returns an independent copy.
func (q *Queue) Clone() Queue {
	c := Queue{due: q.due.Clone(), index: q.index.Clone()}
	for i := range c.due.Values() {
		s := &c.due.Values()[i]
		s.Datagram = slices.Clone(s.Datagram)
	}
	return c
}

// Size returns the bytes of memory that the queue uses.
func (q *Queue) Size() int {
	n := q.due.Size() + q.index.Size()
	for i := range q.due.Values() {
		n += cap(q.due.Values()[i].Datagram)
	}
	return n
}

// Find returns the packet of an id. It returns nil when the queue does not hold
// it. The result is valid until the next Enter.
func (q *Queue) Find(id uint16) *Sent {
	if place := q.index.Find(id); place >= 0 {
		return q.due.Value(agenda.Handle(place))
	}
	return nil
}
