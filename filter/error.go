package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/printable"
)

// Error says what is wrong with a filter, and where.
type Error struct {
	Filter     string
	Offset     int // byte in Filter where the faulty part begins
	Length     int // bytes of the faulty part; Pointer marks at least 1
	Message    string
	Suggestion string // a likely correction; empty if there is none
}

// Column returns the position in characters, from 1.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Filter[:e.Offset]) + 1 }

func (e *Error) Error() string {
	s := fmt.Sprintf("filter, column %d: %s", e.Column(), e.Message)
	if e.Suggestion != "" {
		s += "; did you mean " + e.Suggestion + "?"
	}
	return s
}

// Pointer returns the filter's text and, below it, a line that marks the faulty
// part. Control characters are escaped, so that they cannot affect a terminal.
func (e *Error) Pointer() string {
	from, to := e.Offset, min(e.Offset+e.Length, len(e.Filter))
	blanks := utf8.RuneCountInString(printable.String(e.Filter[:from]))
	marks := utf8.RuneCountInString(printable.String(e.Filter[from:to]))
	return printable.String(e.Filter) + "\n" + strings.Repeat(" ", blanks) + strings.Repeat("^", max(marks, 1))
}

// span is a range of the filter's text.
type span struct{ from, to int }

func (s span) with(o span) span { return span{min(s.from, o.from), max(s.to, o.to)} }

// fault is the panic value that ends lexing, parsing or compiling from any
// depth. Compile converts it to its Error.
type fault struct{ *Error }

func fail(text string, at span, suggestion, format string, args ...any) {
	panic(fault{&Error{
		Filter: text, Offset: min(at.from, len(text)), Length: max(at.to-at.from, 1),
		Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
	}})
}
