package srdp

import (
	"encoding/binary"
	"math/bits"
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
	list []receipt // a ring once it is full
	next int       // where the next one goes once it is
	last int       // 1 + the place of the newest ordered packet; 0 for none
}

type receipt struct {
	at  machine.Instant // of the newest copy
	sum uint32
	id  uint16
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
	e := receipt{now, sum, id}
	place := len(r.list)
	switch {
	case place < rules.Recent:
		r.list = append(r.list, e)
	case place == 0:
		return Delivered // a receiver that remembers nothing
	default:
		place, r.next = r.next, (r.next+1)%len(r.list)
		r.list[place] = e
		if r.last == place+1 {
			r.last = 0
		}
	}
	if asks.Ordered {
		r.last = place + 1
	}
	return Delivered
}

// Has reports whether a copy of a packet would be known.
func (r *Received) Has(rules *Rules, id uint16, sum uint32, now machine.Instant) bool {
	return r.find(rules, id, sum, now) >= 0
}

func (r *Received) find(rules *Rules, id uint16, sum uint32, now machine.Instant) int {
	for i := range r.list {
		if e := &r.list[i]; e.id == id && e.sum == sum && now.Sub(e.at) <= rules.Remember {
			return i
		}
	}
	return -1
}

// Len gives the length of the list.
func (r *Received) Len() int { return len(r.list) }

// All calls do for every id of the list, by the time of the first copies, with
// the time at which the newest copy came.
func (r *Received) All(do func(id uint16, at machine.Instant)) {
	for i := range r.list {
		e := &r.list[(r.next+i)%len(r.list)]
		do(e.id, e.at)
	}
}

// Clone gives an independent copy.
func (r *Received) Clone() Received {
	c := *r
	c.list = slices.Clone(r.list)
	return c
}

// Size gives the bytes of memory that the list takes.
func (r *Received) Size() int { return cap(r.list) * int(unsafe.Sizeof(receipt{})) }

// Sum tells the bytes of packets apart. It takes eight of them at a time: every
// packet's are summed.
func Sum(flags uint8, b []byte) uint32 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	mix := func(h uint64) uint64 {
		high, low := bits.Mul64(h, odd)
		return high ^ low
	}
	h := mix(uint64(len(b))<<8 | uint64(flags) | 1<<63)
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	var rest uint64
	for i, c := range b {
		rest |= uint64(c) << (8 * i)
	}
	h = mix(h^rest) * odd
	return uint32(h >> 32)
}
