package srdp

import (
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
)

// Rules limit what a receiver remembers. They never travel on the wire.
type Rules struct {
	// Recent is the length of the list of received ids, per source.
	Recent int
	// Remember is how long an id stays in the list after its newest copy. Ids
	// wrap: after a longer time the same id is another packet's.
	Remember time.Duration
}

// DefaultRules returns the rules of the reference.
func DefaultRules() Rules { return Rules{Recent: 64, Remember: 30 * time.Second} }

// Promise is what a packet's flags ask of its receiver.
type Promise struct {
	Once    bool // SRDP_DONTDUPLICATE
	Ordered bool // SRDP_ORDER
}

// Fate is what a receiver does with a copy of a data packet. It acknowledges
// the copy in any case.
type Fate uint8

const (
	Delivered Fate = iota // handed to the application
	Duplicate             // dropped: the packet was handed over before and must be handed over only once
	Late                  // dropped: an ordered packet that was handed over before, and a later one after it
)

// Received is what an endpoint remembers of the packets from one source: the
// list of recently received ids. It does not list packets without a promise. It
// grows with use up to Rules.Recent. The zero Received is empty and ready.
type Received struct {
	list  []receipt // a ring once it is full: entry n is at n mod Rules.Recent
	index []int     // by hash of the id: number of the newest entry plus one; its length is a power of two
	count int       // entries so far, overwritten ones included
	last  int       // 1 + the place of the newest ordered packet; 0 if there is none
}

type receipt struct {
	at     machine.Instant // of the newest copy
	sum    uint32
	before int32 // distance to the entry before it in the same slot of the index; 0 if there is none
	id     uint16
}

// Arrive takes a copy of a data packet: its id, what its flags ask, and the Sum
// of its bytes. The sum distinguishes a copy from another packet of the same
// id.
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
		return Delivered // this receiver remembers nothing
	}
	place := r.enter(rules, receipt{at: now, sum: sum, id: id})
	if asks.Ordered {
		r.last = place + 1
	}
	return Delivered
}

// Has reports whether Arrive would recognise a copy of a packet.
func (r *Received) Has(rules *Rules, id uint16, sum uint32, now machine.Instant) bool {
	return r.find(rules, id, sum, now) >= 0
}

// enter adds an entry and returns its place. When the list is full, the entry
// replaces the oldest one.
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
		r.index = make([]int, max(firstPlaces, 2*len(r.index)))
		for n := range r.count { // the list is not full yet, so no entry was overwritten
			r.enlist(n)
		}
	}
	r.list[place] = e
	r.enlist(r.count)
	r.count++
	return place
}

// enlist adds entry n to the index.
func (r *Received) enlist(n int) {
	e := &r.list[n%len(r.list)]
	newest := &r.index[Home(e.id, len(r.index)-1)]
	e.before = 0
	if before := *newest - 1; before >= 0 {
		e.before = int32(min(n-before, len(r.list)))
	}
	*newest = n + 1
}

// find returns the place of a packet in the list. It returns -1 when there is
// none.
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

// All calls do for each id of the list, in order of their first copies. at is
// when the newest copy of that id came.
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

// Size returns the bytes of memory that the list uses.
func (r *Received) Size() int {
	return cap(r.list)*int(unsafe.Sizeof(receipt{})) + cap(r.index)*8
}

// Sum returns a checksum that distinguishes the contents of packets.
func Sum(flags uint8, b []byte) uint32 {
	h := machine.Digest(uint64(flags), b)
	return uint32(h>>32) ^ uint32(h)
}
