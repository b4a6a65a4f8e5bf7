package cli

import (
	"bufio"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
)

// object writes one JSON object as a line, key by key in the order of the
// calls. It keeps its memory from one object to the next.
type object struct {
	buf   []byte
	clock export.Clock
}

func (o *object) begin() { o.buf = append(o.buf[:0], '{') }

// end writes the object to w.
func (o *object) end(w *bufio.Writer) error {
	o.buf = append(o.buf, '}', '\n')
	_, err := w.Write(o.buf)
	return err
}

func (o *object) key(k string) {
	if len(o.buf) > 1 && o.buf[len(o.buf)-1] != '{' {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(o.buf, '"')
	o.buf = append(o.buf, k...) // keys are ours and need no escape
	o.buf = append(o.buf, '"', ':')
}

func (o *object) str(k, v string) { o.key(k); o.buf = export.AppendString(o.buf, v) }

// word is str, but null for the empty string.
func (o *object) word(k, v string) {
	if v == "" {
		o.null(k)
		return
	}
	o.str(k, v)
}

// file writes the name of a file, where there is one to tell.
func (o *object) file(name string) {
	if name != "" {
		o.str("file", name)
	}
}

func (o *object) uint(k string, v uint64) { o.key(k); o.buf = strconv.AppendUint(o.buf, v, 10) }
func (o *object) int(k string, v int64)   { o.key(k); o.buf = strconv.AppendInt(o.buf, v, 10) }
func (o *object) bool(k string, v bool)   { o.key(k); o.buf = strconv.AppendBool(o.buf, v) }
func (o *object) null(k string)           { o.key(k); o.buf = append(o.buf, "null"...) }

// float writes v with at most digits decimals; null where it is not a number.
func (o *object) float(k string, v float64, digits int) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		o.null(k)
		return
	}
	o.key(k)
	scale := math.Pow10(digits)
	n := math.Round(v * scale)
	if math.Abs(n) >= 1<<53 {
		o.buf = strconv.AppendFloat(o.buf, v, 'f', -1, 64)
		return
	}
	o.buf = export.AppendDecimal(o.buf, int64(n), digits)
}

// millis writes a duration in milliseconds; null where it is negative (unknown).
func (o *object) millis(k string, d time.Duration) {
	if d < 0 {
		o.null(k)
		return
	}
	o.float(k, float64(d)/1e6, 6)
}

// time writes an instant as RFC 3339 with nanoseconds, in UTC.
func (o *object) time(k string, t machine.Instant) {
	o.key(k)
	o.buf = append(o.buf, '"')
	o.buf = o.clock.Append(o.buf, t)
	o.buf = append(o.buf, '"')
}

func (o *object) addr(k string, a netip.AddrPort) {
	o.key(k)
	o.buf = append(o.buf, '"')
	o.buf = a.AppendTo(o.buf)
	o.buf = append(o.buf, '"')
}

// frames writes the frame numbers of refs as an array.
func (o *object) frames(k string, refs []machine.Ref) {
	o.key(k)
	o.buf = append(o.buf, '[')
	for i, r := range refs {
		if i > 0 {
			o.buf = append(o.buf, ',')
		}
		o.buf = strconv.AppendUint(o.buf, r.Frame(), 10)
	}
	o.buf = append(o.buf, ']')
}

// list writes an array, item by item.
func (o *object) list(k string, n int, item func(i int)) {
	o.key(k)
	o.buf = append(o.buf, '[')
	for i := range n {
		if i > 0 {
			o.buf = append(o.buf, ',')
		}
		item(i)
	}
	o.buf = append(o.buf, ']')
}

// inner writes an object within another.
func (o *object) inner(fill func()) {
	o.buf = append(o.buf, '{')
	fill()
	o.buf = append(o.buf, '}')
}

// optional writes a number, null where there is none.
func (o *object) optional(k string, v float64, is bool) {
	if !is {
		o.null(k)
		return
	}
	o.float(k, v, 6)
}

// signed writes a duration in milliseconds that may be below zero.
func (o *object) signed(k string, d time.Duration) { o.float(k, math.Round(float64(d))/1e6, 6) }
