package gaffer

import "github.com/ackscope/ackscope/machine"

// WeighZeroed weighs a side's next header for both readings of reliable's ack_bits. In the
// first, every bit counts. In the second, the bits of zeroed are 0 unless all of them are
// set. The law of both: a packet that was named stays named while ack_bits reach it. In
// the second reading the zeroed bits are free from that law.
//
// For example, a header names packets 0 to 7, and the next one has ack 8 and the bits
// 0x0ff. Bit 8 is packet 0, so the first reading takes it back. In the second, bits 8 to 15
// say nothing.
//
// last is what the side's header before claimed; its Width is 0 if there was none.
// WeighZeroed reports whether a law was broken.
func (r *Rules) WeighZeroed(e *machine.Readings, side machine.Side, last *Claims, c Claims, zeroed uint64) bool {
	part := c.Named & zeroed
	if part == zeroed && last.Named&^c.Named == 0 {
		return false
	}
	broken := e.Broken[side]
	if part != 0 && part != zeroed {
		e.Broken[side][1]++
	}
	if ahead := r.Distance(c.Newest, last.Newest); last.Width > 0 && ahead >= 0 && ahead < c.Width {
		gone := last.Named << uint(ahead) & c.Covered() &^ c.Named
		if gone != 0 {
			e.Broken[side][0]++
		}
		if gone&^zeroed != 0 {
			e.Broken[side][1]++
		}
	}
	return broken != e.Broken[side]
}
