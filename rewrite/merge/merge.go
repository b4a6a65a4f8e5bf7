// Package merge combines two captures of the same traffic. It pairs their flows
// and packets by content, computes the difference of the two clocks, and
// reports what happened between the taps.
//
//	tap A ──┐  flows and packets of equal content      pair.go
//	        ├─ offset and drift of B's clock           clock.go
//	tap B ──┘  one-way delay, loss, copies, order      match.go
//	           one capture of both, annotated          write.go
//
// The pairing ignores addresses, because there may be a relay or a NAT between
// the taps. A packet is identified by the bytes of its payload, which contain a
// sequence number in the protocols that ackscope reads. In TCP streams,
// messages are paired, because a relay may cut the segments differently.
//
// A tap may miss packets. So a packet counts as lost only while the other tap
// was certainly recording.
//
// The drift is a linear program over the smallest delays: Moon, Skelly and
// Towsley, "Estimation and Removal of Clock Skew from Network Delay
// Measurements" (1999). RFC 4737 defines which packets count as reordered.
package merge

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Merged is the result of combining two captures.
type Merged struct {
	Taps    [2]*Tap
	Clock   Clock
	Pairs   []*Pair
	Unfound [2]int // flows of a tap without any packet at the other tap
}

// Pair is one flow that both taps saw.
type Pair struct {
	Flows [2]*Flow // the flow at each tap
	// Cross is set if side A of the flow is side B of it at the other tap. That
	// happens if one of the captures begins in the middle.
	Cross bool
	// First is the tap that a packet of each side passes first. Sides are named as
	// at tap A.
	First      [2]int
	FirstKnown machine.Certainty
	Ways       [2]Way // the outcomes, by sending side as named at tap A

	common [2]int // packets of equal content, by side as named at tap A
}

// sideAt returns the name at a tap of a side of tap A.
func (p *Pair) sideAt(tap int, s machine.Side) machine.Side {
	if tap == 1 && p.Cross {
		return s.Other()
	}
	return s
}

// passed returns what a tap saw of the packets of a side, named as at tap A.
func (p *Pair) passed(tap int, s machine.Side) []passage {
	return p.Flows[tap].passed[p.sideAt(tap, s)]
}

// Way counts the outcomes of one side's packets between the taps.
type Way struct {
	Upstream   uint64 // passed the tap that is nearer to the sender
	Downstream uint64 // passed the other tap
	Both       uint64 // of Upstream: seen at the other tap
	Lost       uint64 // of Upstream: not seen at the other tap, though it was recording
	LostAtEnds uint64 // of Lost: before the first or after the last packet that the other tap recorded; only likely
	Missed     uint64 // of Upstream: not seen at the other tap, but received: that tap missed them
	Undecided  uint64 // of Upstream: passed while the other tap may not have been recording
	Copies     uint64 // seen downstream more often than upstream: duplicated between the taps
	Unseen     uint64 // seen downstream only: missed by the upstream tap, or created between the taps
	Outside    uint64 // seen downstream before the upstream tap had begun, or after its end
	Reordered  uint64 // overtaken between the taps by a packet that was sent later
	Ambiguous  uint64 // paired with one of several packets of the same content

	DiedBefore uint64 // sequence numbers of the sender that neither tap saw
	DiedAfter  uint64 // seen downstream, by a tap that is not at the receiver, and never acknowledged; only likely

	Delay Delays // from tap to tap
}

// Delays are the one-way delays between the taps. They have the uncertainty of
// the clock's offset; differences between them do not.
type Delays struct {
	Known                         bool
	Least, Median, P95, P99, Most time.Duration
	Mean                          time.Duration
}

// ErrNothingCommon says that the captures have no packet in common.
var ErrNothingCommon = errors.New("no packet of one capture is in the other: expected two captures of the same " +
	"traffic (a proxy that encrypts or wraps packets anew makes them others)")

// Merge reads two captures, each analysed with the options o, and combines
// them.
func Merge(a, b analyze.Rewinder, o analyze.Options) (*Merged, error) {
	m := &Merged{}
	sources := [2]analyze.Rewinder{a, b}
	var ends [2]error
	prefix := 0
	for i, src := range sources {
		if m.Taps[i], ends[i] = load(src, o, 0); m.Taps[i] == nil {
			return nil, fmt.Errorf("capture %d: %w", i+1, ends[i])
		}
		if s := m.Taps[i].shortest; s > 0 && (prefix == 0 || s < prefix) {
			prefix = s
		}
	}
	if prefix > 0 { // a snap length cut packets: identify all packets by the part that every one has
		for i, src := range sources {
			if err := src.Rewind(); err != nil {
				return nil, err
			}
			if m.Taps[i], ends[i] = load(src, o, max(prefix, leastPrefix)); m.Taps[i] == nil {
				return nil, ends[i]
			}
		}
	}
	m.pair()
	if len(m.Pairs) == 0 {
		return nil, errors.Join(append(ends[:], ErrNothingCommon)...)
	}
	m.solve()
	m.follow()
	return m, errors.Join(ends[:]...)
}
