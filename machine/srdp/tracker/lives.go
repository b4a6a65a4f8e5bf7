package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// lives holds the data packets of one lane whose lives are open, by age, and as
// many that have ended as there is room for: late acknowledgements find them. Its
// memory is bounded: where too many are open, the oldest ends.
type lives struct {
	slots []life // of life n: n mod len
	// number of the newest life by the home of its id, plus one: ids step evenly, by as many peers as there are
	index []int64
	first int64 // number of the oldest open life
	next  int64 // number of the next one
	spare []*copyFrames
}

// life is what is known of one data packet.
type life struct {
	number   int64
	before   int64 // number of the life before it at its place of the index, plus one; 0 for none
	id64     int64
	at       machine.Instant // of its first copy, lastAt of its newest
	lastAt   machine.Instant
	interval time.Duration // between its last two copies; 0 while there is one
	ack      lifeAck
	// overtaken is when another ordered packet was sent while this one was in
	// flight; at is 0 for never.
	overtaken struct {
		at  machine.Instant
		ref machine.Ref
	}
	frame    machine.Ref // of its first copy
	again    *copyFrames // of the others; what it says of more than there are is of no use
	sum      uint32
	size     int32 // bytes of data on the wire
	tally    tally
	id       uint16
	flags    uint8
	command  uint8
	odd      bool // command contradicts the id
	doubtful bool // it may be foreign: nothing has answered it
	gaveUp   bool // its sender seems to have given it up
	ignored  bool // a copy of it came long after its acknowledgement
	unsure   bool // the way from the tap to its sender is not known: crossed or lost is a guess
}

// lifeAck are the acknowledgements of a packet; zero where there is none.
type lifeAck struct {
	at   machine.Instant // of the first one
	last machine.Instant // of the newest
	ref  machine.Ref     // the frame of the first one
}

// tally counts the copies of a packet, and the acknowledgements of them.
// doubled < copies; crossed + ackLost ≤ copies; arrived ≤ acks, but on a stream.
type tally struct {
	copies  int32
	doubled int32 // of them, those that the network seems to have made
	acks    int32
	arrived int32 // copies handed over
	crossed int32 // copies sent while an acknowledgement was on its way to the sender
	ackLost int32 // copies sent because an acknowledgement did not reach the sender
}

// copyFrames are those of a packet's copies after the first.
type copyFrames [machine.MessageFrames - 1]machine.Ref

const (
	livesFirst = 2
	livesMost  = 4096
)

func (l *lives) at(n int64) *life { return &l.slots[n&int64(len(l.slots)-1)] }

// kept returns the number of the oldest life that is still there, open or ended.
func (l *lives) kept() int64 { return max(0, l.next-int64(len(l.slots))) }

// find returns the newest life with an id; nil for none.
func (l *lives) find(id uint16) *life {
	if len(l.index) == 0 {
		return nil
	}
	return l.walk(l.index[srdp.Home(id, len(l.index)-1)], id)
}

// older returns the life before e with the same id.
func (l *lives) older(e *life) *life { return l.walk(e.before, e.id) }

func (l *lives) walk(n int64, id uint16) *life {
	for n--; n >= l.kept(); {
		e := l.at(n)
		if e.id == id {
			return e
		}
		n = e.before - 1
	}
	return nil
}

// open reports whether a life has not ended.
func (l *lives) open(e *life) bool { return e.number >= l.first }

// full reports whether the oldest life must end before another can begin.
func (l *lives) full() bool { return l.next-l.first == livesMost }

// begin opens a life, in the memory of one that has ended. There must be room:
// see full.
func (l *lives) begin(id uint16, id64 int64) *life {
	if n := int64(len(l.slots)); l.next-l.first == n {
		l.grow()
	}
	e := l.at(l.next)
	if e.again != nil {
		l.spare = append(l.spare, e.again)
	}
	*e = life{number: l.next, id: id, id64: id64}
	place := &l.index[srdp.Home(id, len(l.index)-1)]
	e.before, *place = *place, l.next+1
	l.next++
	return e
}

// copied counts another copy of a packet, and notes its frame.
func (l *lives) copied(e *life, frame machine.Ref) {
	if e.again == nil {
		if n := len(l.spare); n > 0 {
			e.again, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			e.again = new(copyFrames)
		}
	}
	if i := int(e.tally.copies) - 1; i < len(e.again) {
		e.again[i] = frame
	}
	e.tally.copies++
}

// grow doubles the room.
func (l *lives) grow() {
	old := *l
	size := max(livesFirst, 2*len(old.slots))
	l.slots, l.index = make([]life, size), make([]int64, size)
	for n := old.kept(); n < old.next; n++ {
		e := l.at(n)
		*e = *old.at(n)
		place := &l.index[srdp.Home(e.id, size-1)]
		e.before, *place = *place, n+1
	}
}

// oldest returns the oldest open life; nil for none.
func (l *lives) oldest() *life {
	if l.first == l.next {
		return nil
	}
	return l.at(l.first)
}

func (l *lives) clone() lives {
	c := *l
	c.slots = append([]life(nil), l.slots...)
	c.index = append([]int64(nil), l.index...)
	c.spare = nil
	for i := range c.slots {
		if again := c.slots[i].again; again != nil {
			f := *again
			c.slots[i].again = &f
		}
	}
	return c
}

// attempts returns how often the sender sent it, as far as that can be told.
func (t *tally) attempts() int32 { return t.copies - t.doubled }

// newest returns the frame of its newest copy that is listed.
func (e *life) newest() machine.Ref { return e.nth(e.tally.copies) }

// nth returns the frame of a copy, counted from 1; of the newest listed beyond.
func (e *life) nth(n int32) machine.Ref {
	if n = min(n, e.tally.copies); n <= 1 {
		return e.frame
	}
	return e.again[min(int(n)-2, len(e.again)-1)]
}
