package tracker

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// lives holds the data packets of one lane whose lives are open, by age. It
// also keeps ended lives while there is room, for late acknowledgements. Its
// memory is bounded: when too many lives are open, the oldest one ends.
type lives struct {
	slots []life // life n is at n mod len
	// The index has, by hash of the id, the newest life. Ids rise in even steps, which depend on the number of the
	// sender's peers. The chain has, at n mod len, the life before life n in the same slot of the index. Both have
	// the id beside the number: a search for a new id then reads no life. Most lives lie far from the processor.
	index, chain []link
	first        int64 // number of the oldest open life
	next         int64 // number of the next life
	// forgot is one more than the highest id whose life is no longer in memory.
	forgot int64
	spare  []*rare
}

// link is a life's number plus one, then the 16 bits of its id; 0 if there is no life.
type link uint64

const (
	// linkBits is the size of an id in a link, in bits.
	// Source: law, ids of 16 bits with their mark
	linkBits = 16
)

func linkOf(n int64, id uint16) link { return link(n+1)<<linkBits | link(id) }

// number returns the number of the life, or -1 if there is none.
func (k link) number() int64 { return int64(k>>linkBits) - 1 }

// life is what is known of one data packet.
type life struct {
	number   int64
	id64     int64
	at       machine.Instant // of its first copy; lastAt is of its newest
	lastAt   machine.Instant
	interval time.Duration // between its last two copies; 0 while there is one copy
	ack      lifeAck
	frame    machine.Ref // of its first copy
	rare     *rare       // what few packets have; nil if this one has none of it
	sum      uint32
	size     int32 // bytes of data on the wire
	tally    tally
	id       uint16
	flags    uint8
	command  uint8
	odd      bool // command contradicts the id
	doubtful bool // it may be foreign: nothing has acknowledged it
	gaveUp   bool // its sender seems to have given it up
	ignored  bool // a copy of it came long after its acknowledgement
	recalled bool // it may be a further copy of a packet whose life is no longer in memory
	behind   bool // a newer id had passed before it
	reused   bool // another packet of the lane had its id
	earlier  bool // a copy of it may have been sent before the capture began
	unsure   bool // the delay from the tap to its sender is unknown, so crossed or lost is a guess
}

// lifeAck holds the acknowledgements of a packet. It is zero when there is
// none.
type lifeAck struct {
	at   machine.Instant // when the first one passed
	last machine.Instant // when the newest one passed
	ref  machine.Ref     // the frame of the first one
}

// tally counts the copies of a packet and their acknowledgements. It keeps
// these invariants: doubled < copies; crossed + ackLost ≤ copies; arrived ≤
// acks, except on a stream.
type tally struct {
	copies  int32
	doubled int32 // of copies: those that the network seems to have made
	acks    int32
	arrived int32 // copies handed to the application
	crossed int32 // copies sent while an acknowledgement was on its way to the sender
	ackLost int32 // copies sent because an acknowledgement did not reach the sender
}

// rare is what few packets have. It keeps lives small.
type rare struct {
	// frames are those of the copies after the first. Entries beyond their number are stale.
	frames [machine.MessageFrames - 1]machine.Ref
	// overtaken is when another ordered packet was sent while this one was in
	// flight. Its at is 0 if that did not happen.
	overtaken struct {
		at  machine.Instant
		ref machine.Ref
	}
}

const (
	// livesFirst is how many packets a ring of lives has room for when it is first
	// used.
	// Source: bound, the first size of a ring
	livesFirst = 2
	// livesMost is how many packets a ring of lives holds before the oldest one's
	// life must end.
	// Source: bound, the packets that are not settled
	livesMost = 4096
)

func (l *lives) at(n int64) *life { return &l.slots[n&int64(len(l.slots)-1)] }

// kept returns the number of the oldest life that is still in memory, open or
// ended.
func (l *lives) kept() int64 { return max(0, l.next-int64(len(l.slots))) }

// find returns the newest life with an id, or nil when there is none.
func (l *lives) find(id uint16) *life {
	if len(l.index) == 0 {
		return nil
	}
	return l.walk(l.index[srdp.Home(id, len(l.index)-1)], id)
}

// older returns the life before e with the same id.
func (l *lives) older(e *life) *life { return l.walk(*l.linked(e.number), e.id) }

// linked returns the place in the chain of life n.
func (l *lives) linked(n int64) *link { return &l.chain[n&int64(len(l.chain)-1)] }

func (l *lives) walk(k link, id uint16) *life {
	for kept := l.kept(); ; {
		n := k.number()
		switch {
		case n < kept:
			return nil
		case uint16(k) == id:
			return l.at(n)
		}
		k = *l.linked(n)
	}
}

// firsts grades the claim that the first copy of a life is the packet's first.
func (e *life) firsts() machine.Certainty {
	if e.recalled || e.earlier {
		return machine.Likely
	}
	return machine.Certain
}

// handed grades the claim that the first acknowledgement of a life shows a copy
// that was handed over. A packet with a flag may have been handed over before.
func (e *life) handed() machine.Certainty {
	if e.flags == 0 && !e.recalled {
		return machine.Certain
	}
	if e.reused {
		return machine.Likely // its receiver may know it by its id alone
	}
	return e.firsts()
}

// open reports whether a life has not ended.
func (l *lives) open(e *life) bool { return e.number >= l.first }

// full reports whether the oldest life must end before another can begin.
func (l *lives) full() bool { return l.next-l.first == livesMost }

// begin opens a life and reuses the memory of an ended one. The caller must end
// a life first when full reports true.
func (l *lives) begin(id uint16, id64 int64) *life {
	if n := int64(len(l.slots)); l.next-l.first == n {
		l.grow()
	}
	e := l.at(l.next)
	if l.next >= int64(len(l.slots)) && !e.doubtful {
		l.forgot = max(l.forgot, e.id64+1)
	}
	if e.rare != nil {
		l.spare = append(l.spare, e.rare)
	}
	*e = life{number: l.next, id: id, id64: id64}
	l.enlist(e)
	l.next++
	return e
}

// enlist adds a life to the index.
func (l *lives) enlist(e *life) {
	newest := &l.index[srdp.Home(e.id, len(l.index)-1)]
	*l.linked(e.number), *newest = *newest, linkOf(e.number, e.id)
}

// copied counts another copy of a packet and records its frame.
func (l *lives) copied(e *life, frame machine.Ref) {
	frames := &l.rare(e).frames
	if i := int(e.tally.copies) - 1; i < len(frames) {
		frames[i] = frame
	}
	e.tally.copies++
}

// overtake notes that a later ordered packet was sent while a packet was in flight. Only the first one counts.
func (l *lives) overtake(e, by *life) {
	if over := &l.rare(e).overtaken; over.at == 0 {
		over.at, over.ref = by.at, by.frame
	}
}

// rare returns what few packets have, for a packet that now has some of it.
func (l *lives) rare(e *life) *rare {
	if e.rare == nil {
		if n := len(l.spare); n > 0 {
			e.rare, l.spare = l.spare[n-1], l.spare[:n-1]
			e.rare.overtaken.at = 0
		} else {
			e.rare = new(rare)
		}
	}
	return e.rare
}

// grow doubles the capacity.
func (l *lives) grow() {
	old := *l
	size := max(livesFirst, 2*len(old.slots))
	l.slots, l.index, l.chain = make([]life, size), make([]link, size), make([]link, size)
	for n := old.kept(); n < old.next; n++ {
		e := l.at(n)
		*e = *old.at(n)
		l.enlist(e)
	}
}

// oldest returns the oldest open life, or nil when there is none.
func (l *lives) oldest() *life {
	if l.first == l.next {
		return nil
	}
	return l.at(l.first)
}

func (l *lives) clone() lives {
	c := *l
	c.slots = slices.Clone(l.slots)
	c.index, c.chain = slices.Clone(l.index), slices.Clone(l.chain)
	c.spare = nil
	for i := range c.slots {
		if known := c.slots[i].rare; known != nil {
			r := *known
			c.slots[i].rare = &r
		}
	}
	return c
}

// attempts returns how often the sender sent the packet, as far as the tap
// shows.
func (t *tally) attempts() int32 { return t.copies - t.doubled }

// newest returns the frame of the newest copy that is listed.
func (e *life) newest() machine.Ref { return e.nth(e.tally.copies) }

// nth returns the frame of copy n, counted from 1. Beyond the list it returns
// the newest listed frame.
func (e *life) nth(n int32) machine.Ref {
	if n = min(n, e.tally.copies); n <= 1 {
		return e.frame
	}
	return e.rare.frames[min(int(n)-2, len(e.rare.frames)-1)]
}
