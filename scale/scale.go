// Package scale maps times, counts and lengths of a capture to cells, pixels
// and levels without overflow. It also adds, subtracts and multiplies them.
//
//	scale.Position(at, first, last, 80)   // in which of 80 columns an instant is
//	scale.Mul(rowTime, 24)                // the time that 24 rows of a ladder show
//
// The timestamps of a capture are untrusted. One flipped bit can put two
// packets 292 years apart, and the product of such a difference with a factor
// needs more than 64 bits. So products have 128 bits here. A result that does
// not fit saturates: it becomes the nearest number that fits. internal/arch
// fails if another package multiplies a time by itself. Package scale imports
// no other package of ackscope.
package scale

import (
	"math"
	"math/bits"
)

// Integer is the type of the operands: time.Duration, machine.Instant or int64.
type Integer interface{ ~int64 }

// Add returns a+b, saturated.
func Add[T, U Integer](a T, b U) T {
	sum := int64(a) + int64(b)
	if (sum > int64(a)) == (b > 0) || b == 0 {
		return T(sum)
	}
	return saturated[T](b < 0)
}

// Sub returns a-b, saturated. For two instants the result is their difference.
func Sub[T Integer](a, b T) T {
	difference := a - b
	if (difference < a) == (b > 0) || b == 0 {
		return difference
	}
	return saturated[T](b > 0)
}

// Mul returns a*n, saturated.
func Mul[T Integer](a T, n int64) T { return T(MulDiv(int64(a), n, 1)) }

func saturated[T Integer](negative bool) T {
	if negative {
		return math.MinInt64
	}
	return math.MaxInt64
}

// magnitude returns the absolute value of a number. It fits even for the
// smallest int64.
func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// MulDiv returns a*b/c, rounded towards 0 and saturated. The product is 128 bits
// wide. A division by 0 saturates; 0/0 is 0.
func MulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0) != (c < 0)
	divisor := magnitude(c)
	switch {
	case high == 0 && low == 0:
		return 0
	case high >= divisor: // the quotient of 128 by 64 bits would need more than 64
		return saturated[int64](negative)
	}
	quotient, _ := bits.Div64(high, low, divisor)
	switch {
	case !negative && quotient > math.MaxInt64, negative && quotient > 1<<63:
		return saturated[int64](negative)
	case negative:
		return int64(-quotient)
	}
	return int64(quotient)
}

// Position returns the index of the cell that contains value, if [lo, hi] is
// divided into equal cells: 0 to cells-1. For a value outside it returns the
// nearest cell. If there is no cell, or hi is not above lo, it returns 0.
func Position[T Integer](value, lo, hi T, cells int) int {
	if cells <= 0 || hi <= lo || value <= lo {
		return 0
	}
	// As unsigned numbers the distances fit, whatever their signs are.
	offset, span := uint64(min(value, hi))-uint64(lo), uint64(hi)-uint64(lo)
	if span < math.MaxUint64 {
		span++ // both ends are inside
	}
	high, low := bits.Mul64(offset, uint64(cells))
	if high >= span {
		return cells - 1 // the range of int64 has one value more than span can count
	}
	at, _ := bits.Div64(high, low, span)
	return min(int(at), cells-1)
}

// Part returns how many of cells cells a part of a whole fills, rounded down.
// It returns 0 for nothing, and cells for the whole. If the whole is 0, it
// returns 0.
func Part[T Integer](part, whole T, cells int) int {
	if whole <= 0 || part <= 0 || cells <= 0 {
		return 0
	}
	return int(MulDiv(int64(min(part, whole)), int64(cells), int64(whole)))
}

// Level returns the height of a bar for a count: 0 for no count, otherwise 1 to
// levels. The count most has the highest level.
func Level[T Integer](count, most T, levels int) int {
	if count <= 0 || levels <= 0 {
		return 0
	}
	return 1 + Part(count, max(most, count), levels-1)
}

// Int converts a number to int. It saturates if an int has 32 bits.
func Int(n int64) int {
	return int(min(max(n, math.MinInt), math.MaxInt))
}

// Float converts a floating-point number to an integer, rounded towards 0 and
// saturated. Go does not define its own conversion for a number that does not
// fit. Not-a-number becomes 0.
func Float(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

// Far bounds coordinates, so that the difference of two fits. Any point that
// far outside a drawing looks the same.
const Far = 1 << 61

// Line calls dot for each step of a line that is inside a drawing of w by h
// dots. Step 0 is the start of the line. Each step is one dot along the longer
// axis. So there are at most max(w, h) calls, however long the line is.
func Line(x0, y0, x1, y1 int64, w, h int, dot func(x, y int, step int64)) {
	clamp := func(n int64) int64 { return min(max(n, -Far), Far) }
	x0, y0, x1, y1 = clamp(x0), clamp(y0), clamp(x1), clamp(y1)
	dx, dy := x1-x0, y1-y0
	steps := int64(max(magnitude(dx), magnitude(dy)))
	at, length, size := x0, dx, w
	if magnitude(dy) > magnitude(dx) {
		at, length, size = y0, dy, h
	}
	first, last := -at, int64(size)-1-at // the steps at which the longer axis is inside
	if length < 0 {
		first, last = at-int64(size)+1, at
	}
	for i := max(first, 0); i <= min(last, steps); i++ {
		x, y := x0, y0
		if steps > 0 {
			x, y = x0+MulDiv(dx, i, steps), y0+MulDiv(dy, i, steps)
		}
		if x >= 0 && y >= 0 && x < int64(w) && y < int64(h) {
			dot(int(x), int(y), i)
		}
	}
}
