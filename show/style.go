// Package show formats packets, decode trees, states and flows as text for
// people. Both the commands and the terminal UI print its texts: for example,
// show.SpanText(90*time.Second) returns "1m 30s".
//
// The text contains SGR sequences for its styles (see Painter). A caller can
// print it unchanged, or translate the styles to colours of its own.
package show

import (
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// Style is an SGR parameter of terminals. A style alone never carries meaning.
type Style string

const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
	Purple Style = "35"
)

// Painter formats text with colours if it is true.
type Painter bool

// Begin starts text in a style.
func (p Painter) Begin(to []byte, s Style) []byte {
	if !p || s == "" {
		return to
	}
	to = append(to, "\x1b["...)
	to = append(to, s...)
	return append(to, 'm')
}

// End ends a style.
func (p Painter) End(to []byte, s Style) []byte {
	if !p || s == "" {
		return to
	}
	return append(to, "\x1b[0m"...)
}

// Text appends text in a style.
func (p Painter) Text(to []byte, s Style, text string) []byte {
	return p.End(append(p.Begin(to, s), text...), s)
}

// String returns text in a style.
func (p Painter) String(s Style, text string) string { return string(p.Text(nil, s, text)) }

// Grouped formats a count with separators of thousands.
func Grouped[T int | uint64](n T) string { return humanize.Comma(int64(n)) }

// Sentence returns text as a sentence: with a capital letter and a full stop.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

// Plural formats a count with its noun: "1 packet", "2 packets".
func Plural[T int | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(n) + " " + noun + "s"
}
