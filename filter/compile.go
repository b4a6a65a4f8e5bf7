package filter

import (
	"strings"
)

// Filter is a compiled display filter. It is immutable. Several goroutines may
// use it, each with its own records.
type Filter struct {
	text  string
	needs Needs
	scope Scope
	uses  []fieldUse
	slots int // that sums use in the record
	match Predicate
}

// maxText bounds a filter's length in bytes.
const maxText = 64 << 10

// Compile compiles a filter of at most 64 KiB against the table. A blank text
// matches everything. The error is an *Error.
func (t *Table) Compile(text string) (f *Filter, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case fault:
			f, err = nil, x.Error
		default:
			panic(x)
		}
	}()
	if len(text) > maxText {
		return nil, &Error{Filter: text[:40], Message: "longer than 64 KiB"}
	}
	f = &Filter{text: text, match: func(*Record) bool { return true }}
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	known := func(s string) bool { _, ok := t.Lookup(s); return ok }
	p := parser{text: text, tokens: lex(text, known), field: known}
	c := compiler{table: t, text: text}
	f.match = c.test(p.parse())
	f.needs, f.uses, f.slots = c.needs, c.uses, c.slots
	for _, x := range c.uses {
		f.scope |= x.scope
	}
	return f, nil
}

// Match reports whether the record passes.
func (f *Filter) Match(r *Record) bool {
	r.scratch = r.scratch[:0]
	if len(r.slots) < f.slots {
		r.slots = make([]uint64, f.slots)
	}
	return f.match(r)
}

// Needs returns what the filter requires of the reader of the capture.
func (f *Filter) Needs() Needs { return f.needs }

// String returns the filter's text.
func (f *Filter) String() string { return f.text }

type compiler struct {
	table *Table
	text  string
	needs Needs
	uses  []fieldUse
	slots int // slots of the record that are in use
}

func (c *compiler) fail(at span, suggestion, format string, args ...any) {
	fail(c.text, at, suggestion, format, args...)
}

func (c *compiler) source(at span) string { return c.text[at.from:at.to] }

func (c *compiler) test(n node) Predicate {
	switch n := n.(type) {
	case *logic:
		l, r := c.test(n.l), c.test(n.r)
		switch n.op {
		case "&&":
			return func(x *Record) bool { return l(x) && r(x) }
		case "||":
			return func(x *Record) bool { return l(x) || r(x) }
		default:
			return func(x *Record) bool { return l(x) != r(x) }
		}
	case *not:
		x := c.test(n.x)
		return func(r *Record) bool { return !x(r) }
	case *exists:
		if l, ok := n.x.(*literal); ok {
			c.unknown(l)
		}
		o := c.operand(n.x)
		if o.present != nil {
			return o.present
		}
		return o.exist()
	case *compare:
		return c.compare(n)
	default:
		return c.member(n.(*member))
	}
}
