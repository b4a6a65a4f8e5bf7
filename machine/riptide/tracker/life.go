package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// life is what is known of one message. There is one for each message of the last
// seconds, and it is touched again when it ends, so it is kept small: what few
// messages need stands in more.
//
//	1 ≤ number-before where before is not 0
type life struct {
	identity
	copies   copies
	answers  answers
	sender   atSender
	receiver atReceiver

	number    int64             // among the lives of its side and mode
	before    uint32            // how many lives ago the one before it at its place of the index began; 0 for none
	certainty machine.Certainty // of what both ends made of it
	clash     bool              // another message has the same sequence
	behind    bool              // its stream was left with a hole before it: it has not come
	details   *details          // nil for none
}

// identity is what a message says of itself, the same in each copy.
type identity struct {
	sequence64 int64 // unwrapped
	hash       uint64
	sequence   uint32
	bits       int32  // of the body
	id         uint16 // of a user's message, where idBits is not 0
	client     uint16 // that the message names, of the protocol's own ones
	mode       machine.Mode
	kind       wire.Type
	idBits     uint8
	bodyBit    uint8 // where the body begins in the first byte of more.body
}

// copies are the times at which a message passed the tap: 1 ≤ count, and first is
// that of the first of them.
type copies struct {
	first    machine.Instant
	last     machine.Instant
	frame    machine.Ref // of the first copy
	count    int32
	smoothed int32 // its sender's smoothed RTT when it was first sent, ms; negative unknown
}

// timer returns after what time its sender had it due again, when it was first sent.
func (c *copies) timer() time.Duration { return riptide.ResendAfter(int(c.smoothed)) }

// answers is what Acks say of a message, by their documented meaning: first and
// silence count once count is not 0.
type answers struct {
	first   machine.Instant // when the first Ack of its own passed
	silence time.Duration   // for how long the peer had said nothing before that
	last    machine.Instant // when a near receiver last acked it; 0 for never
	count   int32           // Acks that answer it, as they passed the tap
	named   bool            // an Ack names it
	byBit   bool            // one of another message did, before any of its own
	passed  bool            // one that reaches beyond it did not, before any of its own
}

// take takes an Ack of its own, before which the peer had been silent for a time.
func (a *answers) take(at machine.Instant, silence time.Duration) {
	if a.count++; a.count == 1 {
		a.first, a.silence = at, silence
	}
}

// atSender is what the library of a message's sender makes of it: at and by are 0
// while acked is Unanswered.
type atSender struct {
	at      machine.Instant // when the Ack passed that decided it
	by      machine.Ref
	acked   machine.Answer
	byCause bool // that Ack answers it
	forgot  bool // the library gave it up
	merged  bool // its sequence is not its own: ids of several peers OR-ed (2.1.0)
	waits   bool // its sender has sent it again after an Ack of its id: it waits for another
}

// decide notes the Ack that decides whether it was acked.
func (x *atSender) decide(acked machine.Answer, at machine.Instant, by machine.Ref) {
	x.acked, x.at, x.by = acked, at, by
}

// atReceiver is what the library of its receiver makes of it: 0 ≤ times, and at and by
// are 0 while delivered is Unanswered and times is 0.
type atReceiver struct {
	at        machine.Instant // when passed what shows it
	by        machine.Ref
	times     int32 // how often it was handed over
	delivered machine.Answer
	taken     bool // by the window of a far receiver, as its Acks show it
	refused   bool // by the window, though never taken
	attested  bool // Acks tell of its arrival by their documented meaning, as they would to a tap anywhere
}

// took notes that it was handed over once more, as a frame shows.
func (x *atReceiver) took(at machine.Instant, by machine.Ref) {
	x.delivered, x.at, x.by = machine.Yes, at, by
	x.times++
}

// details is what few lives need, and what only the telling of them needs.
type details struct {
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

// lastFrame returns the frame of the newest copy that is listed.
func (e *life) lastFrame() machine.Ref {
	if e.copies.count == 1 {
		return e.copies.frame
	}
	return e.details.frames[min(int(e.copies.count), machine.MessageFrames)-2]
}

// wait returns the time between its last two copies.
func (e *life) wait() time.Duration {
	if e.details == nil {
		return 0
	}
	return e.details.wait
}

// held reports whether an Ack that clears its id was kept back, since it may be
// pending under another.
func (e *life) held() bool { return e.details != nil && e.details.heldRef != 0 }

// message tells it, of the side that sent it.
func (e *life) message(from machine.Side) machine.Message {
	m := machine.Message{
		From: from, Mode: e.mode, Channel: -1, ID: -1, IDBits: e.idBits, Type: uint32(e.kind), Bits: int(e.bits),
		Sequence: e.sequence, Sequence64: e.sequence64, Attempts: int(e.copies.count), At: e.copies.first,
		Acked: e.sender.acked, AckedAt: e.sender.at, AckedBy: e.sender.by, Named: e.answers.named,
		Delivered: e.receiver.delivered, Deliveries: int(e.receiver.times), DeliveredAt: e.receiver.at,
		DeliveredBy: e.receiver.by,
		BlockedBy:   -1, Certainty: e.certainty,
	}
	if e.idBits > 0 {
		m.ID = int64(e.id)
	}
	if e.mode == machine.ModeInternal {
		m.Name = e.kind.String()
	}
	m.Frames[0] = e.copies.frame
	if e.details != nil {
		copy(m.Frames[1:], e.details.frames[:])
		if len(e.details.body) > 0 {
			m.Body, m.BodyBit = e.details.body, e.bodyBit
		}
	}
	return m
}
