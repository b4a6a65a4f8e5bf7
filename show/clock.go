package show

import (
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Clock formats instants in UTC. Most instants fall into the same second as the one before, so it
// caches the text of that second.
type Clock struct {
	Layout string // of package time, down to the second
	second int64
	text   []byte // of that second; empty at first
}

// Append appends an instant with 0 to 9 decimals of its second.
func (c *Clock) Append(to []byte, t machine.Instant, decimals int) []byte {
	second, fraction := int64(t)/1e9, int64(t)%1e9
	if fraction < 0 {
		second, fraction = second-1, fraction+1e9
	}
	if second != c.second || len(c.text) == 0 {
		c.second = second
		c.text = time.Unix(second, 0).UTC().AppendFormat(c.text[:0], c.Layout)
	}
	return appendFraction(append(to, c.text...), uint32(fraction), decimals)
}

// AppendSeconds appends nanoseconds as seconds with 0 to 9 decimals.
func AppendSeconds(to []byte, ns int64, decimals int) []byte {
	left := uint64(ns)
	if ns < 0 {
		to, left = append(to, '-'), -left // uint64 holds the negated minimum too
	}
	to = strconv.AppendUint(to, left/1e9, 10)
	return appendFraction(to, uint32(left%1e9), decimals)
}

// appendFraction appends a point, and the first digits of nanoseconds below a second.
func appendFraction(to []byte, ns uint32, decimals int) []byte {
	text := [10]byte{0: '.'}
	for i := len(text) - 1; i > 0; i-- { // constants divide faster than the powers of a loop over digits
		text[i] = '0' + byte(ns%10)
		ns /= 10
	}
	return append(to, text[:1+decimals]...)
}
