// Package printable makes untrusted text safe to print and to quote. For
// example, String("a\x1b[31m\u202e") is `a\x1b[31m\u202e`, in visible
// characters.
//
// Names in captures, schemas and file systems may contain anything. A terminal
// executes control characters. Characters that change the direction of writing
// mislead a reader. A line break in a name forges a line of output.
package printable

import (
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// Rune reports whether a character may appear in output unchanged. Control
// characters (C0, DEL, C1), direction controls, line and paragraph separators,
// and private and unassigned characters may not. The space may.
func Rune(r rune) bool { return unicode.IsPrint(r) }

// Append appends text to a line of output. Characters that Rune refuses become
// escapes:
//
//   - \n and \t;
//   - \x1b for a byte below 0x80, or one that is not UTF-8;
//   - \u202e up to U+FFFF, and \U000e0041 above.
//
// The result is valid UTF-8 without line breaks.
func Append[T string | []byte](to []byte, text T) []byte {
	b := []byte(text)
	for len(b) > 0 {
		if c := b[0]; c >= ' ' && c < 0x7f {
			to = append(to, c)
			b = b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\n':
			to = append(to, `\n`...)
		case r == '\t':
			to = append(to, `\t`...)
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf:
			to = append(to, '\\', 'x', hexDigits[b[0]>>4], hexDigits[b[0]&15])
		case Rune(r):
			to = append(to, b[:n]...)
		case r > 0xffff:
			to = appendDigits(append(to, `\U`...), r, 8)
		default:
			to = appendDigits(append(to, `\u`...), r, 4)
		}
		b = b[n:]
	}
	return to
}

func appendDigits(to []byte, r rune, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		to = append(to, hexDigits[r>>shift&15])
	}
	return to
}

// String returns one text as Append writes it. It allocates nothing if nothing
// needs an escape.
func String(text string) string {
	if Clean(text) {
		return text
	}
	return string(Append(nil, text))
}

// Clean reports whether Append leaves a text unchanged.
func Clean(text string) bool {
	ascii := 0
	for ascii < len(text) && text[ascii] >= ' ' && text[ascii] < 0x7f {
		ascii++
	}
	text = text[ascii:]
	for i, r := range text {
		if !Rune(r) || r == utf8.RuneError && !validAt(text, i) {
			return false
		}
	}
	return true
}

func validAt(text string, i int) bool {
	_, n := utf8.DecodeRuneInString(text[i:])
	return n > 1
}

// AppendJSONRune appends a character of a JSON string. A character that Rune
// accepts stays unchanged. Another becomes \u202e; above U+FFFF it becomes the
// two surrogates that JSON requires. The caller handles JSON's own escapes
// (quotes, backslashes).
func AppendJSONRune(to []byte, r rune) []byte {
	const (
		surrogates  = 0x10000
		high, low   = 0xd800, 0xdc00
		halfBits    = 10
		halfOfRunes = 1<<halfBits - 1
	)
	switch {
	case Rune(r):
		return utf8.AppendRune(to, r)
	case r >= surrogates:
		r -= surrogates
		to = appendDigits(append(to, `\u`...), high+r>>halfBits, 4)
		return appendDigits(append(to, `\u`...), low+r&halfOfRunes, 4)
	}
	return appendDigits(append(to, `\u`...), r, 4)
}

// AppendJSON appends output of encoding/json. Characters in its strings that
// Rune refuses become \u escapes, which do not change the values. Line breaks
// between values stay.
func AppendJSON(to, text []byte) []byte {
	for len(text) > 0 {
		if c := text[0]; c == '\n' || c >= ' ' && c < 0x7f {
			to = append(to, c)
			text = text[1:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		to = AppendJSONRune(to, r)
		text = text[n:]
	}
	return to
}
