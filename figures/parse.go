package figures

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/printable"
)

// Error says what is wrong with a condition, and where.
type Error struct {
	Text    string
	Offset  int // byte in Text where the faulty part begins
	Message string
}

// Column returns the position in characters, from 1.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Text[:e.Offset]) + 1 }

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column(), e.Message) }

// Pointer returns the condition and, below it, a line that marks the faulty part.
func (e *Error) Pointer() string {
	return printable.String(e.Text) + "\n" +
		strings.Repeat(" ", utf8.RuneCountInString(printable.String(e.Text[:e.Offset]))) + "^"
}

// Parse reads a condition. With changes set it takes changes too, as +20ms, and the
// figures of comparisons. Errors are of type *Error.
//
//	condition  = all { ("or" | "||") all }
//	all        = one { ("and" | "&&") one }
//	one        = ("not" | "!") one | "(" condition ")" | FIGURE [ OP VALUE ]
//	OP         = ">" | ">=" | "<" | "<=" | "==" | "!="
//	VALUE      = [ "+" | "-" ] NUMBER [ UNIT ]
//
// A figure that counts may stand alone: `errors` is `errors > 0`.
func Parse(text string, changes bool) (c *Condition, err error) {
	p := &parser{text: text, changes: changes}
	if p.err = p.next(); p.err == nil {
		root := p.either(0)
		if p.err == nil && p.token != "" {
			p.fail("expected `and`, `or` or the end, found %q", p.token)
		}
		c = &Condition{text, root}
	}
	if p.err != nil {
		return nil, p.err
	}
	return c, nil
}

// depthMost bounds parentheses within parentheses.
// Source: bound, how deep a condition nests
const depthMost = 64

type parser struct {
	text    string
	changes bool
	token   string // the current one; "" at the end
	at, end int    // where it lies
	err     error
}

var symbols = []string{">=", "<=", "==", "!=", "&&", "||", ">", "<", "!", "(", ")"}

// next reads the next token.
func (p *parser) next() error {
	p.at = p.end
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	rest := p.text[p.at:]
	if rest == "" {
		p.token, p.end = "", p.at
		return nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			p.token, p.end = s, p.at+len(s)
			return nil
		}
	}
	n := strings.IndexAny(rest, " \t\r\n<>=!&|()")
	switch {
	case n < 0:
		n = len(rest)
	case n == 0:
		_, n = utf8.DecodeRuneInString(rest)
		p.token, p.end = rest[:n], p.at+n
		hint := map[string]string{"=": "==", "&": "&&", "|": "||"}[p.token]
		return &Error{p.text, p.at, fmt.Sprintf("%q is no operator; did you mean %s?", p.token, hint)}
	}
	p.token, p.end = rest[:n], p.at+n
	return nil
}

func (p *parser) advance() {
	if p.err == nil {
		p.err = p.next()
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &Error{p.text, p.at, fmt.Sprintf(format, args...)}
	}
}

func (p *parser) is(words ...string) bool { return p.err == nil && slices.Contains(words, p.token) }

func (p *parser) either(depth int) node {
	x := p.both(depth)
	for p.is("or", "||") {
		p.advance()
		x = either{x, p.both(depth)}
	}
	return x
}

func (p *parser) both(depth int) node {
	x := p.one(depth)
	for p.is("and", "&&") {
		p.advance()
		x = both{x, p.one(depth)}
	}
	return x
}

func (p *parser) one(depth int) node {
	switch {
	case p.err != nil:
		return nil
	case depth > depthMost:
		p.fail("expected at most %d parentheses and `not` within each other", depthMost)
		return nil
	case p.is("not", "!"):
		p.advance()
		return negated{p.one(depth + 1)}
	case p.is("("):
		open := p.at
		p.advance()
		x := p.either(depth + 1)
		if p.err == nil && p.token != ")" {
			p.at = open
			p.fail("expected a ) for this (")
		}
		p.advance()
		return x
	}
	return p.term()
}

// term reads a comparison.
func (p *parser) term() node {
	if p.token == "" {
		p.fail("expected a figure such as loss, found the end")
		return nil
	}
	f, ok := lookup(p.token)
	switch known := Names(p.changes); {
	case !ok:
		if near := filter.Nearest(p.token, known); near != "" {
			p.fail("no figure %q; did you mean %s?", p.token, near)
		} else {
			p.fail("no figure %q: expected one of %s", p.token, strings.Join(known, ", "))
		}
		return nil
	case f.Spec().Compare && !p.changes:
		p.fail("%s needs two captures to compare: ackscope compare BEFORE AFTER", f)
		return nil
	}
	t := &Term{Figure: f}
	p.advance()
	if !p.is(">", ">=", "<", "<=", "==", "!=") {
		if p.err == nil && f.Spec().Unit != Count {
			p.fail("expected a comparison such as %s > %s, found %s", f, example(f.Spec().Unit), p.found())
		}
		t.Op = ">"
		return t
	}
	t.Op = p.token
	p.advance()
	if p.err == nil {
		p.value(t)
	}
	p.advance()
	return t
}

func (p *parser) found() string {
	if p.token == "" {
		return "the end"
	}
	return strconv.Quote(p.token)
}

func example(u Unit) string {
	return [...]string{Share: "5%", Time: "500ms", Rate: "20kB/s", Count: "3"}[u]
}

// suffixes are the units of values, longer ones first, with their factors.
var suffixes = map[Unit][]struct {
	text   string
	factor float64
}{
	Share: {{"%", 0.01}},
	Time:  {{"ms", 1e6}, {"us", 1e3}, {"µs", 1e3}, {"min", 60e9}, {"s", 1e9}},
	Rate: {
		{"KB/s", 1e3}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"B/s", 1}, {"kbit/s", 125}, {"Mbit/s", 125e3}, {"bit/s", 0.125},
	},
	Count: {{"", 1}},
}

// value reads the limit of a comparison.
func (p *parser) value(t *Term) {
	text, unit := p.token, t.Figure.Spec().Unit
	sign := strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-")
	if sign && !p.changes {
		p.fail("a sign asks for a change, which needs two captures to compare: ackscope compare BEFORE AFTER")
		return
	}
	t.Change = sign
	if number, ok := strings.CutSuffix(text, "%"); ok && sign && unit != Share {
		if v, err := strconv.ParseFloat(number, 64); err == nil && finite(v) {
			t.Relative, t.Limit = true, v/100
			return
		}
	}
	for _, s := range suffixes[unit] {
		number, ok := strings.CutSuffix(text, s.text)
		if !ok {
			continue
		}
		if v, err := strconv.ParseFloat(number, 64); err == nil && finite(v) {
			t.Limit = v * s.factor
			return
		}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v == 0 {
		return // 0 needs no unit
	}
	p.fail("%s: expected a value such as %s, found %s", t.Figure, example(unit), p.found())
}

func finite(v float64) bool { return v-v == 0 }
