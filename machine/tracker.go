package machine

import "time"

// Tracker rebuilds what both sides of one flow knew, from the datagrams that
// passed the tap. It is fed in the order of the capture and is deterministic:
// the same datagrams give the same effects.
type Tracker interface {
	// Observe takes the next datagram of the flow. Bytes that are no packet of
	// the protocol are an anomaly, not an error.
	Observe(d *Datagram, out *Effects)
	// Finish settles what is still open when the capture (or the flow) ends.
	Finish(out *Effects)
	// Inspect draws what side s knew after the last observed datagram.
	Inspect(s Side, v *View)
	// Summary returns the figures of side s so far.
	Summary(s Side) Summary
	// Learned returns what the tracker has come to know about the flow, so that a
	// second run over the capture can start with it.
	Learned() Facts
	// Clone returns an independent copy: stepping one leaves the other as it was.
	Clone() Tracker
	// Size returns the bytes that a clone takes, about; checkpoints are spaced by it.
	Size() int
}

// Packer is a tracker that can be kept in less memory than a clone of it takes.
type Packer interface {
	// Pack returns the state in few bytes. It writes in scratch on the way, which
	// holds nothing of what is kept and can be given again.
	Pack(scratch *[]byte) Packed
}

// Packed is what is kept of a tracker.
type Packed interface {
	// Unpack returns a tracker of the caller's own that equals the one that was packed.
	Unpack() Tracker
	// Size returns the bytes that are kept, about.
	Size() int
}

// Gauged is a tracker that tells single figures of its Summary for less than the
// whole of it costs: filters ask for them at every packet. Each equals the field
// of the Summary that it is named after, negative where it is not known.
type Gauged interface {
	RTT(s Side) time.Duration
	Loss(s Side) float64
	Sent(s Side) uint64 // Summary.Packets
}

// RTT returns Summary(s).RTT, the quick way where there is one.
func RTT(t Tracker, s Side) time.Duration {
	if g, ok := t.(Gauged); ok {
		return g.RTT(s)
	}
	return t.Summary(s).RTT
}

// Loss returns Summary(s).Loss, the quick way where there is one.
func Loss(t Tracker, s Side) float64 {
	if g, ok := t.(Gauged); ok {
		return g.Loss(s)
	}
	return t.Summary(s).Loss
}

// Sent returns Summary(s).Packets, the quick way where there is one.
func Sent(t Tracker, s Side) uint64 {
	if g, ok := t.(Gauged); ok {
		return g.Sent(s)
	}
	return t.Summary(s).Packets
}

// Facts is what one run over a flow teaches the next one. The zero value knows
// nothing.
type Facts struct {
	Vantage       Vantage
	VantageReason string
	Liar          [2]bool          // the side's own headers name packets that never came: its peer is likely the same
	Suspect       [2]bool          // they name packets that only the capture may lack: that would not be told from a lie
	Refuses       [2]bool          // the side's application refuses packets that arrived
	Takes         [2]bool          // it takes whatever arrives: of very many that its headers speak of it refused none
	Tick          [2]time.Duration // the side's frame time as its sends show it; 0 unknown
	End           Instant          // when the capture ended; 0 unknown
	// Settings is what the protocol itself found out of what its profile left
	// open, such as how messages are packed; nil for nothing.
	Settings any
}

// Summary is what a table of flows tells about one side. Figures that are not
// known are negative; counts are of packets of the protocol.
type Summary struct {
	Packets    uint64  // sent by this side, as seen at the tap
	Bytes      uint64  // UDP payload bytes of them
	Acked      uint64  // of them, how many the side learned to have arrived
	NeverAcked float64 // share of them that never was acked and can no longer be, 0..1
	Loss       float64 // the side's own estimate as its library computes it, 0..1
	LossKnown  Certainty
	RTT        time.Duration // the side's own smoothed estimate, as its library computes it; negative unknown
	RTTKnown   Certainty
	WireRTT    time.Duration // mean of send to ack as they passed the tap; negative unknown
	Received   uint64        // the peer's packets that it is known to have accepted
	Duplicates uint64
	Stale      uint64
	Missing    uint64 // the peer's sequence numbers that never passed the tap
	Resends    uint64

	// Path is what of the side's packets was lost on the way to its peer, as far as
	// the tap can tell. Of a protocol that answers each copy alone, it is the way
	// there and back (PathBoth): which of the two lost something is not known.
	Path      PathLoss
	PathKnown Certainty
	PathBoth  bool
}
