package riptide

import (
	"strconv"
	"strings"
	"unicode/utf8"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// PartKind is what a stretch of a payload can be without a schema.
type PartKind uint8

const (
	PartFixed  PartKind = iota // Bits bits, the same number in every payload; their meaning is not guessed
	PartText                   // a text after its length
	PartTexts                  // a count, and texts
	PartArray                  // a count, and elements of Bits bits
	PartBools                  // a count, and packed bools
	PartVarint                 // a number in groups of 7 bits
)

// Part is one stretch of a payload.
type Part struct {
	Kind PartKind
	Bits int // PartFixed: its width; PartArray: that of an element
}

// String formats a part as schemas do, if they have a word for it.
func (p Part) String() string {
	switch p.Kind {
	case PartText:
		return "string"
	case PartTexts:
		return "string[]"
	case PartArray:
		return "bits:" + strconv.Itoa(p.Bits) + "[]"
	case PartBools:
		return "bool[]"
	case PartVarint:
		return "varint"
	}
	return "bits:" + strconv.Itoa(p.Bits)
}

// Typing is a guess at the values of a message.
type Typing struct {
	Parts []Part
	// Score ranks typings of one message, in bits. It is how much likelier its texts are as texts than
	// by chance, less the cost of each part.
	Score float64
}

func (t *Typing) String() string {
	words := make([]string, len(t.Parts))
	for i, p := range t.Parts {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// Fits reports whether the typing consumes a payload exactly.
func (t *Typing) Fits(r wire.Reader) bool {
	for _, p := range t.Parts {
		if _, ok := p.skip(&r); !ok {
			return false
		}
	}
	return r.Whole()
}

// maxCount is the largest count of a guessed array.
const maxCount = 4096

// skip skips the part. It returns how many elements the part has.
func (p Part) skip(r *wire.Reader) (count int, ok bool) {
	switch p.Kind {
	case PartFixed:
		return 0, r.Skip(p.Bits)
	case PartVarint:
		at := r.Pos()
		_, ok = r.TryVarUint()
		return (r.Pos() - at) / 8, ok
	}
	n, ok := r.TryLength()
	if !ok || n > maxCount {
		return 0, false
	}
	_, ok = p.skipElements(r, n)
	return n, ok
}

// skipElements skips what follows the length of the part.
func (p Part) skipElements(r *wire.Reader, n int) (text float64, ok bool) {
	switch p.Kind {
	case PartText:
		return readText(r, n)
	case PartTexts:
		for range n {
			length, is := r.TryLength()
			if !is {
				return 0, false
			}
			worth, is := readText(r, length)
			if !is {
				return 0, false
			}
			text += worth
		}
		return text, true
	case PartBools:
		return 0, r.Skip(r.BoolsBits(n))
	}
	return 0, r.Skip(n * p.Bits)
}

// The worth of a character as part of a text, in bits against a random byte.
const (
	worthLetter    = 2
	worthPrintable = 1
	worthRune      = 4 // of several bytes, well-formed
	worthControl   = -8
)

// readText weighs n bytes as a text. It returns false where they are not UTF-8.
func readText(r *wire.Reader, n int) (worth float64, ok bool) {
	if n > r.Left()/8 {
		return 0, false
	}
	var pending [utf8.UTFMax]byte
	have := 0
	for range n {
		v, err := r.TryRaw(8)
		if !err {
			return 0, false
		}
		c := byte(v)
		if have == 0 && c < utf8.RuneSelf {
			switch {
			case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ' ':
				worth += worthLetter
			case c > ' ' && c < 0x7f:
				worth += worthPrintable
			case c == '\t' || c == '\n' || c == '\r':
			default:
				worth += worthControl
			}
			continue
		}
		pending[have] = c
		have++
		if utf8.FullRune(pending[:have]) {
			if v, size := utf8.DecodeRune(pending[:have]); v == utf8.RuneError && size <= 1 {
				return 0, false
			}
			worth += worthRune
			have = 0
		}
	}
	return worth, have == 0
}
