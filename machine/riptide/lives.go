package riptide

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// lives holds the messages of one side and mode whose lives are open, by age.
// Its memory is bounded: where too many are open, the oldest ends.
type lives struct {
	slots []life  // of life n: n mod len
	index []int64 // number of the newest life by its sequence mod len, plus one
	first int64   // number of the oldest open life
	next  int64   // number of the next one
}

// life is what is known of one message.
type life struct {
	machine.Message
	number  int64
	before  int64 // number of the life before it at its place of the index, plus one; 0 for none
	hash    uint64
	body    []byte
	lastAt  machine.Instant // when its last copy passed the tap
	wait    time.Duration   // between its last two copies
	merged  bool            // its sequence is not its own: ids of several peers OR-ed (2.1.0)
	clash   bool            // another message has the same sequence
	forgot  bool            // the library gave it up
	answers int             // Acks that answer it, as they passed the tap
	client  uint16          // that the message names, of the protocol's own ones
	taken   bool            // by the window of a far receiver, as its Acks show it
	refused bool            // by its receiver's window, though never taken

	first      exchange
	held       sighting        // of a merged one: the first Ack that clears its id
	answeredAt machine.Instant // when a near receiver last acked it
	refusedAt  machine.Instant // when it first refused it, and the arrival's frame
	refusedRef machine.Ref
}

const (
	livesFirst = 2
	livesMost  = 4096

	lifeReliable = 10 * time.Second // without another copy
	lifeOnce     = 2 * time.Second
)

func (l *lives) at(n int64) *life { return &l.slots[n&int64(len(l.slots)-1)] }

// find gives the newest life with a sequence; nil for none.
func (l *lives) find(sequence int64) *life {
	if len(l.index) == 0 {
		return nil
	}
	return l.walk(l.index[sequence&int64(len(l.index)-1)], sequence)
}

// older gives the life before e with the same sequence; nil for none.
func (l *lives) older(e *life) *life { return l.walk(e.before, e.Sequence64) }

// walk follows the lives of one place of the index, from a number plus one on.
func (l *lives) walk(n, sequence int64) *life {
	for n--; n >= l.first; {
		e := l.at(n)
		if e.Sequence64 == sequence {
			return e
		}
		n = e.before - 1
	}
	return nil
}

// lookup gives the life of a sequence and content.
func (l *lives) lookup(sequence int64, hash uint64) *life {
	for e := l.find(sequence); e != nil; e = l.older(e) {
		if e.hash == hash {
			return e
		}
	}
	return nil
}

// full reports whether the oldest life must end before another can begin.
func (l *lives) full() bool { return l.next-l.first == livesMost }

// grow doubles the room where it is used up.
func (l *lives) grow() {
	if n := int64(len(l.slots)); l.next-l.first < n {
		return
	}
	old := *l
	size := max(livesFirst, 2*len(old.slots))
	l.slots, l.index = make([]life, size), make([]int64, size)
	for n := old.first; n < old.next; n++ {
		e := l.at(n)
		*e = *old.at(n)
		place := &l.index[e.Sequence64&int64(size-1)]
		e.before, *place = *place, n+1
	}
}

// begin opens the life of a message, in the memory of one that has ended. There
// must be room: see full.
func (l *lives) begin(sequence int64, hash uint64) *life {
	l.grow()
	e := l.at(l.next)
	*e = life{number: l.next, hash: hash}
	e.Sequence64, e.Sequence = sequence, uint32(uint16(sequence))
	place := &l.index[sequence&int64(len(l.index)-1)]
	e.before, *place = *place, l.next+1
	l.next++
	return e
}

// oldest gives the oldest open life; nil for none.
func (l *lives) oldest() *life {
	if l.first == l.next {
		return nil
	}
	return l.at(l.first)
}

// newestEnded gives a sequence up to which lives may have ended.
func (l *lives) newestEnded() int64 {
	if e := l.oldest(); e != nil && l.first > 0 {
		return e.Sequence64
	}
	if l.first == 0 {
		return -1
	}
	return 1<<63 - 1
}

// clone gives an independent copy.
func (l *lives) clone() lives {
	c := *l
	c.slots = make([]life, len(l.slots))
	c.index = append([]int64(nil), l.index...)
	for n := l.first; n < l.next; n++ {
		e := c.at(n)
		*e = *l.at(n)
		e.body = append([]byte(nil), e.body...)
	}
	return c
}

// hashOf tells contents apart.
func hashOf(b []byte) uint64 {
	h := uint64(len(b)) ^ 0x9E3779B97F4A7C15
	for len(b) >= 8 {
		v := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		h = (h ^ v) * 0xC2B2AE3D27D4EB4F
		h ^= h >> 29
		b = b[8:]
	}
	for _, v := range b {
		h = (h ^ uint64(v)) * 0x100000001B3
	}
	return h ^ h>>32
}
