package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// lives holds the messages of one side and mode whose lives are open, by age. Its memory is
// bounded: where too many are open, the oldest ends.
//
//   - 0 ≤ first ≤ next, and next-first ≤ len(slots) ≤ livesMost
//   - len(slots) is 0 or a power of two; len(index) is len(slots) or 0
type lives struct {
	slots []life // life n is at n mod len
	// Number plus one of the newest life, by its sequence mod len; empty where lives are not looked
	// up.
	index     []int64
	first     int64           // number of the oldest open life
	next      int64           // number of the next one
	shown     int64           // number of the first life whose reading nothing has shown yet: see showRead
	due       machine.Instant // the oldest does not end before
	anonymous bool            // messages without an identity; they are never looked up
}

const (
	// livesFirst is how many messages a ring of lives has room for when it is first used.
	// Source: bound, the first size of a ring
	livesFirst = 2
	// livesMost is how many messages a ring of lives holds before the oldest one's life must end.
	// Source: bound, the messages that are not settled
	livesMost = 4096

	// lifeReliable is how long after its last copy the life of a reliable or Notify message ends.
	// Source: measured, TestMarginsRiptide
	lifeReliable = 10 * time.Second
	// lifeOnce is how long after its last copy the life of an unreliable message ends.
	// Source: measured, TestMarginsRiptide
	lifeOnce = 2 * time.Second
)

func (l *lives) at(n int64) *life { return &l.slots[n&int64(len(l.slots)-1)] }

// find returns the newest life with a sequence, or nil.
func (l *lives) find(sequence int64) *life {
	if len(l.index) == 0 {
		return nil
	}
	return l.walk(l.index[sequence&int64(len(l.index)-1)]-1, sequence)
}

// older returns the life before e with the same sequence, or nil.
func (l *lives) older(e *life) *life {
	if e.before == 0 {
		return nil
	}
	return l.walk(e.number-int64(e.before), e.sequence64)
}

// walk follows the lives at one place of the index, from life n back.
func (l *lives) walk(n, sequence int64) *life {
	for n >= l.first {
		e := l.at(n)
		if e.sequence64 == sequence {
			return e
		}
		if e.before == 0 {
			return nil
		}
		n -= int64(e.before)
	}
	return nil
}

// lookup returns the life with a sequence and content, or nil.
func (l *lives) lookup(sequence int64, hash uint64) *life {
	for e := l.find(sequence); e != nil; e = l.older(e) {
		if e.hash == hash {
			return e
		}
	}
	return nil
}

// copied returns the life of which a message with a sequence and content is a copy, or nil. Content 0 is not
// known, and can be any.
func (l *lives) copied(sequence int64, hash uint64) *life {
	if hash == 0 {
		return l.find(sequence)
	}
	if e := l.lookup(sequence, hash); e != nil {
		return e
	}
	e := l.lookup(sequence, 0)
	if e != nil {
		e.hash = hash
	}
	return e
}

// full reports whether the oldest life must end before another can begin.
func (l *lives) full() bool { return l.next-l.first == livesMost }

// grow doubles the room when it is used up.
func (l *lives) grow() {
	if n := int64(len(l.slots)); l.next-l.first < n {
		return
	}
	old := *l
	size := max(livesFirst, 2*len(old.slots))
	l.slots = make([]life, size)
	if !l.anonymous {
		l.index = make([]int64, size)
	}
	for n := old.first; n < old.next; n++ {
		e := l.at(n)
		*e = *old.at(n)
		l.enter(e)
	}
}

// enter puts a life into the index.
func (l *lives) enter(e *life) {
	if l.anonymous {
		return
	}
	e.before = 0
	place := &l.index[e.sequence64&int64(len(l.index)-1)]
	if n := *place - 1; n >= l.first {
		e.before = uint32(e.number - n)
	}
	*place = e.number + 1
}

// begin opens the life of a message, in the memory of an ended one. There must be room: see full.
func (l *lives) begin(sequence int64, hash uint64) *life {
	l.grow()
	e := l.at(l.next)
	*e = life{} // a literal with fields would be made elsewhere and copied
	e.number, e.hash, e.sequence64, e.sequence = l.next, hash, sequence, uint32(uint16(sequence))
	l.enter(e)
	l.next++
	return e
}

// oldest returns the oldest open life, or nil.
func (l *lives) oldest() *life {
	if l.first == l.next {
		return nil
	}
	return l.at(l.first)
}

// newestEnded returns a sequence up to which lives may have ended.
func (l *lives) newestEnded() int64 {
	if e := l.oldest(); e != nil && l.first > 0 {
		return e.sequence64
	}
	if l.first == 0 {
		return -1
	}
	return 1<<63 - 1
}

// clone returns an independent copy.
func (l *lives) clone() lives {
	c := *l
	c.slots = make([]life, len(l.slots))
	c.index = append([]int64(nil), l.index...)
	for n := l.first; n < l.next; n++ {
		e := c.at(n)
		*e = *l.at(n)
		if e.details != nil {
			m := *e.details
			m.body = append([]byte(nil), m.body...)
			e.details = &m
		}
	}
	return c
}
