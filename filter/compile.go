package filter

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Filter is a compiled display filter. It is immutable and may be used by
// several goroutines, each with records of its own.
type Filter struct {
	text  string
	needs Needs
	match predicate
}

// maxText bounds a filter's length in bytes.
const maxText = 64 << 10

// Compile reads a filter against the table. A blank text matches everything.
// The error is an *Error.
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
	p := parser{text: text, tokens: lex(text), field: func(s string) bool { _, ok := t.Lookup(s); return ok }}
	c := compiler{table: t, text: text}
	f.match = c.test(p.parse())
	f.needs = c.needs
	return f, nil
}

// Match reports whether the record passes.
func (f *Filter) Match(r *Record) bool {
	r.scratch = r.scratch[:0]
	return f.match(r)
}

// Needs says what the filter asks of the reader of the capture.
func (f *Filter) Needs() Needs { return f.needs }

// String gives the filter's text.
func (f *Filter) String() string { return f.text }

type compiler struct {
	table *Table
	text  string
	needs Needs
}

func (c *compiler) fail(at span, suggestion, format string, args ...any) {
	fail(c.text, at, suggestion, format, args...)
}

func (c *compiler) source(at span) string { return c.text[at.from:at.to] }

func (c *compiler) test(n node) predicate {
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

// operand is a field, or what is made of one, with its type.
type operand struct {
	values
	kind    Kind
	unit    string
	enum    map[uint64]string
	words   []string
	present predicate // of headings
	name    string    // for messages
}

// unknown reports a word that is neither a field nor, here, a value.
func (c *compiler) unknown(l *literal) {
	if l.quoted || l.char {
		c.fail(l.at, "", "expected a field, found text: a filter asks about fields")
	}
	if s := l.text; s != "" && (digit(s[0]) || s[0] == '-' || s[0] == ':') {
		c.fail(l.at, "", "expected a field, found %q: a value is compared with a field", s)
	}
	c.fail(l.at, c.table.Suggest(l.text), "no field is named %q", l.text)
}

func (c *compiler) operand(n node) *operand {
	switch n := n.(type) {
	case *literal:
		c.unknown(n)
	case *name:
		f, _ := c.table.Lookup(n.text)
		c.needs |= f.needs
		return &operand{values: f.values, kind: f.Kind, unit: f.Unit, enum: f.enum, words: f.Words, present: f.present, name: f.Name}
	case *slice:
		return c.slice(n)
	case *mask:
		return c.mask(n)
	}
	return c.call(n.(*call))
}

func (c *compiler) slice(n *slice) *operand {
	o := c.operand(n.x)
	parts := n.parts
	out := &operand{kind: Bytes, name: c.source(n.where())}
	switch o.kind {
	case Bytes, Text:
		out.b = mapped(o.b, func(r *Record, v []byte) ([]byte, bool) { return cut(r, v, parts) })
	case Address:
		out.b = mapped(o.a, func(r *Record, v netip.Addr) ([]byte, bool) {
			at := len(r.scratch)
			if v.Is4() {
				b := v.As4()
				r.scratch = append(r.scratch, b[:]...)
			} else {
				b := v.As16()
				r.scratch = append(r.scratch, b[:]...)
			}
			return cut(r, r.scratch[at:len(r.scratch):len(r.scratch)], parts)
		})
	case Heading, Uint, Int, Bool, Float, Duration, Time:
		c.fail(n.at, "", "%s is %s: slices are of bytes, text and addresses", o.name, article(o.kind))
	}
	return out
}

func article(k Kind) string {
	switch k {
	case Uint, Int, Address:
		return "an " + k.String()
	case Bytes, Text:
		return k.String()
	case Heading, Bool, Float, Duration, Time:
	}
	return "a " + k.String()
}

// cut gives the bytes of v that the parts name; false where one lies outside.
func cut(r *Record, v []byte, parts []stretch) ([]byte, bool) {
	if len(parts) == 1 {
		return parts[0].of(v)
	}
	at := len(r.scratch)
	for _, p := range parts {
		b, ok := p.of(v)
		if !ok {
			return nil, false
		}
		r.scratch = append(r.scratch, b...)
	}
	return r.scratch[at:len(r.scratch):len(r.scratch)], true
}

func (s stretch) of(v []byte) ([]byte, bool) {
	from := s.from
	if from < 0 {
		from += len(v)
	}
	end := from + s.length
	switch {
	case s.open:
		end = len(v)
	case s.byEnd:
		end = s.to + 1
		if s.to < 0 {
			end += len(v)
		}
	}
	if from < 0 || end > len(v) || from >= end {
		return nil, false
	}
	return v[from:end], true
}

func (c *compiler) mask(n *mask) *operand {
	l, r := n.l, n.r
	if _, ok := l.(*literal); ok {
		l, r = r, l
	}
	o := c.operand(l)
	if o.kind != Uint {
		c.fail(l.where(), "", "%s is %s: & is for unsigned integers", o.name, article(o.kind))
	}
	lit, ok := r.(*literal)
	if !ok {
		c.fail(r.where(), "", "expected a number after &")
	}
	bits := c.uint(o, lit)
	// As in Wireshark, the bare form asks whether any of the bits is set.
	out := &operand{kind: Uint, name: c.source(n.where())}
	out.u = mapped(o.u, func(_ *Record, v uint64) (uint64, bool) { return v & bits, true })
	some := o.u(func(_ *Record, v uint64) bool { return v&bits != 0 }, false)
	out.present = some
	return out
}

var functions = []string{"len", "count", "upper", "lower", "string", "abs"}

func (c *compiler) call(n *call) *operand {
	known := false
	for _, f := range functions {
		known = known || f == n.function
	}
	if !known {
		c.fail(n.nameAt, Nearest(n.function, functions), "no function is named %q: there are %s", c.source(n.nameAt), strings.Join(functions, ", "))
	}
	if len(n.args) != 1 {
		c.fail(n.at, "", "%s takes 1 argument, found %d", n.function, len(n.args))
	}
	o := c.operand(n.args[0])
	out := &operand{name: c.source(n.where())}
	wrong := func(expected string) {
		c.fail(n.args[0].where(), "", "%s is %s: %s is for %s", o.name, article(o.kind), n.function, expected)
	}
	switch n.function {
	case "len":
		out.kind, out.unit = Uint, "bytes"
		if o.b == nil {
			wrong("bytes and text")
		}
		out.u = mapped(o.b, func(_ *Record, v []byte) (uint64, bool) { return uint64(len(v)), true })
	case "count":
		out.kind = Uint
		if o.kind == Heading {
			wrong("fields with values")
		}
		out.u = o.count()
	case "upper", "lower":
		if o.kind != Text {
			wrong("text")
		}
		out.kind = Text
		fold := lower
		if n.function == "upper" {
			fold = upper
		}
		out.b = mapped(o.b, func(r *Record, v []byte) ([]byte, bool) {
			at := len(r.scratch)
			for _, x := range v {
				r.scratch = append(r.scratch, fold(x))
			}
			return r.scratch[at:], true
		})
	case "string":
		out.kind = Text
		out.b = o.text()
		if out.b == nil {
			wrong("numbers, addresses and text")
		}
	case "abs":
		out.kind, out.unit = o.kind, o.unit
		switch {
		case o.i != nil && o.kind != Time:
			out.i = mapped(o.i, func(_ *Record, v int64) (int64, bool) { return max(v, -v), true })
		case o.f != nil:
			out.f = mapped(o.f, func(_ *Record, v float64) (float64, bool) { return math.Abs(v), true })
		case o.kind == Uint:
			out.u = o.u
		default:
			wrong("numbers")
		}
	}
	return out
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c + 'A' - 'a'
	}
	return c
}

func (v *values) count() source[uint64] {
	switch {
	case v.u != nil:
		return counted(v.u)
	case v.i != nil:
		return counted(v.i)
	case v.f != nil:
		return counted(v.f)
	case v.b != nil:
		return counted(v.b)
	default:
		return counted(v.a)
	}
}

// text gives an operand's values as text; nil for bytes and headings.
func (o *operand) text() source[[]byte] {
	switch {
	case o.kind == Text:
		return o.b
	case o.u != nil:
		return mapped(o.u, written(func(to []byte, v uint64) []byte { return strconv.AppendUint(to, v, 10) }))
	case o.i != nil:
		return mapped(o.i, written((&Field{Kind: o.kind}).appendInt))
	case o.f != nil:
		return mapped(o.f, written(appendFloat))
	case o.a != nil:
		return mapped(o.a, written(func(to []byte, v netip.Addr) []byte { return v.AppendTo(to) }))
	}
	return nil
}

// written makes text of a value, in the record's scratch.
func written[T any](write func([]byte, T) []byte) func(*Record, T) ([]byte, bool) {
	return func(r *Record, v T) ([]byte, bool) {
		at := len(r.scratch)
		r.scratch = write(r.scratch, v)
		return r.scratch[at:], true
	}
}

var mirrored = map[string]string{"==": "==", "!=": "!=", "===": "===", "!==": "!==", ">": "<", ">=": "<=", "<": ">", "<=": ">="}

func (c *compiler) compare(n *compare) predicate {
	l, r, op := n.l, n.r, n.op
	if lit, ok := l.(*literal); ok {
		if other, ok := r.(*literal); ok {
			// A word that could be a field is the likelier mistake.
			for _, x := range []*literal{lit, other} {
				if !x.quoted && !x.char && c.looksLikeField(x.text) {
					c.unknown(x)
				}
			}
			c.unknown(lit)
		}
		turned, ok := mirrored[op]
		if !ok {
			c.unknown(lit)
		}
		l, r, op = r, l, turned
	}
	o := c.operand(l)
	if o.kind == Heading {
		c.fail(l.where(), "", "%s has no value to compare: alone it asks whether it is there", o.name)
	}
	if word, ok := r.(*name); ok && o.kind == Text {
		// A protocol's name is a word of flow.protocol, and a field without a value.
		if f, _ := c.table.Lookup(word.text); f.Kind == Heading {
			r = &literal{at: word.at, text: word.text, quoted: true}
		}
	}
	lit, isLiteral := r.(*literal)
	if op == "contains" || op == "matches" {
		if !isLiteral {
			if op == "matches" {
				c.fail(r.where(), "", "expected a regular expression in quotes after matches")
			}
			return c.containsField(n, o, c.operand(r))
		}
		return c.search(n, o, lit)
	}
	all := n.quantifier == "all"
	switch op {
	case "!=":
		all, op = n.quantifier != "any", "!="
	case "===":
		all, op = n.quantifier != "any", "=="
	case "!==":
		op = "!="
	}
	if isLiteral {
		return c.against(o, op, lit, all)
	}
	return c.fields(n, o, c.operand(r), op, all)
}

func (c *compiler) looksLikeField(s string) bool {
	return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') && !strings.Contains(s, ":")
}

// against compares an operand with a literal.
func (c *compiler) against(o *operand, op string, lit *literal, all bool) predicate {
	switch o.kind {
	case Uint, Bool:
		c.plain(o, op, lit)
		return o.u(ordered(op, c.uint(o, lit)), all)
	case Int, Duration, Time:
		return o.i(ordered(op, c.int(o, lit)), all)
	case Float:
		return o.f(ordered(op, c.float(o, lit)), all)
	case Address:
		if n := c.network(o, lit); o.in4 != nil && n.addr.Is4() && (op == "==" || op == "!=") {
			four := network4{mask: ^uint32(0) << (32 - n.prefix.Bits()), outside: op == "!="}
			b := n.prefix.Addr().As4()
			four.want = binary.BigEndian.Uint32(b[:])
			return o.in4(four, all)
		}
		return o.a(c.addressTest(o, op, lit), all)
	default:
		return o.b(byteTest(op, c.bytes(o, lit)), all)
	}
}

// plain refuses an order between values that have none.
func (c *compiler) plain(o *operand, op string, lit *literal) {
	if o.kind == Bool && op != "==" && op != "!=" {
		c.fail(lit.at, "", "%s is true or false: compare it with == or !=", o.name)
	}
}

func ordered[T uint64 | int64 | float64](op string, x T) test[T] {
	switch op {
	case "==":
		return func(_ *Record, v T) bool { return v == x }
	case "!=":
		return func(_ *Record, v T) bool { return v != x }
	case ">":
		return func(_ *Record, v T) bool { return v > x }
	case ">=":
		return func(_ *Record, v T) bool { return v >= x }
	case "<":
		return func(_ *Record, v T) bool { return v < x }
	default:
		return func(_ *Record, v T) bool { return v <= x }
	}
}

func byteTest(op string, x []byte) test[[]byte] {
	switch op {
	case "==":
		return func(_ *Record, v []byte) bool { return bytes.Equal(v, x) }
	case "!=":
		return func(_ *Record, v []byte) bool { return !bytes.Equal(v, x) }
	}
	holds := holding(op)
	return func(_ *Record, v []byte) bool { return holds(bytes.Compare(v, x)) }
}

// holding says for an operator which results of a three-way comparison satisfy it.
func holding(op string) func(int) bool {
	switch op {
	case "==":
		return func(n int) bool { return n == 0 }
	case "!=":
		return func(n int) bool { return n != 0 }
	case ">":
		return func(n int) bool { return n > 0 }
	case ">=":
		return func(n int) bool { return n >= 0 }
	case "<":
		return func(n int) bool { return n < 0 }
	default:
		return func(n int) bool { return n <= 0 }
	}
}

// addressTest holds addresses against an address or a network. An order exists
// between addresses of one family only.
func (c *compiler) addressTest(o *operand, op string, lit *literal) test[netip.Addr] {
	n := c.network(o, lit)
	switch op {
	case "==":
		return func(_ *Record, v netip.Addr) bool { return n.contains(v) }
	case "!=":
		return func(_ *Record, v netip.Addr) bool { return !n.contains(v) }
	}
	if !n.prefix.IsSingleIP() {
		c.fail(lit.at, "", "a network is compared with == or != only")
	}
	holds, x := holding(op), n.prefix.Addr()
	return func(_ *Record, v netip.Addr) bool { return v.BitLen() == x.BitLen() && holds(v.Compare(x)) }
}

// fields compares two operands, value by value.
func (c *compiler) fields(n *compare, l, r *operand, op string, all bool) predicate {
	if r.kind == Heading {
		c.fail(n.r.where(), "", "%s has no value to compare: alone it asks whether it is there", r.name)
	}
	holds := holding(op)
	numeric := func(o *operand) bool { return o.u != nil || o.i != nil || o.f != nil }
	switch {
	case l.u != nil && r.u != nil:
		inner := r.u(func(x *Record, w uint64) bool { return holds(three(x.uint, w)) }, all)
		return l.u(func(x *Record, v uint64) bool { x.uint = v; return inner(x) }, all)
	case l.i != nil && r.i != nil:
		inner := r.i(func(x *Record, w int64) bool { return holds(three(x.int, w)) }, all)
		return l.i(func(x *Record, v int64) bool { x.int = v; return inner(x) }, all)
	case numeric(l) && numeric(r) && (l.kind == Time || l.kind == Duration) == (r.kind == Time || r.kind == Duration):
		inner := r.floats()(func(x *Record, w float64) bool { return holds(three(x.float, w)) }, all)
		return l.floats()(func(x *Record, v float64) bool { x.float = v; return inner(x) }, all)
	case l.b != nil && r.b != nil:
		inner := r.b(func(x *Record, w []byte) bool { return holds(bytes.Compare(x.bytes, w)) }, all)
		return l.b(func(x *Record, v []byte) bool { x.bytes = v; return inner(x) }, all)
	case l.a != nil && r.a != nil:
		inner := r.a(func(x *Record, w netip.Addr) bool { return holds(x.addr.Compare(w)) }, all)
		return l.a(func(x *Record, v netip.Addr) bool { x.addr = v; return inner(x) }, all)
	}
	c.fail(n.opAt, "", "%s is %s and %s is %s: they cannot be compared", l.name, article(l.kind), r.name, article(r.kind))
	return nil
}

func three[T uint64 | int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// floats gives numbers of any kind as float64, for comparisons across kinds.
func (o *operand) floats() source[float64] {
	switch {
	case o.u != nil:
		return mapped(o.u, func(_ *Record, v uint64) (float64, bool) { return float64(v), true })
	case o.i != nil:
		return mapped(o.i, func(_ *Record, v int64) (float64, bool) { return float64(v), true })
	}
	return o.f
}

// search is contains and matches with a literal.
func (c *compiler) search(n *compare, o *operand, lit *literal) predicate {
	all := n.quantifier == "all"
	if o.b == nil {
		c.fail(n.opAt, "string("+o.name+") "+n.op+" …", "%s is %s: %s is for bytes and text", o.name, article(o.kind), n.op)
	}
	if n.op == "contains" {
		o.words = nil // a part of a word is no word
		x := c.bytes(o, lit)
		return o.b(func(_ *Record, v []byte) bool { return bytes.Contains(v, x) }, all)
	}
	if !lit.quoted {
		c.fail(lit.at, strconv.Quote(lit.text), "expected a regular expression in quotes after matches")
	}
	re, err := regexp.Compile("(?i)" + lit.text)
	if err != nil {
		c.fail(lit.at, "", "not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return o.b(func(_ *Record, v []byte) bool { return re.Match(v) }, all)
}

func (c *compiler) containsField(n *compare, l, r *operand) predicate {
	if l.b == nil || r.b == nil {
		c.fail(n.opAt, "", "%s is %s and %s is %s: contains is for bytes and text", l.name, article(l.kind), r.name, article(r.kind))
	}
	all := n.quantifier == "all"
	inner := r.b(func(x *Record, w []byte) bool { return bytes.Contains(x.bytes, w) }, all)
	return l.b(func(x *Record, v []byte) bool { x.bytes = v; return inner(x) }, all)
}
