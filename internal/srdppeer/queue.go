package srdppeer

import "container/heap"

// sentQueue is the document's srdp_sent_queue: the packets that wait for an
// acknowledgement, the one with the earliest retry time first.
type sentQueue []*outgoing

func (q *sentQueue) add(o *outgoing)    { heap.Push((*byRetry)(q), o) }
func (q *sentQueue) remove(o *outgoing) { heap.Remove((*byRetry)(q), o.place) }
func (q *sentQueue) moved(o *outgoing)  { heap.Fix((*byRetry)(q), o.place) }

// byRetry makes a heap of the queue.
type byRetry []*outgoing

func (q byRetry) Len() int { return len(q) }

// Less orders by retry time, and by the first copy where that is equal.
func (q byRetry) Less(i, j int) bool {
	if q[i].retry != q[j].retry {
		return q[i].retry < q[j].retry
	}
	return q[i].firstSent < q[j].firstSent
}

func (q byRetry) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *byRetry) Push(x any) {
	o := x.(*outgoing)
	o.place = len(*q)
	*q = append(*q, o)
}

func (q *byRetry) Pop() any {
	last := len(*q) - 1
	o := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return o
}

// recentIDs is the document's list of recently received ids, of one source.
type recentIDs struct {
	ids   []uint16 // oldest first, from next on
	known map[uint16]bool
	next  int
}

func newRecentIDs(size int) *recentIDs {
	return &recentIDs{ids: make([]uint16, 0, size), known: map[uint16]bool{}}
}

// add reports whether an id is new, and keeps it in place of the oldest one.
func (r *recentIDs) add(id uint16) bool {
	if r.known[id] {
		return false
	}
	r.known[id] = true
	if len(r.ids) < cap(r.ids) {
		r.ids = append(r.ids, id)
		return true
	}
	delete(r.known, r.ids[r.next])
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
	return true
}
