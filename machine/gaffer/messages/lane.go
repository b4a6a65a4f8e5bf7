package messages

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// What is kept at most of one direction of a channel.
const (
	// livesMost is how many ids of messages that are not settled a Lane keeps.
	// Source: bound, the messages that are not settled
	livesMost = 4096
	// livesBehind is how many ids before the first captured one may still come if the
	// capture lacks the start.
	// Source: measured, TestMarginsGaffer
	livesBehind int64 = 64
	// bodyMost is the longest message body that a Lane keeps, in bytes.
	// Source: bound, the bytes of a body that is kept
	bodyMost = 16 << 10
	// reliableIDs is the size of a message id, in bits.
	// Source: law, the article "Reliable Ordered Messages": message ids of 16 bits
	reliableIDs = 16
	// stuckAfter is how long a message must stay unsent to count as stuck.
	// Source: definition, stuck-message: a message is stuck when it stays unsent for a second
	stuckAfter = time.Second
	// stuckPackets is how many packets its side must send without a message for the
	// message to count as stuck.
	// Source: definition, stuck-message: a message is stuck when it stays out of ten packets
	stuckPackets = 10
	// unsentNothing is the value of Lane.oldestUnsent while no message waits.
	// Source: name, no message waits
	unsentNothing = -1
	// ackSlack is how long after its sender has read the ack a message may be sent again
	// without a finding. The library takes acks to messages once a frame.
	// Source: unmeasured, message-resent-after-ack is likely at most
	ackSlack = 250 * time.Millisecond
	// copiesWithin is how long a message of yojimbo is kept once its sender has read the ack.
	// Copies of it may have yet to pass the tap. Such a copy left in the same frame as the
	// header that names the ack, or before it.
	// Source: unmeasured, a copy that passes the tap later is not counted
	copiesWithin = 2 * time.Second
)

// life is one reliable message, from the first packet that carried it to its delivery
// and its ack. The delivery is no earlier than the arrival.
type life struct {
	id        int64
	sent      machine.Span // when its first copy left, where the tap is away from its sender
	came      Receipt      // when its receiver had all of it
	inOrder   machine.Span // when its receiver had it and all before it
	content   content
	sends     sends
	ack       observation       // its sender has learned that it arrived
	readAt    machine.Instant   // when the tap knew that the sender has read the ack
	arrival   observation       // its receiver has all of it
	delivery  observation       // its receiver has delivered it
	sure      machine.Certainty // of arrival and delivery
	blockedBy int64             // the id that it waited for; -1: none
	block     *transfer
}

// content is what a message says. Until the message is read, only its id is known, or
// its id and its type.
type content struct {
	bits    int
	body    []byte
	kind    uint32
	bodyBit uint8
	typed   bool // kind is known
	read    bool // all of it is known
}

// sends are the packets that carried a message. The first ones are listed by frame and
// sequence. 0 ≤ came ≤ min(count, len(frames)).
type sends struct {
	count      int // 0: none passed the tap
	frames     [machine.MessageFrames]machine.Ref
	packets    [machine.MessageFrames]uint16 // their sequences
	came       int                           // which of the listed packets brought it, from 1; 0: none of them
	at         machine.Instant               // of the first one
	sequence64 int64
	sequence   uint32
	lastRef    machine.Ref // of the newest one
	lastAt     machine.Instant
	number     int64 // of that packet, unwrapped
	counted    bool  // no packet that did not pass the tap can have carried it
}

// observation is something that the capture shows: when, and by which frame.
type observation struct {
	shown bool
	at    machine.Instant
	by    machine.Ref
}

// Lane is one direction of one reliable-ordered channel: what its sender sent, and what
// its receiver therefore has.
//
//	base          next (receiver)              top
//	 |  settled    |  arrived, but held         |
//	 v             v  by the id at next         v
//	[life][life]..[    ][life][life]...........[life]
type Lane struct {
	Channel int
	From    machine.Side
	Config  *wire.YojimboChannel
	// Resend is the policy that the sender is held to, and Evidence what its packets show
	// of it. Evidence is nil if it is not collected. Only the article's scheme by id has
	// either.
	Resend   ResendRule
	Evidence *ResendEvidence
	Copies   time.Duration // how long copies may follow the header that names a message's ack
	// Doubtful says that packets may carry other messages of the lane than were read. Then what
	// is found of it is at most likely.
	Doubtful bool

	Started bool
	Fresh   bool // known from its first message on
	first   int64
	Base    int64
	Top     int64
	lives   []life // from Base on
	room    []life // what lives is cut from, to its whole capacity
	settled int    // of lives, the first ones that are settled: only copies of them may still pass

	next      int64 // id that the receiver delivers next
	nextKnown machine.Certainty

	inOrder      machine.Span    // when the receiver had all that is delivered
	near         bool            // the tap is at the sender, as its newest packet shows
	topSent      machine.Span    // when the present top was first sent
	topMissing   int64           // packets of the sender that had not passed the tap by then
	topAt        machine.Instant // when the present top was first carried
	topNumber    int64           // by which packet, unwrapped
	oldestUnsent int64           // the id below top that no packet has carried yet; unsentNothing for none
	unsentSince  machine.Instant
	unsentFor    int // packets with later messages since
	stuckTold    bool

	acked    int64 // newest id whose ack the sender has read
	ackedAny bool

	delivered uint64
	carried   uint64
	resent    uint64 // sends of messages that an earlier packet had carried
	distinct  uint64 // messages; repeated counts those that went out more than once, in part or whole
	repeated  uint64
	needless  uint64
}

// Unwrap returns the id with the low 16 bits w that is nearest to the newest id.
func (c *Lane) Unwrap(w uint16) int64 {
	if !c.Started {
		return int64(w)
	}
	return c.Top + int64(int16(w-uint16(c.Top)))
}

// atMost returns the certainty of what the lane's messages show.
func (c *Lane) atMost(sure machine.Certainty) machine.Certainty {
	if c.Doubtful {
		return min(sure, machine.Likely)
	}
	return sure
}

// begin sets the window at the first id that passes the tap.
func (c *Lane) begin(id int64) {
	c.Started, c.Top, c.first, c.Base = true, id, id, id-livesBehind
	c.oldestUnsent = unsentNothing
	if c.Fresh && id < int64(c.Config.ReceiveQueue) {
		c.first, c.Base = 0, 0
		c.next, c.nextKnown = 0, machine.Certain
	} else {
		c.Fresh = false
	}
	c.inOrder = none.Read
	if !c.Fresh {
		c.inOrder.Certainty = machine.Likely // what came before the capture may have been missing
	}
}

// begun reports whether no packet before the capture can have carried a message.
func (c *Lane) begun(id int64) bool { return c.Fresh || c.late(id) }

// late reports whether a message is so new that the first packet of the capture came before it.
func (c *Lane) late(id int64) bool { return id-c.first > livesBehind }

// carry records that a packet carries a message.
func (c *Lane) carry(id int64, k *Carrier, out *machine.Effects) *life {
	if !c.Started {
		c.begin(id)
		c.topSent, c.topMissing = k.sent(), k.Missing
	}
	l := c.get(id, out)
	c.near = k.Near
	sent := c.sent(id, l, k)
	if id > c.Top {
		c.skip(id, k)
		c.Top, c.topAt, c.topNumber, c.topSent, c.topMissing = id, k.At, k.Sequence64, sent, k.Missing
	}
	c.carried++
	if l == nil {
		c.resent++
		return nil
	}
	if l.sends.count == 0 {
		c.distinct++
		l.sends.at, l.sends.sequence, l.sends.sequence64 = k.At, k.Sequence, k.Sequence64
		l.sent = sent
	} else {
		c.resent++
		if l.sends.count == 1 && l.block == nil { // a block takes several packets
			c.repeated++
		}
		if l.ack.shown && k.Near && k.At.Sub(l.readAt) > ackSlack {
			// An earlier header of the sender proves that it had read the ack.
			out.At(k.At, k.Ref).Report(MessageResentAcked, c.From, machine.Likely, l.ack.by,
				machine.Milliseconds(k.At.Sub(l.ack.at)), float64(c.Channel), float64(id))
		}
	}
	if l.sends.count < machine.MessageFrames {
		l.sends.frames[l.sends.count], l.sends.packets[l.sends.count] = k.Ref, uint16(k.Sequence)
	}
	l.sends.count++
	l.sends.lastRef, l.sends.lastAt, l.sends.number = k.Ref, k.At, k.Sequence64
	return l
}

// Watch looks for an id that its sender skips. When a packet carries messages of this
// channel, it checks the oldest id that no packet has carried. Is that id still
// missing?
func (c *Lane) Watch(k *Carrier, whole bool, out *machine.Effects) {
	if c.oldestUnsent != unsentNothing {
		if l := c.find(c.oldestUnsent); l == nil || l.id < c.open() || l.sends.count > 0 {
			c.oldestUnsent, c.stuckTold = unsentNothing, false
		}
	}
	if c.oldestUnsent == unsentNothing {
		for i := range c.lives[c.settled:] {
			if l := &c.lives[c.settled+i]; l.sends.count == 0 && l.id >= c.first && l.id < c.Top {
				c.oldestUnsent, c.unsentSince, c.unsentFor = l.id, k.At, 0
				break
			}
		}
		return
	}
	c.unsentFor++
	if c.stuckTold || c.unsentFor < stuckPackets || k.At.Sub(c.unsentSince) < stuckAfter {
		return
	}
	c.stuckTold = true
	sure := machine.Likely
	if whole {
		sure = c.atMost(machine.Certain)
	}
	out.At(k.At, k.Ref).Report(MessageStuck, c.From, sure, 0, float64(c.oldestUnsent), float64(c.Channel),
		float64(c.Top-c.oldestUnsent))
}

// arrive records that the receiver has accepted a packet that carried a message, and r when.
func (c *Lane) arrive(id int64, e *machine.Event, r Receipt, whole machine.Instant) {
	l := c.find(id)
	if l == nil || l.arrival.shown {
		return
	}
	if c.nextKnown == machine.Certain && id >= c.next+int64(c.Config.ReceiveQueue) {
		return // beyond the receive queue: dropped
	}
	if l.block != nil {
		if !l.block.complete {
			return
		}
		r = l.block.came
	} else {
		r = r.of(e, l.sends.sequence, l.sends.at, whole)
	}
	if l.came = r.atMost(e.Certainty); !c.begun(id) {
		l.came = l.came.atMost(machine.Likely)
	}
	l.arrival.shown, l.arrival.at, l.arrival.by, l.sure = true, e.At, e.About, c.atMost(e.Certainty)
	for i := range min(l.sends.count, machine.MessageFrames) {
		if l.sends.packets[i] == uint16(e.Sequence) {
			l.sends.came = i + 1
		}
	}
	if c.nextKnown == machine.Unknown {
		// The start was not captured. Most likely the oldest message of the first packet is
		// the next one.
		c.next, c.nextKnown = id, machine.Likely
	}
	if id != c.next {
		l.blockedBy = c.next
	}
}

// deliver delivers all messages that are in order now.
func (c *Lane) deliver(e *machine.Event, out *machine.Effects) {
	for c.nextKnown != machine.Unknown {
		l := c.find(c.next)
		if l == nil || !l.arrival.shown || l.delivery.shown {
			return
		}
		l.delivery.shown, l.delivery.at, l.delivery.by = true, e.At, e.About
		l.sure = c.atMost(min(l.sure, c.nextKnown, e.Certainty))
		if l.came.Read.Known() {
			c.inOrder = later(c.inOrder, l.came.Read)
			l.inOrder = c.inOrder
		} else {
			c.inOrder.Certainty = min(c.inOrder.Certainty, machine.Likely)
		}
		c.delivered++
		c.next++
		out.Events = append(out.Events, machine.Event{
			Kind: machine.EventDelivered, Side: c.From.Other(), Certainty: l.sure, Sequence: uint32(uint16(l.id)),
			Sequence64: l.id,
			At:         e.At, Ref: e.Ref, About: l.arrival.by, RTT: -1,
		})
	}
}

// Ack records that the sender has read the ack of a packet that carried the message. The
// tap knows it by now.
func (c *Lane) Ack(id int64, e *machine.Event, now machine.Instant) {
	l := c.find(id)
	if l == nil || l.ack.shown {
		return
	}
	if l.block != nil && !l.block.allAcked() {
		return
	}
	l.ack.shown, l.ack.at, l.ack.by, l.readAt = true, e.At, e.By, now
	if c.Evidence != nil {
		c.Evidence.acked(&l.sends, l.content.bits+reliableIDs)
	}
	if !c.ackedAny || id > c.acked {
		c.acked, c.ackedAny = id, true
	}
}

// report reports the message of a life, and what the rules find about it.
func (c *Lane) report(l *life, out *machine.Effects) {
	if l.sends.count == 0 {
		return
	}
	l.sure = c.atMost(l.sure) // the lane may have become doubtful since
	m := machine.Message{
		From: c.From, Mode: machine.ModeReliable, Channel: c.Channel, ID: l.id, IDBits: reliableIDs,
		Type: l.content.kind, Untyped: !l.content.typed, Bits: l.content.bits,
		Sequence: l.sends.sequence, Sequence64: l.sends.sequence64,
		Attempts: l.sends.count, Frames: l.sends.frames, At: l.sends.at,
		BlockedBy: l.blockedBy, Body: l.content.body, BodyBit: l.content.bodyBit,
		Sent: shown(l.sent, c.atMost(machine.Certain)),
	}
	if c.near && !m.Sent.Known() {
		m.Sent = machine.At(m.At, machine.Likely) // the tap had not been placed yet
	}
	if l.arrival.shown {
		most := c.atMost(machine.Certain)
		m.Arrived, m.Estimate = shown(l.came.Read, most), shown(l.came.Estimate, most)
	}
	if !l.content.read {
		m.Bits = -1
	}
	if l.ack.shown {
		m.Acked, m.AckedAt, m.AckedBy = machine.Yes, l.ack.at, l.ack.by
	}
	if l.block != nil {
		l.block.stalled(c, l, out)
		m.Block, m.Data = l.block.bytes, l.block.data()
		m.Parts, m.Repeats = len(l.block.parts), l.block.resends
	}
	if l.delivery.shown {
		m.Delivered, m.Deliveries, m.DeliveredAt, m.Certainty = machine.Yes, 1, l.delivery.at, l.sure
		m.DeliveredBy = l.delivery.by
		m.InOrder = shown(l.inOrder, l.sure)
		if m.Wait = l.delivery.at.Sub(l.arrival.at); m.Wait == 0 {
			m.BlockedBy = -1 // that message came with the same packet
		} else {
			out.At(l.delivery.at, l.delivery.by).Report(headOfLine, c.From.Other(), l.sure, l.arrival.by,
				machine.Milliseconds(m.Wait), float64(l.id), float64(l.blockedBy))
		}
	}
	if needless := l.sends.count - l.sends.came; l.sends.came > 0 && needless > 0 && l.block == nil {
		c.needless += uint64(needless)
		out.At(l.delivery.at, l.sends.lastRef).Report(MessageNeedless, c.From, l.sure, l.arrival.by, float64(needless),
			float64(c.Channel), float64(l.id))
	}
	out.Messages = append(out.Messages, m)
}

// Finish reports what is still open.
func (c *Lane) Finish(out *machine.Effects) {
	for i := range c.lives {
		c.report(&c.lives[i], out)
	}
	c.Base += int64(len(c.lives))
	c.lives, c.room, c.settled = nil, nil, 0
}
