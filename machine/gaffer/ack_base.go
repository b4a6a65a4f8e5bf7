package gaffer

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
)

// Reading returns which reading of ack_bits the rules have, as an index of
// machine.Readings. In a fixed header it is 0 for ack-n, and 1 for ack-n-1. In reliable's
// it is 0 where every bit counts, and 1 where some are zeroed.
func (r *Rules) Reading() int {
	if r.AckBelow || r.ZeroedAckBits != 0 {
		return 1
	}
	return 0
}

// WeighAckBase weighs a side's next header for both readings of ack_bits. Bit 0 is ack
// itself (ack-n), or the packet before ack (ack-n-1). Each has a law:
//
//	ack-n    bit 0 of a header that acks something is set: ack names the newest packet
//	ack-n-1  while ack moves on, the ack of the header before stays named
//
// For example, 11 is lost, and headers ack 10 and then 12. With ack-n the second one ends
// in the bits 101: bit 1 says that 11 is missing. Read as ack-n-1, it would take back 10.
// With ack-n-1 it ends in 110. Read as ack-n, it would not name 12 itself.
//
// ack-n-1 has a second law. A side that had received nothing does not then name the packet
// before first, the peer's oldest one that passed the tap. If first is 0, that holds for the
// side's first header too. For example, it says that it has
// nothing, and then has ack 0 with the bits 1: that would be 0 and 65535.
//
// last is what the side's header before claimed; its Width is 0 if there was none. Both
// were read by the rules r. WeighAckBase reports whether a law was broken.
func (r *Rules) WeighAckBase(
	e *machine.Readings, side machine.Side, last *Claims, ack uint32, ackBits uint64, first uint32,
) bool {
	acked := last.Width > 0 && !last.Nothing(r)
	if acked && ack == last.Newest || ackBits == 0 && (ack == r.Mask() || ack == 0 && last.Width == 0) {
		return false // nothing new; or nothing received, where some endpoints begin ack at 0
	}
	counts, broken := &e.Broken[side], false
	// The largest ack is also that of a fresh buffer. If the peer begins just below it, the first
	// headers have this ack and name others.
	if ackBits&1 == 0 && ack != r.Mask() {
		counts[0]++
		broken = true
	}
	if acked {
		ahead := r.Distance(ack, last.Newest)
		if ahead > 0 && ahead <= r.AckBits && ackBits>>uint(ahead-1)&1 == 0 && last.Newest != r.Mask() {
			counts[1]++
			broken = true
		}
		return broken
	}
	begins := last.Width > 0 || first == 0
	if begins && r.Distance(r.onlyBelow(ack, ackBits), first) == -1 {
		counts[1]++
		broken = true
	}
	return broken
}

// onlyBelow returns the packet that a header without holes names as ack-n-1 only. It is
// the oldest one.
func (r *Rules) onlyBelow(ack uint32, ackBits uint64) uint32 {
	return (ack - uint32(bits.TrailingZeros64(^ackBits))) & r.Mask()
}

// AckBasesDiffer reports whether the two readings of a header name different packets, of
// those from number first on that last does not name.
//
// While nothing is lost they hardly do. For example, ack 40 with 32 bits that are all ones
// names 9 to 40, or 8 to 40. Where the header before names 8, that says nothing new.
func (r *Rules) AckBasesDiffer(last *Claims, ack uint32, ackBits uint64, first uint32) bool {
	if ackBits&(ackBits+1) != 0 {
		return true // a hole: the readings disagree which packet is missing
	}
	more := r.onlyBelow(ack, ackBits)
	return r.Distance(more, first) >= 0 && !(last.Width > 0 && last.Names(r, more))
}
