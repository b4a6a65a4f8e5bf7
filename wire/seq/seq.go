// Package seq implements arithmetic on sequence numbers that wrap, and a ring
// indexed by them.
//
//	          half the range: newer
//	        .-----------------------.
//	65535  0  1  2 ... 32767  32768  32769 ... 65534
//	           from 0: newer | exactly half: the larger number is newer
//
// The source is sequence_greater_than of the article "Packet Fragmentation and
// Reassembly" by Glenn Fiedler, and of the reliable library 1.4.0. Both agree.
package seq

// Space is a range of sequence numbers, given by its width in bits: 1 to 32.
// Numbers are held in uint32; bits above the width must be zero.
type Space uint8

// The widths that protocols use.
const (
	Bits8  Space = 8
	Bits15 Space = 15
	Bits16 Space = 16
	Bits32 Space = 32
)

// Mask returns the largest number of the space.
func (s Space) Mask() uint32 { return uint32(1<<s - 1) }

// Newer reports whether a is newer than b: ahead by less than half the range.
// At exactly half the range, the larger number is newer.
func (s Space) Newer(a, b uint32) bool {
	d, half := (a-b)&s.Mask(), uint32(1)<<(s-1)
	return d != 0 && (d < half || d == half && a > b)
}

// Distance returns how far a is ahead of b. It is negative when a is behind.
func (s Space) Distance(a, b uint32) int {
	if s.Newer(a, b) {
		return int((a - b) & s.Mask())
	}
	return -int((b - a) & s.Mask())
}

// Add returns the number d after a. d may be negative.
func (s Space) Add(a uint32, d int) uint32 { return (a + uint32(d)) & s.Mask() }

// Unwrap returns the unwrapped number of a, given the unwrapped number of a
// nearby packet. If the low bits of near are a number of the space, the low
// bits of the result are a.
func (s Space) Unwrap(a uint32, near int64) int64 {
	return near + int64(s.Distance(a, uint32(near)&s.Mask()))
}
