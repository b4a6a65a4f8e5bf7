package srdp

import (
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
)

// Sent is a packet in the sent queue: sent, and not acknowledged yet.
type Sent struct {
	Datagram []byte // what is sent again; nil in trackers

	FirstAt machine.Instant // when its first copy was sent
	LastAt  machine.Instant // when its newest copy was sent
	RetryAt machine.Instant // when its next copy is due, or it is given up

	Timeout time.Duration // between copies: the document's Delta_Time
	First   machine.Ref   // the frame of the first copy seen; zero in simulations
	Last    machine.Ref   // the frame of the newest

	ID64    int64        // unwrapped
	Peer    machine.Peer // whom it was sent to; 0 in trackers of one flow
	Token   uint32       // the driver's own
	Copies  uint32       // sent so far
	ID      uint16
	Repeats uint8 // copies that are to be sent; 0 for as many as it takes
	Flags   uint8 // as on the wire
	Adapts  bool  // Timeout was the library's choice

	order uint64 // of entry or last requeueing: breaks ties of RetryAt
	place int32  // in the heap; freeSlot where the slot holds nothing
}

const freeSlot = -1

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

// Sample gives what an acknowledgement read at now tells.
func (s *Sent) Sample(now machine.Instant) Sample {
	return Sample{FromLast: now.Sub(s.LastAt), FromFirst: now.Sub(s.FirstAt), Ambiguous: s.Copies > 1}
}

// Queue is the sent queue: the packets sent and not acknowledged, in order of
// retry time. It grows with use, and finds a packet by its id as fast as the
// head. The zero Queue is empty and ready.
//
// Its slots are kept for later packets, with the memory of their Datagram, so
// that a queue in steady use allocates nothing.
type Queue struct {
	slots []Sent
	free  []int32
	heap  []int32 // slots, the earliest RetryAt first
	index []int32 // slot+1 by id: open addressing, linear probing; a power of two
	order uint64
}

// Len gives how many packets are in the queue.
func (q *Queue) Len() int { return len(q.heap) }

// Enter puts the first copy of a packet, sent at now, in the queue: due again
// after timeout. It gives nil where a packet of this id is in the queue already.
// The caller fills the entry's further fields; Datagram is empty and has what
// memory the slot's last packet had.
func (q *Queue) Enter(id uint16, now machine.Instant, timeout time.Duration) *Sent {
	if q.find(id) >= 0 {
		return nil
	}
	var slot int32
	if n := len(q.free); n > 0 {
		slot, q.free = q.free[n-1], q.free[:n-1]
	} else {
		slot = int32(len(q.slots))
		q.slots = append(q.slots, Sent{})
	}
	q.order++
	s := &q.slots[slot]
	*s = Sent{
		Datagram: s.Datagram[:0], ID: id, FirstAt: now, LastAt: now, RetryAt: now.Add(timeout), Timeout: timeout,
		Copies: 1, order: q.order, place: int32(len(q.heap)),
	}
	q.heap = append(q.heap, slot)
	q.up(len(q.heap) - 1)
	q.enlist(slot)
	return s
}

// Find gives the packet of an id, nil where it is not in the queue. It is valid
// until the next Enter.
func (q *Queue) Find(id uint16) *Sent {
	if slot := q.find(id); slot >= 0 {
		return &q.slots[slot]
	}
	return nil
}

// Head gives the packet with the earliest retry time, nil where the queue is
// empty. It is what the timer is set to.
func (q *Queue) Head() *Sent {
	if len(q.heap) == 0 {
		return nil
	}
	return &q.slots[q.heap[0]]
}

// Resend enters a further copy of a packet, sent at now, and requeues it.
func (q *Queue) Resend(s *Sent, now machine.Instant) {
	s.Copies++
	s.LastAt = now
	q.Requeue(s, now.Add(s.Timeout))
}

// Requeue gives a packet another retry time.
func (q *Queue) Requeue(s *Sent, at machine.Instant) {
	q.order++
	s.RetryAt, s.order = at, q.order
	q.up(int(s.place))
	q.down(int(s.place))
}

// Remove takes a packet out of the queue: it was acknowledged, or given up. Its
// entry stays readable until the next Enter.
func (q *Queue) Remove(s *Sent) {
	q.delist(s.ID)
	at, last := int(s.place), len(q.heap)-1
	slot, moved := q.heap[at], q.heap[last]
	s.place = freeSlot
	q.heap = q.heap[:last]
	if at < last {
		q.heap[at] = moved
		q.slots[moved].place = int32(at)
		q.up(at)
		q.down(int(q.slots[moved].place))
	}
	q.free = append(q.free, slot)
}

// InOrder calls do for every packet in order of retry time, until it returns
// false. do must not change the queue. It allocates: views call it, not packets.
func (q *Queue) InOrder(do func(*Sent) bool) {
	list := slices.Clone(q.heap)
	slices.SortFunc(list, func(a, b int32) int {
		if q.before(a, b) {
			return -1
		}
		return 1
	})
	for _, slot := range list {
		if !do(&q.slots[slot]) {
			return
		}
	}
}

// Clone gives an independent copy.
func (q *Queue) Clone() Queue {
	c := Queue{
		slots: slices.Clone(q.slots), free: slices.Clone(q.free), heap: slices.Clone(q.heap), index: slices.Clone(q.index), order: q.order,
	}
	for i := range c.slots {
		c.slots[i].Datagram = slices.Clone(c.slots[i].Datagram)
	}
	return c
}

// Size gives the bytes of memory that the queue takes.
func (q *Queue) Size() int {
	n := cap(q.slots)*int(unsafe.Sizeof(Sent{})) + 4*(cap(q.free)+cap(q.heap)+cap(q.index))
	for i := range q.slots {
		n += cap(q.slots[i].Datagram)
	}
	return n
}

// before reports whether slot a comes before slot b.
func (q *Queue) before(a, b int32) bool {
	x, y := &q.slots[a], &q.slots[b]
	return x.RetryAt < y.RetryAt || x.RetryAt == y.RetryAt && x.order < y.order
}

func (q *Queue) swap(i, j int) {
	h := q.heap
	h[i], h[j] = h[j], h[i]
	q.slots[h[i]].place, q.slots[h[j]].place = int32(i), int32(j)
}

func (q *Queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.before(q.heap[i], q.heap[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *Queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			return
		}
		if child+1 < len(q.heap) && q.before(q.heap[child+1], q.heap[child]) {
			child++
		}
		if !q.before(q.heap[child], q.heap[i]) {
			return
		}
		q.swap(i, child)
		i = child
	}
}

// find gives the slot of an id, -1 for none.
func (q *Queue) find(id uint16) int32 {
	if len(q.index) == 0 {
		return -1
	}
	mask := len(q.index) - 1
	for i := Home(id, mask); ; i = (i + 1) & mask {
		slot := q.index[i] - 1
		if slot < 0 || q.slots[slot].ID == id {
			return slot
		}
	}
}

const firstIndex = 8

// Home gives the place at which an id is looked for first. It scatters ids that
// follow each other: side by side they would make one long run, which each
// removal had to walk.
func Home(id uint16, mask int) int { return int(uint32(id)*2654435769>>16) & mask }

// enlist enters a slot in the index, which is at most half full.
func (q *Queue) enlist(slot int32) {
	if 2*len(q.heap) > len(q.index) {
		q.index = make([]int32, max(firstIndex, 2*len(q.index)))
		for _, s := range q.heap {
			q.seat(s)
		}
		return
	}
	q.seat(slot)
}

func (q *Queue) seat(slot int32) {
	mask := len(q.index) - 1
	i := Home(q.slots[slot].ID, mask)
	for q.index[i] != 0 {
		i = (i + 1) & mask
	}
	q.index[i] = slot + 1
}

// delist takes an id out of the index and closes the gap that it leaves in the
// runs of others.
func (q *Queue) delist(id uint16) {
	mask := len(q.index) - 1
	i := Home(id, mask)
	for q.slots[q.index[i]-1].ID != id {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if q.index[j] == 0 {
			break
		}
		// The entry at j may move to i unless its home lies between them.
		if first := Home(q.slots[q.index[j]-1].ID, mask); (j-first)&mask >= (j-i)&mask {
			q.index[i] = q.index[j]
			i = j
		}
	}
	q.index[i] = 0
}
