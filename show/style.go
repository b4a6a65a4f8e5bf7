// Package show writes packets, decode trees, states and flows as text for eyes:
// what the commands print and what the terminal UI draws is one and the same.
//
// Ring 4 of the house. Text carries its styles as SGR sequences (Painter), so
// that a consumer can print it as it stands or turn them into its own colours.
package show

import (
	"github.com/dustin/go-humanize"
)

// Style is a way to write that terminals know (an SGR parameter); meaning never
// hangs on it alone.
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

// Painter writes in colours, or without.
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

// End ends it.
func (p Painter) End(to []byte, s Style) []byte {
	if !p || s == "" {
		return to
	}
	return append(to, "\x1b[0m"...)
}

// Text adds text in a style.
func (p Painter) Text(to []byte, s Style, text string) []byte {
	return p.End(append(p.Begin(to, s), text...), s)
}

// String returns text in a style.
func (p Painter) String(s Style, text string) string { return string(p.Text(nil, s, text)) }

// Grouped writes a count with separators between thousands.
func Grouped[T int | uint64](n T) string { return humanize.Comma(int64(n)) }

// Plural returns the count with its noun: "1 packet", "2 packets".
func Plural[T int | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(n) + " " + noun + "s"
}
