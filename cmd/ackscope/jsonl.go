package main

import (
	"bufio"
	"math"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ackscope/ackscope/machine"
)

// object writes one JSON object as a line, key by key in the order of the
// calls. It keeps its memory from one object to the next.
type object struct {
	buf   []byte
	clock clock
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

func (o *object) str(k, v string) { o.key(k); o.buf = appendJSONString(o.buf, v) }

// word is str, but null for the empty string.
func (o *object) word(k, v string) {
	if v == "" {
		o.null(k)
		return
	}
	o.str(k, v)
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
	o.buf = appendDecimal(o.buf, int64(n), digits)
}

// appendDecimal writes n / 10^digits without zeros at the end: much faster than
// a float64 in full.
func appendDecimal(b []byte, n int64, digits int) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	scale := int64(1)
	for range digits {
		scale *= 10
	}
	b = strconv.AppendInt(b, n/scale, 10)
	fraction := n % scale
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for fraction > 0 {
		scale /= 10
		b = append(b, '0'+byte(fraction/scale))
		fraction %= scale
	}
	return b
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
	o.buf = o.clock.append(o.buf, t)
	o.buf = append(o.buf, '"')
}

// clock writes instants as 2006-01-02T15:04:05.000000000Z. Most share their
// second with the one before, so it keeps what was worked out for that.
type clock struct {
	second int64
	text   [20]byte // up to the point; empty at first
}

func (c *clock) append(b []byte, t machine.Instant) []byte {
	second, fraction := int64(t)/1e9, int64(t)%1e9
	if fraction < 0 {
		second, fraction = second-1, fraction+1e9
	}
	if second != c.second || c.text[19] == 0 {
		c.second = second
		time.Unix(second, 0).UTC().AppendFormat(c.text[:0], "2006-01-02T15:04:05.")
	}
	b = append(b, c.text[:]...)
	for scale := int64(1e8); scale > 0; scale /= 10 {
		b = append(b, '0'+byte(fraction/scale%10))
	}
	return append(b, 'Z')
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

const hexDigits = "0123456789abcdef"

// appendJSONString writes s as a JSON string; bytes that are no UTF-8 become
// U+FFFD, as encoding/json has it.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c == '\n':
				b = append(b, '\\', 'n')
			case c == '\t':
				b = append(b, '\\', 't')
			case c == '\r':
				b = append(b, '\\', 'r')
			case c < 0x20 || c == 0x7f:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			default:
				b = append(b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		b = utf8.AppendRune(b, r)
		i += n
	}
	return append(b, '"')
}
