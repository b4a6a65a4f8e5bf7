package machine

import "time"

// Tracker rebuilds what both sides of one flow knew from the datagrams that
// passed the tap. It takes them in the order of the capture and is
// deterministic: the same datagrams cause the same effects.
type Tracker interface {
	// Observe takes the next datagram of the flow. It reports bytes that are no
	// packet of the protocol as an anomaly.
	Observe(d *Datagram, out *Effects)
	// Finish settles what is still open when the capture or the flow ends.
	Finish(out *Effects)
	// Inspect appends to v what side s knew after the last observed datagram.
	Inspect(s Side, v *View)
	// Summary returns the figures of side s so far.
	Summary(s Side) Summary
	// Learned returns what the tracker has learned about the flow. A second run
	// over the capture can start with it.
	Learned() Facts
	// Clone returns an independent copy: stepping one does not change the
	// other.
	Clone() Tracker
	// Size returns the approximate bytes of a clone, which set the spacing of
	// checkpoints.
	Size() int
}

// Releaser is a tracker that can hand its memory on to others when its flow has ended. A capture
// can have very many short flows.
type Releaser interface {
	// Release ends the tracker. It must not be used any more.
	Release()
}

// Deferrer is a tracker that may process datagrams later, in little memory until then.
type Deferrer interface {
	// Defers reports whether datagrams are held back. Once they are not, the tracker takes its full
	// memory, and stays so.
	Defers() bool
}

// Lacker is a tracker that notices by numbers when the capture lacks what a side at the tap sent.
type Lacker interface {
	Lacks(s Side) bool
}

// Ender is a tracker that concludes something from a silence at the end of its flow.
type Ender interface {
	// EndsAt says, before Finish, until when no more datagrams of the flow came. A run that
	// starts with Facts knows it beforehand: Facts.End.
	EndsAt(at Instant)
}

// Packer is a tracker that can be stored in less memory than its clone.
type Packer interface {
	// Pack returns a compact copy of the state. It uses scratch as a buffer and
	// keeps no part of it: the caller can pass it again.
	Pack(scratch *[]byte) Packed
}

// Packed is a stored copy of a tracker.
type Packed interface {
	// Unpack returns a new tracker that equals the one that was packed.
	Unpack() Tracker
	// Size returns the approximate bytes that it takes.
	Size() int
}

// Gauged is a tracker that returns single figures of its Summary at a lower
// cost than the whole Summary. Filters ask for them at every packet. Each
// equals the field of Summary that it is named after, and is negative when
// unknown.
type Gauged interface {
	RTT(s Side) time.Duration
	Loss(s Side) float64
	Sent(s Side) uint64 // Summary.Packets
}

// RTT returns Summary(s).RTT, from Gauged if t has it.
func RTT(t Tracker, s Side) time.Duration {
	if g, ok := t.(Gauged); ok {
		return g.RTT(s)
	}
	return t.Summary(s).RTT
}

// Loss returns Summary(s).Loss, from Gauged if t has it.
func Loss(t Tracker, s Side) float64 {
	if g, ok := t.(Gauged); ok {
		return g.Loss(s)
	}
	return t.Summary(s).Loss
}

// Sent returns Summary(s).Packets, from Gauged if t has it.
func Sent(t Tracker, s Side) uint64 {
	if g, ok := t.(Gauged); ok {
		return g.Sent(s)
	}
	return t.Summary(s).Packets
}

// Facts is what one run over a flow learns for the next one. The zero value
// holds no facts.
type Facts struct {
	Vantage       Vantage
	VantageReason string
	Supposed      [2]bool          // the tap stands at the side by comparison alone: a way off it would look the same
	Prompt        [2]bool          // the side has answered so soon that the tap can stand at it
	Scrambled     [2]bool          // what the side sent passed the tap out of order or twice, so the tap is not at it
	Marked        bool             // marks of the capture place the tap: see package analyze
	Liar          [2]bool          // the side's headers name packets that never came: its peer's likely do so too
	Suspect       [2]bool          // its headers name packets that are missing, perhaps from the capture only
	Refuses       [2]bool          // the side's application refuses packets that arrived
	Takes         [2]bool          // its application accepts every packet: its headers acked many and refused none
	Client        [2]bool          // the side opened the connection, and its peer is the server
	Tick          [2]time.Duration // the side's frame time, as its sends show it; 0 if unknown
	Overtaken     [2]int           // how far behind the newest packet of the side another one came, in numbers, at most
	Newest        [2]Number        // the newest packet of the side that passed the tap
	Earlier       [2]Earlier       // the same of earlier sessions on the same addresses
	End           Instant          // when the capture ended; 0 if unknown
	Opened        bool             // a client's request for the connection was captured
	Ending        Ending           // how the connection ended
	Doubtful      bool             // another way to read the flow fits as well, or better
	Readings      Readings         // the evidence for how to read it, from the whole run
	// Settings is what the tracker found out about what the profile leaves
	// open, such as how messages are packed. It is nil when it found nothing.
	Settings any
}

// Number is a sequence number that may be unknown. The zero value is unknown.
type Number struct {
	Known   bool
	AtLeast bool // the right one may be larger
	Value   uint32
}

// Earlier holds the newest packets of a side in the last two sessions before, the later one
// first. There are two because both sides can restart at once, each at its own moment.
type Earlier [2]Number

// Summary holds the figures of one side for a table of flows. Unknown figures
// are negative. Counts are of packets of the protocol.
type Summary struct {
	Packets    uint64  // sent by this side, as seen at the tap
	Bytes      uint64  // UDP payload bytes of them
	Acked      uint64  // of Packets: those that the side learned to have arrived
	NeverAcked float64 // share of Packets that was never acked and can no longer be, 0..1
	Loss       float64 // the side's own estimate, as its library computes it, 0..1
	LossKnown  Certainty
	RTT        time.Duration // the side's own smoothed estimate, as its library computes it; negative if unknown
	RTTKnown   Certainty
	WireRTT    time.Duration // mean time from send to ack at the tap; negative if unknown
	Received   uint64        // the peer's packets that the side is known to have accepted
	Duplicates uint64
	Stale      uint64
	Missing    uint64 // the peer's sequence numbers that never passed the tap
	Resends    uint64
	// Messages counts the reliable messages that this side began to send, as the tap saw them.
	// Repeated counts those of them that it sent more than once.
	Messages, Repeated uint64

	// Path counts the side's packets that were lost on the way to its peer, as
	// far as the tap shows. When a protocol answers each copy alone, Path
	// covers the way there and back (PathBoth): the loss may be on either.
	Path      PathLoss
	PathKnown Certainty
	PathBoth  bool

	// Bounds says how many of the side's packets were lost on the way to its peer: at least,
	// and at most.
	Bounds LossBounds
	// Trips are the round trips of the side's packets as the tap shows them.
	Trips Trips
}
