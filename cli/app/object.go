package app

import (
	"bufio"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
)

// Object writes one JSON object per line, with keys in the order of the calls.
// It reuses its buffer for the next object.
type Object struct {
	Buf   []byte
	clock export.Clock
}

// Begin begins an object.
func (o *Object) Begin() { o.Buf = append(o.Buf[:0], '{') }

// End writes the object to w.
func (o *Object) End(w *bufio.Writer) error {
	o.Buf = append(o.Buf, '}', '\n')
	_, err := w.Write(o.Buf)
	return err
}

// Key writes a key; its value follows.
func (o *Object) Key(k string) {
	if len(o.Buf) > 1 && o.Buf[len(o.Buf)-1] != '{' {
		o.Buf = append(o.Buf, ',')
	}
	o.Buf = append(o.Buf, '"')
	o.Buf = append(o.Buf, k...) // keys are constants that need no escape
	o.Buf = append(o.Buf, '"', ':')
}

// Str writes a text.
func (o *Object) Str(k, v string) { o.Key(k); o.Buf = export.AppendString(o.Buf, v) }

// Word writes a text, or null for the empty string.
func (o *Object) Word(k, v string) {
	if v == "" {
		o.Null(k)
		return
	}
	o.Str(k, v)
}

// File writes the name of a file, unless it is empty.
func (o *Object) File(name string) {
	if name != "" {
		o.Str("file", name)
	}
}

// Uint writes an unsigned integer.
func (o *Object) Uint(k string, v uint64) { o.Key(k); o.Buf = strconv.AppendUint(o.Buf, v, 10) }

// Int writes an integer.
func (o *Object) Int(k string, v int64) { o.Key(k); o.Buf = strconv.AppendInt(o.Buf, v, 10) }

// Bool writes true or false.
func (o *Object) Bool(k string, v bool) { o.Key(k); o.Buf = strconv.AppendBool(o.Buf, v) }

// Null writes null.
func (o *Object) Null(k string) { o.Key(k); o.Buf = append(o.Buf, "null"...) }

// Float writes v with at most digits decimals, or null if v is not a number.
func (o *Object) Float(k string, v float64, digits int) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		o.Null(k)
		return
	}
	o.Key(k)
	scale := math.Pow10(digits)
	n := math.Round(v * scale)
	if math.Abs(n) >= 1<<53 {
		o.Buf = strconv.AppendFloat(o.Buf, v, 'f', -1, 64)
		return
	}
	o.Buf = export.AppendDecimal(o.Buf, int64(n), digits)
}

// Millis writes a duration in milliseconds, or null if it is negative, which
// means unknown.
func (o *Object) Millis(k string, d time.Duration) {
	if d < 0 {
		o.Null(k)
		return
	}
	o.Float(k, float64(d)/1e6, 6)
}

// Time writes an instant as RFC 3339 with nanoseconds, in UTC.
func (o *Object) Time(k string, t machine.Instant) {
	o.Key(k)
	o.Buf = append(o.Buf, '"')
	o.Buf = o.clock.Append(o.Buf, t)
	o.Buf = append(o.Buf, '"')
}

// Addr writes ADDRESS:PORT.
func (o *Object) Addr(k string, a netip.AddrPort) {
	o.Key(k)
	o.Buf = append(o.Buf, '"')
	o.Buf = a.AppendTo(o.Buf)
	o.Buf = append(o.Buf, '"')
}

// Frames writes the frame numbers of refs as an array.
func (o *Object) Frames(k string, refs []machine.Ref) {
	o.Key(k)
	o.Buf = append(o.Buf, '[')
	for i, r := range refs {
		if i > 0 {
			o.Buf = append(o.Buf, ',')
		}
		o.Buf = strconv.AppendUint(o.Buf, r.Frame(), 10)
	}
	o.Buf = append(o.Buf, ']')
}

// Texts writes an array of texts.
func (o *Object) Texts(k string, texts []string) {
	o.List(k, len(texts), func(i int) { o.Buf = export.AppendString(o.Buf, texts[i]) })
}

// List writes an array, item by item.
func (o *Object) List(k string, n int, item func(i int)) {
	o.Key(k)
	o.Buf = append(o.Buf, '[')
	for i := range n {
		if i > 0 {
			o.Buf = append(o.Buf, ',')
		}
		item(i)
	}
	o.Buf = append(o.Buf, ']')
}

// Inner writes an object within a list or a key.
func (o *Object) Inner(fill func()) {
	o.Buf = append(o.Buf, '{')
	fill()
	o.Buf = append(o.Buf, '}')
}

// Optional writes a number, or null if there is none.
func (o *Object) Optional(k string, v float64, is bool) {
	if !is {
		o.Null(k)
		return
	}
	o.Float(k, v, 6)
}

// Signed writes a duration in milliseconds. It may be negative.
func (o *Object) Signed(k string, d time.Duration) { o.Float(k, math.Round(float64(d))/1e6, 6) }
