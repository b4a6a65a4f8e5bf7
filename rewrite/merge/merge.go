// Package merge puts two captures of the same traffic together: it pairs their
// flows and packets by content, solves how the two clocks lie to each other, and
// tells from that what happened between the taps.
//
//	tap A ──┐  flows and packets of equal content      pair.go
//	        ├─ offset and drift of B's clock           clock.go
//	tap B ──┘  one-way delay, loss, copies, order      match.go
//	           one capture of both, annotated          write.go
//
// Addresses play no part in the pairing: a relay or a NAT may stand between. A
// packet is known by the bytes of its payload, which of the protocols that
// ackscope reads hold a sequence. Of streams the messages are paired, since a
// relay may cut the segments anew.
//
// What a tap did not record it may have missed; a packet counts as lost only while
// the other tap was recording for sure.
//
// Ring 4 of the house. Source of truth: Moon, Skelly and Towsley, "Estimation and
// Removal of Clock Skew from Network Delay Measurements" (1999), for the drift as
// a linear program over the least delays; RFC 4737 for what counts as reordered.
package merge

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Merged is what two captures tell together.
type Merged struct {
	Taps    [2]*Tap
	Clock   Clock
	Pairs   []*Pair
	Unfound [2]int // flows of a tap that the other one has nothing of
}

// Pair is one flow that both taps saw.
type Pair struct {
	Flows [2]*Flow // as each tap knows it
	// Cross is set where side A of the flow is side B of it at the other tap, as
	// where one of the captures begins in the middle.
	Cross bool
	// First tells which tap a packet of each side passes first; sides are those
	// that the first tap names.
	First      [2]int
	FirstKnown machine.Certainty
	Ways       [2]Way // what happened on the way, by sending side as tap A names it

	common [2]int // packets of equal content, by side as tap A names it
}

// sideAt returns the name that a tap has for a side of tap A.
func (p *Pair) sideAt(tap int, s machine.Side) machine.Side {
	if tap == 1 && p.Cross {
		return s.Other()
	}
	return s
}

// passed returns what a tap saw of the packets of a side, as tap A names it.
func (p *Pair) passed(tap int, s machine.Side) []passage {
	return p.Flows[tap].passed[p.sideAt(tap, s)]
}

// Way is what became of one side's packets between the taps.
type Way struct {
	Upstream   uint64 // passed the tap that is nearer to the sender
	Downstream uint64 // passed the other
	Both       uint64 // of the former, seen at the other
	Lost       uint64 // of the former, not seen at the other, though it recorded
	LostAtEnds uint64 // of these, before the first or after the last packet that the other tap recorded: likely only
	Missed     uint64 // of the former, not seen at the other, and yet received: the other tap missed them
	Undecided  uint64 // passed while the other tap was not recording for sure
	Copies     uint64 // seen downstream more often than upstream: doubled between the taps
	Unseen     uint64 // seen downstream only: missed by the upstream tap, or made between the taps
	Outside    uint64 // seen downstream before the upstream tap had begun, or after its end
	Reordered  uint64 // overtaken between the taps by one that was sent later
	Ambiguous  uint64 // paired with one of several of the same content

	DiedBefore uint64 // numbers of the sender that neither tap saw
	DiedAfter  uint64 // seen downstream, by a tap that is not at the receiver, and never acknowledged: likely only

	Delay Delays // from tap to tap
}

// Delays are the one-way delays between the taps. They share the uncertainty of
// the clock's offset; their differences do not.
type Delays struct {
	Known                         bool
	Least, Median, P95, P99, Most time.Duration
	Mean                          time.Duration
}

// ErrNothingCommon says that no packet is in both captures.
var ErrNothingCommon = errors.New("no packet of one capture is in the other: expected two captures of the same traffic (a proxy that encrypts or wraps packets anew makes them others)")

// Merge reads two captures, each with the options that its analysis is to have,
// and puts them together.
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
	if prefix > 0 { // a snap length cut packets: they are known by what is there of all
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
