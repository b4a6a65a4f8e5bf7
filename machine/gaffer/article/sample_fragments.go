package article

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// fragmentTiming is how the packets of one side that sends fragments follow each other
// at the tap. The fragments of a packet leave together. A network of any length draws
// them apart.
type fragmentTiming struct {
	met      bool
	sequence uint32
	piece    bool
	at       machine.Instant

	packets       int
	odd           int // numbers that were skipped, came late or came again
	pairs         int // fragments that followed another one of the same packet
	close, spread int // of these pairs, those within pairClose, and those not within pairSpread
}

const (
	// pairClose is the longest gap between two fragments of a packet that count as close
	// together.
	// Source: measured, TestMarginsGaffer
	pairClose = 300 * time.Microsecond
	// pairSpread is the gap above which two fragments of a packet count as apart.
	// Source: measured, TestMarginsGaffer
	pairSpread = time.Millisecond
	// pairsTell is how many pairs of fragments must pass before their gaps help to place
	// the tap.
	// Source: measured, TestMarginsGaffer
	pairsTell = 8
	// oddTell is how many odd packet numbers show that the tap is not at a side. An odd
	// number was skipped, came late or came again.
	// Source: unmeasured, the vantage that rests on it is likely at most
	oddTell = 8
)

func (h *fragmentTiming) take(at machine.Instant, p *wire.Packet, mask uint32) {
	piece := p.Kind == wire.KindFragment
	switch {
	case !h.met:
		h.packets++
	case piece && h.piece && p.Sequence == h.sequence:
		h.pairs++
		if gap := at.Sub(h.at); gap <= pairClose {
			h.close++
		} else if gap > pairSpread {
			h.spread++
		}
	default:
		h.packets++
		if p.Sequence != (h.sequence+1)&mask {
			h.odd++
		}
	}
	h.met, h.sequence, h.piece, h.at = true, p.Sequence, piece, at
}

// near reports whether the side may be at the tap: none of its packets is missing, and
// its fragments come together. One wrong number counts as two odd ones.
func (h *fragmentTiming) near() bool {
	return h.packets >= tracker.PlaceLeast && h.odd <= 2 && (h.pairs < pairsTell || 10*h.close >= 9*h.pairs)
}

// far returns why the side is not at the tap. It returns "" if the side may be there.
func (h *fragmentTiming) far(x machine.Side) string {
	switch {
	case h.pairs >= pairsTell && 2*h.spread >= h.pairs:
		return fmt.Sprintf("the fragments of %v's packets come apart", x)
	case h.odd >= oddTell && 50*h.odd >= h.packets && (h.pairs < pairsTell || 2*h.close < h.pairs):
		return fmt.Sprintf("packets of %v are missing, late or repeated", x)
	}
	return ""
}

// fragmentVantage returns where the timing of both sides' fragments places the tap.
func fragmentVantage(h *[2]fragmentTiming) (v machine.Vantage, reason string) {
	for i := range h {
		x := machine.Side(i)
		why := h[1-i].far(x.Other())
		if why == "" || !h[i].near() || h[i].pairs < pairsTell && h[i].odd > 0 {
			continue
		}
		return machine.VantageA + machine.Vantage(x),
			fmt.Sprintf("likely at %v, though it may have been some way off: %s, and those of %v one after the other", x, why, x)
	}
	return machine.VantageUnknown, ""
}
