package capture

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
)

// Resolution is the unit of an interface's timestamps, coded as in pcapng. The
// high bit selects 2^-n instead of 10^-n seconds.
type Resolution uint8

// The usual resolutions.
const (
	Microseconds Resolution = 6
	Nanoseconds  Resolution = 9
)

func (r Resolution) String() string {
	switch {
	case r == Microseconds:
		return "1 us"
	case r == Nanoseconds:
		return "1 ns"
	case r&0x80 != 0:
		return fmt.Sprintf("2^-%d s", r&0x7f)
	}
	return fmt.Sprintf("10^-%d s", r)
}

var powersOf10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// instant converts a count of r since the Unix epoch, plus offset whole
// seconds, to nanoseconds. It rounds down. Times from the year 2262 on do not
// fit nanoseconds in 63 bits; they become the greatest instant.
func (r Resolution) instant(count uint64, offset int64) machine.Instant {
	var ns uint64
	n := uint(r & 0x7f)
	switch {
	case r&0x80 != 0:
		hi, lo := bits.Mul64(count, 1e9)
		// The 128-bit product shifted right by n (0..127).
		if n >= 64 {
			ns = hi >> (n - 64)
		} else if hi>>n != 0 {
			ns = math.MaxUint64
		} else {
			ns = hi<<(64-n) | lo>>n
		}
	case n <= 9:
		hi, lo := bits.Mul64(count, powersOf10[9-n])
		if hi != 0 {
			lo = math.MaxUint64
		}
		ns = lo
	case n-9 < uint(len(powersOf10)):
		ns = count / powersOf10[n-9]
	}
	at := int64(min(ns, math.MaxInt64))
	if offset == 0 {
		return machine.Instant(at)
	}
	const most = math.MaxInt64 / int64(1e9)
	shift := max(min(offset, most), -most) * 1e9
	if shift > 0 && at > math.MaxInt64-shift {
		return math.MaxInt64
	}
	return machine.Instant(at + shift) // at >= 0: no underflow
}

// Digits returns how many decimals of a second are shown: 6, or 9 if the clock
// is finer than a microsecond.
func (r Resolution) Digits() int {
	if r&0x80 == 0 && r > Microseconds || r&0x80 != 0 && r&0x7f > 20 {
		return 9
	}
	return 6
}
