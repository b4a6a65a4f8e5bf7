package pcapfilter

import (
	"fmt"
	"strings"
)

// Error reports a filter that is outside the language, or outside the subset.
type Error struct {
	Filter string
	Column int // from 1, in bytes
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("capture filter %q, column %d: %s", e.Filter, e.Column, e.Reason)
}

// token is a word, a value or a sign of the filter. The last token is empty.
type token struct {
	text   string
	column int
}

const (
	pairs   = " && || == != <= >= "
	signs   = "()!&|=<>[]"
	longest = 4096 // bytes of a filter: room for some hundred hosts
)

func lex(filter string) ([]token, error) {
	if len(filter) > longest {
		return nil, &Error{
			Filter: filter[:40] + "…", Column: longest + 1,
			Reason: fmt.Sprintf("expected at most %d characters, found %d", longest, len(filter)),
		}
	}
	var out []token
	for i := 0; i < len(filter); {
		c := filter[i]
		begin := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case i+2 <= len(filter) && strings.Contains(pairs, " "+filter[i:i+2]+" "):
			i += 2
		case strings.IndexByte(signs, c) >= 0:
			i++
		case isWord(c):
			for i < len(filter) && isWord(filter[i]) {
				i++
			}
		default:
			return nil, &Error{
				Filter: filter, Column: i + 1,
				Reason: fmt.Sprintf("%q is not in the language of capture filters that ackscope takes", filter[i:i+1]),
			}
		}
		out = append(out, token{filter[begin:i], begin + 1})
	}
	return append(out, token{"", len(filter) + 1}), nil
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(".:/-_", c) >= 0
}
