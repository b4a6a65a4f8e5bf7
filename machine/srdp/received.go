package srdp

import (
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
)

// Rules bound what a receiver remembers. They never travel on the wire.
type Rules struct {
	// Recent is the length of the list of ids received, per source.
	Recent int
	// Remember is how long after its newest copy an id stays in it. Ids wrap: one
	// that comes again after a longer time is another packet's.
	Remember time.Duration
}

// DefaultRules are those of the reference.
func DefaultRules() Rules { return Rules{Recent: 64, Remember: 30 * time.Second} }

// Promise is what a packet's flags ask of its receiver.
type Promise struct {
	Once    bool // SRDP_DONTDUPLICATE
	Ordered bool // SRDP_ORDER
}

// Fate is what becomes of a copy of a data packet that arrives. It is
// acknowledged in any case.
type Fate uint8

const (
	Delivered Fate = iota // handed over
	Duplicate             // handed over before, and was to be but once: dropped
	Late                  // an ordered packet, handed over before, and then a later one was: dropped
)

// Received is what an endpoint keeps of the packets that one source sent: the
// list of recently received ids. Packets without a promise are not in it. It
// grows with use up to Rules.Recent. The zero Received is empty and ready.
type Received struct {
	list  []receipt // a ring once it is full: entry n is at n mod Rules.Recent
	index []int     // entry that is newest by the home of its id, plus one; a power of two
	count int       // of entries so far, those that are overwritten among them
	last  int       // 1 + the place of the newest ordered packet; 0 for none
}

type receipt struct {
	at     machine.Instant // of the newest copy
	sum    uint32
	before int32 // how many entries before it is the one before it at its place of the index; 0 for none
	id     uint16
}

// Arrive takes a copy of a data packet: its id, what its flags ask, and the Sum
// of its bytes, by which another packet of the same id is told from a copy.
func (r *Received) Arrive(rules *Rules, id uint16, asks Promise, sum uint32, now machine.Instant) Fate {
	if !asks.Once && !asks.Ordered {
		return Delivered
	}
	if at := r.find(rules, id, sum, now); at >= 0 {
		r.list[at].at = now
		switch {
		case asks.Once:
			return Duplicate
		case at+1 != r.last:
			return Late
		}
		return Delivered
	}
	if rules.Recent <= 0 {
		return Delivered // a receiver that remembers nothing
	}
	place := r.enter(rules, receipt{at: now, sum: sum, id: id})
	if asks.Ordered {
		r.last = place + 1
	}
	return Delivered
}

// Has reports whether a copy of a packet would be known.
func (r *Received) Has(rules *Rules, id uint16, sum uint32, now machine.Instant) bool {
	return r.find(rules, id, sum, now) >= 0
}

// enter adds an entry, in the place of the oldest once the list is full, and gives
// its place.
func (r *Received) enter(rules *Rules, e receipt) (place int) {
	if place = len(r.list); place < rules.Recent {
		r.list = append(r.list, receipt{})
	} else {
		place = r.count % len(r.list)
		if r.last == place+1 {
			r.last = 0
		}
	}
	if len(r.index) < len(r.list) {
		r.index = make([]int, max(firstIndex, 2*len(r.index)))
		for n := range r.count { // the list is not full yet: all entries are there
			r.enlist(n)
		}
	}
	r.list[place] = e
	r.enlist(r.count)
	r.count++
	return place
}

// enlist puts entry n into the index.
func (r *Received) enlist(n int) {
	e := &r.list[n%len(r.list)]
	newest := &r.index[Home(e.id, len(r.index)-1)]
	e.before = 0
	if before := *newest - 1; before >= 0 {
		e.before = int32(min(n-before, len(r.list)))
	}
	*newest = n + 1
}

// find returns the place of a packet in the list, -1 for none.
func (r *Received) find(rules *Rules, id uint16, sum uint32, now machine.Instant) int {
	if len(r.list) == 0 {
		return -1
	}
	found := -1
	for n := r.index[Home(id, len(r.index)-1)] - 1; n >= 0 && n >= r.count-len(r.list); {
		place := n % len(r.list)
		e := &r.list[place]
		if e.id == id && e.sum == sum && now.Sub(e.at) <= rules.Remember && (found < 0 || place < found) {
			found = place
		}
		if e.before == 0 {
			break
		}
		n -= int(e.before)
	}
	return found
}

// Len returns the length of the list.
func (r *Received) Len() int { return len(r.list) }

// All calls do for every id of the list, by the time of the first copies, with
// the time at which the newest copy came.
func (r *Received) All(do func(id uint16, at machine.Instant)) {
	for i := range r.list {
		e := &r.list[(r.count+i)%len(r.list)]
		do(e.id, e.at)
	}
}

// Clone returns an independent copy.
func (r *Received) Clone() Received {
	c := *r
	c.list, c.index = slices.Clone(r.list), slices.Clone(r.index)
	return c
}

// Size returns the bytes of memory that the list takes.
func (r *Received) Size() int {
	return cap(r.list)*int(unsafe.Sizeof(receipt{})) + cap(r.index)*8
}

// Sum tells the bytes of packets apart.
func Sum(flags uint8, b []byte) uint32 {
	h := machine.Digest(uint64(flags), b)
	return uint32(h>>32) ^ uint32(h)
}
