package machine

import (
	"strconv"
	"time"
)

// Mode is what the protocol promises for a message. Output uses a closed list
// of words for it.
type Mode uint8

const (
	ModeUnreliable Mode = iota // sent once; may be lost
	ModeReliable               // sent until it is acked
	ModeNotify                 // sent once; the application learns its fate
	ModeInternal               // a message of the protocol itself
)

var modeWords = [...]string{"unreliable", "reliable", "notify", "internal"}

func (m Mode) String() string {
	if int(m) < len(modeWords) {
		return modeWords[m]
	}
	return "unknown"
}

// Answer is a yes or no that a capture may leave open. Output uses a closed
// list of words for it.
type Answer uint8

const (
	Unanswered Answer = iota
	No
	Yes
)

var answerWords = [...]string{"unknown", "no", "yes"}

func (a Answer) String() string { return answerWords[a] }

// MessageFrames is the most frames that a Message lists.
// Source: bound, the frames that a message lists
const MessageFrames = 16

// Message is the life of one message, from its first copy to its end. A tracker
// reports it once nothing more can happen to it, or when the capture ends.
type Message struct {
	From    Side
	Mode    Mode
	Channel int // -1 when the protocol has none
	// ID is the message's own number, unwrapped. The wire carries IDBits of it.
	// ID is -1 when the message has no number.
	ID     int64
	IDBits uint8
	Type   uint32
	// Untyped reports that the packets do not show the type, or not to this configuration.
	// Type is then 0.
	Untyped bool
	Name    string // of the type, when a schema names it
	Bits    int    // of the body
	Block   int    // bytes of the block that it carries; 0 if there is none
	Parts   int    // into how many fragments or slices the block is cut; 0 for any other message

	// Sequence is that of the first packet that carried it. Attempts counts the
	// packets that carried it. Frames lists their frames, the first ones only.
	Sequence   uint32
	Sequence64 int64
	Attempts   int
	Repeats    int // of a block: packets with a part that an earlier packet had carried
	Frames     [MessageFrames]Ref
	At         Instant // when it was first sent

	// What the sender learned.
	Acked   Answer
	AckedAt Instant
	AckedBy Ref // the frame that carried the ack
	// Named reports whether an ack passed the tap that names the message by its
	// documented meaning. The sender's library may have ignored that ack.
	Named bool

	// What happened at the receiver. When Deliveries is above 1, the
	// application received the message more than once.
	Delivered   Answer
	Deliveries  int
	DeliveredAt Instant
	DeliveredBy Ref // the frame that carried the missing part
	// Wait is head-of-line blocking: how long the message was complete while an
	// earlier message, BlockedBy, was missing.
	Wait      time.Duration
	BlockedBy int64 // -1 if there is none

	Certainty Certainty // of Delivered

	// When things happened, as bounds in the time of the tap. DeliveredAt above is when the
	// delivery was proved, which is later.
	Sent    Span // its sender first sent it; at a tap at the sender that is At
	Arrived Span // the part that was missing came to its receiver's library
	InOrder Span // the receiver could hand it over in order: it and all before it had arrived
	// Estimate is a narrower span of Arrived, likely at most. It assumes that both ways take
	// equally long.
	Estimate Span
	// SentEstimate is a narrower span of Sent, in the same way. Where it is unknown, Sent is as narrow.
	SentEstimate Span

	// Body starts at bit BodyBit of its first byte, as it was in its packet:
	// bodies may align to whole bytes of the packet. Data is the block. Both
	// are nil when the tracker does not keep them.
	Body    []byte
	BodyBit uint8
	Data    []byte
}

// Again returns how many packets carried what an earlier packet had carried. Each part of a block
// takes a packet of its own.
func (m *Message) Again() int {
	if m.Parts > 0 {
		return m.Repeats
	}
	return max(0, m.Attempts-1)
}

// TypeText names the type by its number.
func (m *Message) TypeText() string {
	if m.Untyped {
		return "type unknown"
	}
	return "type " + strconv.FormatUint(uint64(m.Type), 10)
}

// Latency bounds the time from the first sending of m to its arrival. Unknown bounds are
// negative.
func (m *Message) Latency() (least, most time.Duration, c Certainty) {
	return Elapsed(&m.Sent, &m.Arrived)
}

// About is the estimate of the time from the first sending of m to its arrival: the middle
// of its bounds. It is negative if there is none.
func (m *Message) About() time.Duration {
	arrived := &m.Estimate
	if !arrived.Known() {
		arrived = &m.Arrived
	}
	sent := &m.SentEstimate
	if !sent.Known() {
		sent = &m.Sent
	}
	if !arrived.Known() || !sent.Known() {
		return -1
	}
	return max(0, arrived.Middle().Sub(sent.Middle()))
}
