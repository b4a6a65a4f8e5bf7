package filter

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// operand is a field, or an expression of fields, with its type.
type operand struct {
	Values
	kind    Kind
	unit    string
	enum    map[uint64]string
	words   []string
	present Predicate // of headings and of slices
	// inside, for a slice, is the source without values outside the bytes. In
	// comparisons such a value is an empty byte string.
	inside Source[[]byte]
	name   string // for messages
}

// unknown reports a word that is neither a field nor, at this position, a
// value.
func (c *compiler) unknown(l *literal) {
	if l.quoted || l.char {
		c.fail(l.at, "", "expected a field, found text: a filter asks about fields")
	}
	if s := l.text; s != "" && (digit(s[0]) || s[0] == '-' || s[0] == ':') {
		c.fail(l.at, "", "expected a field, found %q: a value is compared with a field", s)
	}
	if f, ok := c.table.LookupColumn(l.text); ok {
		c.fail(l.at, "", "expected a field that filters know, found %s, which only columns have (packets -e %s)", f.Name,
			f.Name)
	}
	c.fail(l.at, c.table.Suggest(l.text), "no field is named %q", l.text)
}

func (c *compiler) operand(n node) *operand {
	switch n := n.(type) {
	case *literal:
		c.unknown(n)
	case *name:
		f, _ := c.table.Lookup(n.text)
		c.needs |= f.Needs
		c.uses = append(c.uses, fieldUse{f.Scope, n.at})
		return &operand{
			Values: f.Values, kind: f.Kind, unit: f.Unit, enum: f.Enum, words: f.Words, present: f.Present,
			name: f.Name,
		}
	case *slice:
		return c.slice(n)
	case *mask:
		return c.mask(n)
	case *arithmetic:
		return c.arithmetic(n)
	}
	return c.call(n.(*call))
}

func (c *compiler) slice(n *slice) *operand {
	o := c.operand(n.x)
	parts := n.parts
	out := &operand{kind: Bytes, name: c.source(n.where())}
	within := func(r *Record, v []byte) ([]byte, bool) { return cut(r, v, parts) }
	loose := func(r *Record, v []byte) ([]byte, bool) { b, _ := cut(r, v, parts); return b, true }
	if p := parts[0]; len(parts) == 1 && p.from >= 0 && !p.open && !p.byEnd { // [0:2], the most frequent form
		from, end := p.from, p.from+p.length
		loose = func(_ *Record, v []byte) ([]byte, bool) {
			if end > len(v) {
				return nil, true
			}
			return v[from:end], true
		}
	}
	switch o.kind {
	case Bytes, Text:
		whole := o.Bytes
		if o.inside != nil {
			whole = o.inside
		}
		out.inside = mapped(whole, within)
		out.Bytes = mapped(o.Bytes, loose)
	case Address:
		bytes := mapped(o.Address, func(r *Record, v netip.Addr) ([]byte, bool) {
			at := len(r.scratch)
			if v.Is4() {
				b := v.As4()
				r.scratch = append(r.scratch, b[:]...)
			} else {
				b := v.As16()
				r.scratch = append(r.scratch, b[:]...)
			}
			return r.scratch[at:len(r.scratch):len(r.scratch)], true
		})
		out.inside = mapped(bytes, within)
		out.Bytes = mapped(bytes, loose)
	case Heading, Uint, Int, Bool, Float, Duration, Time:
		c.fail(n.at, "", "%s is %s: slices are of bytes, text and addresses", o.name, article(o.kind))
	}
	out.present = out.inside(Anything, false)
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

// cut returns the bytes of v that the parts select. A part that lies partly or
// wholly outside selects nothing. cut returns false if all of them do.
func cut(r *Record, v []byte, parts []sliceRange) ([]byte, bool) {
	if len(parts) == 1 {
		return parts[0].of(v)
	}
	at, some := len(r.scratch), false
	for _, p := range parts {
		if b, ok := p.of(v); ok {
			r.scratch = append(r.scratch, b...)
			some = true
		}
	}
	return r.scratch[at:len(r.scratch):len(r.scratch)], some
}

func (s sliceRange) of(v []byte) ([]byte, bool) {
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
	if o.kind != Uint && o.kind != Int && (o.kind != Bytes || o.inside == nil) {
		c.fail(l.where(), "", "%s is %s: & is for whole numbers", o.name, article(o.kind))
	}
	switch {
	case o.kind == Bytes && o.inside != nil:
		return c.maskBytes(n, o, r)
	case o.kind == Int:
		o.Uint = mapped(o.Int, func(_ *Record, v int64) (uint64, bool) { return uint64(v), true })
	}
	lit, ok := r.(*literal)
	if !ok {
		c.fail(r.where(), "", "expected a number after &")
	}
	bits := c.uint(o, lit)
	// As in Wireshark, the bare form tests whether any of the bits is set.
	out := &operand{kind: Uint, name: c.source(n.where())}
	out.Uint = mapped(o.Uint, func(_ *Record, v uint64) (uint64, bool) { return v & bits, true })
	some := o.Uint(func(_ *Record, v uint64) bool { return v&bits != 0 }, false)
	out.present = some
	return out
}

// maskBytes compiles & of a slice. Its bytes form one big-endian number.
func (c *compiler) maskBytes(n *mask, o *operand, r node) *operand {
	lit := asLiteral(r)
	if lit == nil {
		c.fail(r.where(), "", "expected bytes or a number after &")
	}
	const most = 8
	number := func(v []byte) (x uint64, ok bool) {
		for _, b := range v {
			x = x<<8 | uint64(b)
		}
		return x, len(v) > 0 && len(v) <= most
	}
	bits, ok := number(c.bytes(o, lit))
	if !ok {
		c.fail(lit.at, "", "expected at most %d bytes after &", most)
	}
	out := &operand{kind: Uint, name: c.source(n.where())}
	whole := mapped(o.inside, func(_ *Record, v []byte) (uint64, bool) { return number(v) })
	out.Uint = mapped(whole, func(_ *Record, v uint64) (uint64, bool) { return v & bits, true })
	out.present = whole(func(_ *Record, v uint64) bool { return v&bits != 0 }, false)
	return out
}

var functions = []string{"len", "count", "upper", "lower", "string", "abs", "max", "min"}

func (c *compiler) call(n *call) *operand {
	known := false
	for _, f := range functions {
		known = known || f == n.function
	}
	if !known {
		c.fail(n.nameAt, Nearest(n.function, functions), "no function is named %q: there are %s", c.source(n.nameAt),
			strings.Join(functions, ", "))
	}
	out := &operand{name: c.source(n.where())}
	if n.function == "max" || n.function == "min" {
		if len(n.args) == 0 {
			c.fail(n.at, "", "%s takes arguments, found none", n.function)
		}
		return c.extreme(n, out)
	}
	if len(n.args) != 1 {
		c.fail(n.at, "", "%s takes 1 argument, found %d", n.function, len(n.args))
	}
	o := c.operand(n.args[0])
	wrong := func(expected string) {
		c.fail(n.args[0].where(), "", "%s is %s: %s is for %s", o.name, article(o.kind), n.function, expected)
	}
	switch n.function {
	case "len":
		out.kind, out.unit = Uint, "bytes"
		if o.Bytes == nil {
			wrong("bytes and text")
		}
		out.Uint = mapped(o.Bytes, func(_ *Record, v []byte) (uint64, bool) { return uint64(len(v)), true })
	case "count":
		out.kind = Uint
		if o.kind == Heading {
			wrong("fields with values")
		}
		if o.inside != nil {
			o.Bytes = o.inside
		}
		out.Uint = o.count()
	case "upper", "lower":
		if o.kind != Text {
			wrong("text")
		}
		out.kind = Text
		fold := lower
		if n.function == "upper" {
			fold = upper
		}
		out.Bytes = mapped(o.Bytes, func(r *Record, v []byte) ([]byte, bool) {
			at := len(r.scratch)
			for _, x := range v {
				r.scratch = append(r.scratch, fold(x))
			}
			return r.scratch[at:], true
		})
	case "string":
		out.kind = Text
		out.Bytes = o.text()
		if out.Bytes == nil {
			wrong("numbers, addresses and text")
		}
	case "abs":
		out.kind, out.unit = o.kind, o.unit
		switch {
		case o.Int != nil && o.kind != Time:
			out.Int = mapped(o.Int, func(_ *Record, v int64) (int64, bool) { return max(v, -v), true })
		case o.Float != nil:
			out.Float = mapped(o.Float, func(_ *Record, v float64) (float64, bool) { return math.Abs(v), true })
		case o.kind == Uint:
			out.Uint = o.Uint
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

func (v *Values) count() Source[uint64] {
	switch {
	case v.Uint != nil:
		return counted(v.Uint)
	case v.Int != nil:
		return counted(v.Int)
	case v.Float != nil:
		return counted(v.Float)
	case v.Bytes != nil:
		return counted(v.Bytes)
	default:
		return counted(v.Address)
	}
}

// text returns an operand's values as text. It returns nil for bytes and
// headings.
func (o *operand) text() Source[[]byte] {
	switch {
	case o.kind == Text:
		return o.Bytes
	case o.Uint != nil:
		return mapped(o.Uint, written(func(to []byte, v uint64) []byte { return strconv.AppendUint(to, v, 10) }))
	case o.Int != nil:
		return mapped(o.Int, written((&Field{Kind: o.kind}).appendInt))
	case o.Float != nil:
		return mapped(o.Float, written(appendFloat))
	case o.Address != nil:
		return mapped(o.Address, written(func(to []byte, v netip.Addr) []byte { return v.AppendTo(to) }))
	}
	return nil
}

// written converts a value to text, in the record's scratch buffer.
func written[T any](write func([]byte, T) []byte) func(*Record, T) ([]byte, bool) {
	return func(r *Record, v T) ([]byte, bool) {
		at := len(r.scratch)
		r.scratch = write(r.scratch, v)
		return r.scratch[at:], true
	}
}

var mirrored = map[string]string{
	"==": "==", "!=": "!=", "===": "===", "!==": "!==", ">": "<", ">=": "<=",
	"<": ">", "<=": ">=",
}
