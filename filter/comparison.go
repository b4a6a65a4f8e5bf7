package filter

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (c *compiler) compare(n *compare) Predicate {
	l, r, op := n.l, n.r, n.op
	if lit, ok := l.(*literal); ok {
		if other, ok := r.(*literal); ok {
			// A word that could be a field is the more likely mistake.
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
		// A protocol's name is a value of flow.protocol, and also a field without a
		// value.
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
func (c *compiler) against(o *operand, op string, lit *literal, all bool) Predicate {
	switch o.kind {
	case Uint, Bool:
		c.plain(o, op, lit)
		return o.Uint(ordered(op, c.uint(o, lit)), all)
	case Int, Duration, Time:
		return o.Int(ordered(op, c.int(o, lit)), all)
	case Float:
		return o.Float(ordered(op, c.float(o, lit)), all)
	case Address:
		if n := c.network(o, lit); o.In4 != nil && n.addr.Is4() && (op == "==" || op == "!=") {
			four := Network4{mask: ^uint32(0) << (32 - n.prefix.Bits()), outside: op == "!="}
			b := n.prefix.Addr().As4()
			four.want = binary.BigEndian.Uint32(b[:])
			return o.In4(four, all)
		}
		return o.Address(c.addressTest(o, op, lit), all)
	default:
		x := c.bytes(o, lit)
		if o.Strings != nil {
			return o.Strings(ordered(op, string(x)), all)
		}
		return o.Bytes(byteTest(op, x, orderOf(o.kind)), all)
	}
}

// plain refuses an order for values that have none.
func (c *compiler) plain(o *operand, op string, lit *literal) {
	if o.kind == Bool && op != "==" && op != "!=" {
		c.fail(lit.at, "", "%s is true or false: compare it with == or !=", o.name)
	}
}

func ordered[T uint64 | int64 | float64 | string](op string, x T) Test[T] {
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

// orderOf returns the order of values of a kind. Text is ordered by its
// characters. Of two byte strings the shorter one is less, as in tshark.
func orderOf(k Kind) func(x, y []byte) int {
	if k == Text {
		return bytes.Compare
	}
	return func(x, y []byte) int {
		if d := cmp.Compare(len(x), len(y)); d != 0 {
			return d
		}
		return bytes.Compare(x, y)
	}
}

func byteTest(op string, x []byte, order func(x, y []byte) int) Test[[]byte] {
	switch op {
	case "==":
		return func(_ *Record, v []byte) bool { return bytes.Equal(v, x) }
	case "!=":
		return func(_ *Record, v []byte) bool { return !bytes.Equal(v, x) }
	}
	holds := holding(op)
	return func(_ *Record, v []byte) bool { return holds(order(v, x)) }
}

// holding returns a function that reports whether the result of a three-way
// comparison satisfies op.
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

// addressTest compares addresses with an address or a network. An order exists
// only between addresses of one family.
func (c *compiler) addressTest(o *operand, op string, lit *literal) Test[netip.Addr] {
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
func (c *compiler) fields(n *compare, l, r *operand, op string, all bool) Predicate {
	if r.kind == Heading {
		c.fail(n.r.where(), "", "%s has no value to compare: alone it asks whether it is there", r.name)
	}
	holds := holding(op)
	numeric := func(o *operand) bool { return o.Uint != nil || o.Int != nil || o.Float != nil }
	switch {
	case l.Uint != nil && r.Uint != nil:
		inner := r.Uint(func(x *Record, w uint64) bool { return holds(three(x.uint, w)) }, all)
		return l.Uint(func(x *Record, v uint64) bool { x.uint = v; return inner(x) }, all)
	case l.Int != nil && r.Int != nil:
		inner := r.Int(func(x *Record, w int64) bool { return holds(three(x.int, w)) }, all)
		return l.Int(func(x *Record, v int64) bool { x.int = v; return inner(x) }, all)
	case numeric(l) && numeric(r) && (l.kind == Time || l.kind == Duration) == (r.kind == Time || r.kind == Duration):
		inner := r.floats()(func(x *Record, w float64) bool { return holds(three(x.float, w)) }, all)
		return l.floats()(func(x *Record, v float64) bool { x.float = v; return inner(x) }, all)
	case l.Bytes != nil && r.Bytes != nil:
		order := orderOf(max(l.kind, r.kind)) // Text is the greater kind
		inner := r.Bytes(func(x *Record, w []byte) bool { return holds(order(x.bytes, w)) }, all)
		return l.Bytes(func(x *Record, v []byte) bool { x.bytes = v; return inner(x) }, all)
	case l.Address != nil && r.Address != nil:
		inner := r.Address(func(x *Record, w netip.Addr) bool { return holds(x.addr.Compare(w)) }, all)
		return l.Address(func(x *Record, v netip.Addr) bool { x.addr = v; return inner(x) }, all)
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

// floats returns numbers of any kind as float64, for comparisons across kinds.
func (o *operand) floats() Source[float64] {
	switch {
	case o.Uint != nil:
		return mapped(o.Uint, func(_ *Record, v uint64) (float64, bool) { return float64(v), true })
	case o.Int != nil:
		return mapped(o.Int, func(_ *Record, v int64) (float64, bool) { return float64(v), true })
	}
	return o.Float
}

// search compiles contains and matches with a literal.
func (c *compiler) search(n *compare, o *operand, lit *literal) Predicate {
	all := n.quantifier == "all"
	if o.Bytes == nil {
		c.fail(n.opAt, "string("+o.name+") "+n.op+" …", "%s is %s: %s is for bytes and text", o.name, article(o.kind), n.op)
	}
	if n.op == "contains" {
		o.words = nil // contains accepts a part of a word
		x := c.bytes(o, lit)
		return o.Bytes(func(_ *Record, v []byte) bool { return bytes.Contains(v, x) }, all)
	}
	if !lit.quoted {
		c.fail(lit.at, strconv.Quote(lit.text), "expected a regular expression in quotes after matches")
	}
	re, err := regexp.Compile("(?i)" + lit.text)
	if err != nil {
		c.fail(lit.at, "", "not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if o.kind == Text {
		return o.Bytes(func(_ *Record, v []byte) bool { return re.Match(v) }, all)
	}
	return o.Bytes(func(r *Record, v []byte) bool { return re.Match(r.asLatin1(v)) }, all)
}

// asLatin1 converts bytes to the form that regular expressions match: each byte
// becomes one character, so that \xff matches the byte 0xff.
func (r *Record) asLatin1(v []byte) []byte {
	if !slices.ContainsFunc(v, func(b byte) bool { return b >= utf8.RuneSelf }) {
		return v
	}
	at := len(r.scratch)
	for _, b := range v {
		r.scratch = utf8.AppendRune(r.scratch, rune(b))
	}
	return r.scratch[at:len(r.scratch):len(r.scratch)]
}

func (c *compiler) containsField(n *compare, l, r *operand) Predicate {
	if l.Bytes == nil || r.Bytes == nil {
		c.fail(n.opAt, "", "%s is %s and %s is %s: contains is for bytes and text", l.name, article(l.kind), r.name,
			article(r.kind))
	}
	all := n.quantifier == "all"
	inner := r.Bytes(func(x *Record, w []byte) bool { return bytes.Contains(x.bytes, w) }, all)
	return l.Bytes(func(x *Record, v []byte) bool { x.bytes = v; return inner(x) }, all)
}
