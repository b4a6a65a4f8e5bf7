package rewrite

import (
	"math"
	"strconv"
	"strings"
)

// figures are the numbers of an occurrence: those of a finding's worst
// occurrence, or the words of what a divergence expected and got.
type figures struct {
	numbers [3]float64
	words   string
}

// likeness is how far the figures of a reduced capture may lie from those of
// the whole, as a share of the latter.
const likeness = 0.1

// like reports whether the figures of a reduced capture are those of the whole.
func (f *figures) like(whole *figures) bool {
	for i := range f.numbers {
		if !near(f.numbers[i], whole.numbers[i]) {
			return false
		}
	}
	if f.words == whole.words {
		return true
	}
	a, b := strings.Fields(f.words), strings.Fields(whole.words)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, errX := strconv.ParseFloat(strings.Trim(a[i], ",;"), 64)
		y, errY := strconv.ParseFloat(strings.Trim(b[i], ",;"), 64)
		if a[i] != b[i] && (errX != nil || errY != nil || strings.HasPrefix(a[i], "0x") || !near(x, y)) {
			return false
		}
	}
	return true
}

// near reports whether a number is that of the whole capture, within likeness.
func near(is, was float64) bool { return math.Abs(is-was) <= likeness*math.Abs(was) }
