package riptide

import (
	"github.com/ackscope/ackscope/dissect"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// framings are the length prefixes over TCP: 4 bytes since July 2023, 2 bytes before and in the
// notes. Builds with the other byte order reverse them, whatever the byte order of their messages.
var framings = func() (out []dissect.Framing) {
	for _, big := range []bool{false, true} {
		for _, size := range []int{4, 2} {
			name := map[int]string{2: "2-byte length", 4: "4-byte length"}[size]
			if big {
				name += ", big-endian"
			}
			out = append(out, dissect.Framing{
				Name: name, Prefix: size, BigEndian: big,
				Max:   65535, // applications can raise the library's limit
				Usual: wire.V21.MaxMessage,
				Weigh: weighFraming(size, big),
			})
		}
	}
	return out
}()

// headerLen is longer than any header, in bytes.
const headerLen = 8

// weighFraming weighs a message by the dialects that have a prefix of the size.
func weighFraming(prefix int, big bool) func(b []byte, length int) float64 {
	var codecs []wire.Codec
	for _, d := range wire.Dialects {
		for _, size := range d.Prefixes {
			if size == prefix {
				codecs = append(codecs, wire.Codec{Dialect: d, BigEndian: big})
			}
		}
	}
	const (
		cannot = -1
		// A first byte of a known type: 11 of 256, or 11 of 16 bit-packed.
		typeByte, typeNibble = 4.5, 0.5
		// A length that is the only one, or one of two, of its type.
		fixedLength = 4
	)
	return func(b []byte, length int) float64 {
		best := float64(cannot)
		for _, c := range codecs {
			worth := typeByte
			if c.Dialect.Form == wire.BitPacked {
				worth = typeNibble
			}
			var m wire.Message
			switch {
			case c.Fits(b, length, &m):
				if m.Oddities != 0 && m.Oddities != wire.UnreadCause {
					worth = 0
				} else if c.Dialect.Layout(m.Type).Body == wire.NoBody {
					worth += fixedLength
				}
			case len(b) < length && len(b) < headerLen && known(c, b[0]):
				worth = 0
			default:
				continue
			}
			best = max(best, worth)
		}
		return best
	}
}

// known reports whether a first byte names a type.
func known(c wire.Codec, first byte) bool {
	if c.Dialect.Form == wire.BitPacked {
		first &= 15
	}
	_, ok := c.Dialect.TypeOf(first)
	return ok
}
