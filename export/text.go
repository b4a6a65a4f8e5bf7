package export

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Control characters and characters
// that mislead a reader become \u escapes (see package printable). So the
// decoded value is s. Bytes that are not UTF-8 become U+FFFD, as in
// encoding/json.
func AppendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0 // start of the part that needs no escape
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		if c < utf8.RuneSelf {
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			case '\r':
				b = append(b, '\\', 'r')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
		} else {
			r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			b = printable.AppendJSONRune(b, r)
			i += n
		}
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// plain are the bytes that need no escape in a JSON string.
var plain = func() (t [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendHex appends bytes as a JSON string of hexadecimal digits.
func AppendHex(to, b []byte) []byte {
	return append(appendHex(append(to, '"'), b), '"')
}

func appendHex(to, b []byte) []byte {
	return hex.AppendEncode(to, b)
}

// AppendDecimal appends n / 10^digits without zeros at the end. It is much
// faster than formatting a float64.
func AppendDecimal(b []byte, n int64, digits int) []byte {
	left := uint64(n)
	if n < 0 {
		b, left = append(b, '-'), -left // also right for the smallest int64
	}
	scale := uint64(1)
	for range digits {
		scale *= 10
	}
	b = strconv.AppendUint(b, left/scale, 10)
	fraction := left % scale
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

// Clock formats instants as 2006-01-02T15:04:05.000000000Z.
type Clock struct{ clock show.Clock }

// Append appends an instant.
func (c *Clock) Append(b []byte, t machine.Instant) []byte {
	const nanoseconds = 9 // decimals
	c.clock.Layout = "2006-01-02T15:04:05"
	return append(c.clock.Append(b, t, nanoseconds), 'Z')
}

// AppendValid appends text, with U+FFFD in place of each byte that is not
// UTF-8.
func AppendValid(to, b []byte) []byte {
	if utf8.Valid(b) {
		return append(to, b...)
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		to = utf8.AppendRune(to, r)
		b = b[n:]
	}
	return to
}
