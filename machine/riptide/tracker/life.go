package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// life is what is known of one message, from its first copy to its end. There is one for each
// message of the last seconds, and ending it touches it again, so it is small. Fields that few
// messages need are in details.
//
//   - 1 ≤ number-before where before is not 0
type life struct {
	identity
	copies   copies
	answers  answers
	bounds   bounds
	sender   atSender
	receiver atReceiver

	number    int64             // index among the lives of its side and mode
	before    uint32            // number minus that of the previous life at this place of the index; 0 for none
	certainty machine.Certainty // of what both ends concluded
	clash     bool              // another message has the same sequence
	behind    bool              // a hole in the stream before it was never filled, so it has not arrived
	later     bool              // another copy may have been sent before the first that passed
	details   *details          // nil for none
}

// identity is what a message says about itself, the same in each copy.
type identity struct {
	sequence64 int64 // unwrapped
	hash       uint64
	sequence   uint32
	bits       int32  // of the body
	id         uint16 // of a user message; valid where idBits is not 0
	client     uint16 // client id in one of the protocol's own messages
	mode       machine.Mode
	kind       wire.Type
	idBits     uint8
	bodyBit    uint8 // where the body begins in the first byte of details.body
}

// copies are the times at which a message passed the tap: 1 ≤ count, and first is the time of the
// first copy.
type copies struct {
	first    machine.Instant
	last     machine.Instant
	frame    machine.Ref // of the first copy
	count    int32
	smoothed int32 // the sender's smoothed RTT at the first copy, ms; negative if unknown
}

// timer returns the sender's resend time when it first sent the message.
func (c *copies) timer() time.Duration { return riptide.ResendAfter(int(c.smoothed)) }

// answers is what Acks say about a message, by their documented meaning. first and silence are
// valid once count is not 0.
type answers struct {
	first   machine.Instant // when the first Ack that answers it passed
	silence time.Duration   // how long the peer had sent nothing before that Ack
	last    machine.Instant // when a near receiver last acked it; 0 for never
	count   int32           // Acks at the tap that answer it
	named   bool            // an Ack names it
	byBit   bool            // a bit in another message's Ack named it, before any Ack answered it
	passed  bool            // an Ack of a newer message did not name it, before any Ack answered it
	proven  bool            // it is counted as arrived
}

// take records an Ack that answers the message. silence is how long the peer had sent nothing
// before.
func (a *answers) take(at machine.Instant, silence time.Duration) {
	if a.count++; a.count == 1 {
		a.first, a.silence = at, silence
	}
}

// atSender is what the library of a message's sender concludes. at and by are 0 while acked is
// Unanswered.
type atSender struct {
	at      machine.Instant // when the deciding Ack passed
	by      machine.Ref
	acked   machine.Answer
	byCause bool // that Ack answers this message
	forgot  bool // the library gave it up
	merged  bool // its sequence is OR-ed from ids of several peers (2.1.0)
	// The rival of the sender's window (repair.go) takes it for acked by the Ack that is processed. The
	// two have disagreed on an Ack.
	rival, disputed bool

	waits bool // its sender sent it again after an Ack of its id, so it waits for another id
}

// decide records the Ack that decides whether the message was acked.
func (x *atSender) decide(acked machine.Answer, at machine.Instant, by machine.Ref) {
	x.acked, x.at, x.by = acked, at, by
}

// atReceiver is what the library of the message's receiver does with it: 0 ≤ times. Its fields at
// and by are 0 while delivered is Unanswered and times is 0.
type atReceiver struct {
	at        machine.Instant // when the frame that shows it passed
	by        machine.Ref
	times     int32 // number of deliveries
	delivered machine.Answer
	taken     bool // by the window of a far receiver, as its Acks show it
	refused   bool // by the window, though it never took the message
	attested  bool // Acks show its arrival by their documented meaning, whatever the place of the tap
}

// took records a delivery that a frame shows.
func (x *atReceiver) took(at machine.Instant, by machine.Ref) {
	x.delivered, x.at, x.by = machine.Yes, at, by
	x.times++
}

// details holds fields that few lives need, and the frames and body for output.
type details struct {
	frames [machine.MessageFrames - 1]machine.Ref // of the copies after the first
	wait   time.Duration                          // between its last two copies
	body   []byte

	// For a merged message: the first Ack that clears its id.
	heldAt  machine.Instant
	heldRef machine.Ref
	// When its receiver first refused it, and the frame of that copy.
	refusedAt  machine.Instant
	refusedRef machine.Ref
}

const (
	// detailsAtOnce is how many details are made at a time.
	// Source: bound, the details that are made at a time
	detailsAtOnce = 8
	// bodyRoom is the room for a body that details have at first.
	// Source: bound, the memory of a body
	bodyRoom = 64
)

// detailsOf returns the details of a life, new ones if it has none.
func (t *follower) detailsOf(e *life) *details {
	if e.details != nil {
		return e.details
	}
	if len(t.free) == 0 {
		t.makeDetails()
	}
	n := len(t.free)
	e.details, t.free = t.free[n-1], t.free[:n-1]
	*e.details = details{body: e.details.body[:0]}
	t.detailCount++
	return e.details
}

// makeDetails adds some details to the free ones. The network decides how many messages need some at a time, so now
// and then there are more of them than ever before.
func (t *follower) makeDetails() {
	list, bodies := make([]details, detailsAtOnce), make([]byte, detailsAtOnce*bodyRoom)
	for i := range list {
		list[i].body = bodies[i*bodyRoom : i*bodyRoom : (i+1)*bodyRoom]
		t.free = append(t.free, &list[i])
	}
}

// lastFrame returns the frame of the newest listed copy.
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

// held reports whether an Ack that clears its id is held back, because the message may be pending
// under another id.
func (e *life) held() bool { return e.details != nil && e.details.heldRef != 0 }

// message returns the message for output. from is its sender.
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
