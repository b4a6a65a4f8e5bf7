package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// lives holds the messages of one side and mode whose lives are open, by age.
// Its memory is bounded: where too many are open, the oldest ends.
type lives struct {
	slots []life          // of life n: n mod len
	index []int64         // number of the newest life by its sequence mod len, plus one; none where lives are not looked for
	first int64           // number of the oldest open life
	next  int64           // number of the next one
	due   machine.Instant // the oldest does not end before
	loose bool            // messages without an identity, of which none is looked for
}

// life is what is known of one message. There is one for each message of the last
// seconds, and it is touched again when it ends, so it is kept small: what few
// messages need stands in more.
//
// Fields that machine.Message has are named as there.
type life struct {
	Sequence64 int64
	hash       uint64
	number     int64
	At         machine.Instant
	lastAt     machine.Instant // when its last copy passed the tap
	frame      machine.Ref     // of its first copy
	before     uint32          // how many lives ago the one before it at its place of the index began; 0 for none
	Sequence   uint32

	Attempts   int32
	Deliveries int32
	answers    int32 // Acks that answer it, as they passed the tap
	smoothed   int32 // its sender's smoothed RTT when it was first sent, ms; negative unknown

	Acked     machine.Answer
	Delivered machine.Answer
	Certainty machine.Certainty
	Named     bool
	merged    bool // its sequence is not its own: ids of several peers OR-ed (2.1.0)
	waits     bool // its sender has sent it again after an Ack of its id: it waits for another
	clash     bool // another message has the same sequence
	forgot    bool // the library gave it up
	taken     bool // by the window of a far receiver, as its Acks show it
	refused   bool // by its receiver's window, though never taken
	byBit     bool // an Ack of another message named it before any of its own
	passed    bool // an Ack that reaches beyond it did not name it, before any of its own
	byCause   bool // the Ack that cleared it answers it
	behind    bool // its stream was left with a hole before it: it has not come
	attested  bool // Acks of the receiver tell of its arrival by their documented meaning, as they would to a tap anywhere
	From      machine.Side
	Mode      machine.Mode
	Type      wire.Type
	IDBits    uint8
	BodyBit   uint8
	ID        uint16 // where it has IDBits
	client    uint16 // that the message names, of the protocol's own ones
	Bits      int32

	AckedAt     machine.Instant
	AckedBy     machine.Ref
	DeliveredAt machine.Instant
	DeliveredBy machine.Ref
	answeredAt  machine.Instant // when a near receiver last acked it
	firstAnswer machine.Instant // when the first Ack of its own passed
	silence     time.Duration   // for how long the peer had said nothing before that

	more *more // nil for none
}

// more is what few lives need, and what only the telling of them needs.
type more struct {
	frames [machine.MessageFrames - 1]machine.Ref // of the copies after the first
	wait   time.Duration                          // between its last two copies
	body   []byte

	// Of a merged one: the first Ack that clears its id.
	heldAt  machine.Instant
	heldRef machine.Ref
	// When its receiver first refused it, and the arrival's frame.
	refusedAt  machine.Instant
	refusedRef machine.Ref
}

// lastFrame gives the frame of the newest copy that is listed.
func (e *life) lastFrame() machine.Ref {
	if e.Attempts == 1 {
		return e.frame
	}
	return e.more.frames[min(int(e.Attempts), machine.MessageFrames)-2]
}

// timer gives after what time its sender had it due again, when it was first sent.
func (e *life) timer() time.Duration { return riptide.ResendAfter(int(e.smoothed)) }

// wait gives the time between its last two copies.
func (e *life) wait() time.Duration {
	if e.more == nil {
		return 0
	}
	return e.more.wait
}

// held reports whether an Ack that clears its id was kept back, since it may be
// pending under another.
func (e *life) held() bool { return e.more != nil && e.more.heldRef != 0 }

// message tells it.
func (e *life) message() machine.Message {
	m := machine.Message{
		From: e.From, Mode: e.Mode, Channel: -1, ID: -1, IDBits: e.IDBits, Type: uint32(e.Type), Bits: int(e.Bits),
		Sequence: e.Sequence, Sequence64: e.Sequence64, Attempts: int(e.Attempts), At: e.At,
		Acked: e.Acked, AckedAt: e.AckedAt, AckedBy: e.AckedBy, Named: e.Named,
		Delivered: e.Delivered, Deliveries: int(e.Deliveries), DeliveredAt: e.DeliveredAt, DeliveredBy: e.DeliveredBy,
		BlockedBy: -1, Certainty: e.Certainty,
	}
	if e.IDBits > 0 {
		m.ID = int64(e.ID)
	}
	if e.Mode == machine.ModeInternal {
		m.Name = e.Type.String()
	}
	m.Frames[0] = e.frame
	if e.more != nil {
		copy(m.Frames[1:], e.more.frames[:])
		if len(e.more.body) > 0 {
			m.Body, m.BodyBit = e.more.body, e.BodyBit
		}
	}
	return m
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
	return l.walk(l.index[sequence&int64(len(l.index)-1)]-1, sequence)
}

// older gives the life before e with the same sequence; nil for none.
func (l *lives) older(e *life) *life {
	if e.before == 0 {
		return nil
	}
	return l.walk(e.number-int64(e.before), e.Sequence64)
}

// walk follows the lives of one place of the index, from a number on.
func (l *lives) walk(n, sequence int64) *life {
	for n >= l.first {
		e := l.at(n)
		if e.Sequence64 == sequence {
			return e
		}
		if e.before == 0 {
			return nil
		}
		n -= int64(e.before)
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
	l.slots = make([]life, size)
	if !l.loose {
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
	if l.loose {
		return
	}
	e.before = 0
	place := &l.index[e.Sequence64&int64(len(l.index)-1)]
	if n := *place - 1; n >= l.first {
		e.before = uint32(e.number - n)
	}
	*place = e.number + 1
}

// begin opens the life of a message, in the memory of one that has ended. There
// must be room: see full.
func (l *lives) begin(sequence int64, hash uint64) *life {
	l.grow()
	e := l.at(l.next)
	*e = life{number: l.next, hash: hash, Sequence64: sequence, Sequence: uint32(uint16(sequence))}
	l.enter(e)
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
		if e.more != nil {
			m := *e.more
			m.body = append([]byte(nil), m.body...)
			e.more = &m
		}
	}
	return c
}
