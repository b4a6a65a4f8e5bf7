package machine

import "time"

// Mode says what a message was promised. Its words are a closed list (spec/contract.md).
type Mode uint8

const (
	ModeUnreliable Mode = iota // sent once; may be lost
	ModeReliable               // sent until it is acked
	ModeNotify                 // sent once, its fate is told
	ModeInternal               // the protocol's own
)

var modeWords = [...]string{"unreliable", "reliable", "notify", "internal"}

func (m Mode) String() string {
	if int(m) < len(modeWords) {
		return modeWords[m]
	}
	return "unknown"
}

// Answer is a yes or no that a capture may not give. Its words are a closed
// list (spec/contract.md).
type Answer uint8

const (
	Unanswered Answer = iota
	No
	Yes
)

var answerWords = [...]string{"unknown", "no", "yes"}

func (a Answer) String() string { return answerWords[a] }

// MessageFrames bounds the frames that a Message lists.
const MessageFrames = 16

// Message is the life of one message, told once nothing more can happen to it,
// or when the capture ends.
type Message struct {
	From    Side
	Mode    Mode
	Channel int // -1 where the protocol has none
	// ID is the message's own number, unwrapped; IDBits of it travel. -1 where it has none.
	ID     int64
	IDBits uint8
	Type   uint32
	Name   string // of the type, where a schema names it
	Bits   int    // of the body
	Block  int    // bytes of the block that it carries; 0 for none

	// Sequence is that of the packet which first carried it, Attempts counts the
	// packets that did, Frames lists the first of their frames.
	Sequence   uint32
	Sequence64 int64
	Attempts   int
	Frames     [MessageFrames]Ref
	At         Instant // when it was first sent

	// What its sender learned.
	Acked   Answer
	AckedAt Instant
	AckedBy Ref // the frame that told it
	// Named tells whether an ack that names it by its documented meaning passed
	// the tap, whatever the sender's library made of that.
	Named bool

	// What became of it at the receiver. Deliveries above 1 mean that the
	// application got it again.
	Delivered   Answer
	Deliveries  int
	DeliveredAt Instant
	DeliveredBy Ref // the frame that brought what was missing
	// Wait is how long it lay complete while BlockedBy, an earlier message, was
	// missing: head-of-line blocking.
	Wait      time.Duration
	BlockedBy int64 // -1 for none

	Certainty Certainty // of Delivered
	// Body is its body, from bit BodyBit of the first byte on: as it stood in its
	// packet, since bodies may align to whole bytes of that. Data is its block.
	// Both are nil where the tracker does not keep them.
	Body    []byte
	BodyBit uint8
	Data    []byte
}
