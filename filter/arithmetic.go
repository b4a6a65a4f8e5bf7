package filter

import (
	"math"
	"strconv"
	"strings"
)

// numeric reports whether an operand's values are numbers.
func (o *operand) numeric() bool { return o.Uint != nil || o.Int != nil || o.Float != nil }

// ints returns whole numbers and times as int64. Larger numbers have no value.
func (o *operand) ints() Source[int64] {
	if o.Int != nil {
		return o.Int
	}
	return mapped(o.Uint, func(_ *Record, v uint64) (int64, bool) { return int64(v), v <= math.MaxInt64 })
}

// arithmetic compiles `l op r`. If fields have several values, each value of l
// is combined with each of r. A result that is not a number, such as that of a
// division by zero, has no value.
func (c *compiler) arithmetic(n *arithmetic) *operand {
	l, r := c.addend(n.l), c.addend(n.r)
	if l == nil && r == nil {
		c.unknown(firstLiteral(n))
	}
	out := &operand{name: c.source(n.where())}
	lKind, rKind := kindOf(l), kindOf(r)
	timed := func(k Kind) bool { return k == Duration || k == Time }
	switch {
	case timed(lKind) || timed(rKind):
		return c.times(n, l, r, out)
	case lKind == Float || rKind == Float || c.fraction(n.l) || c.fraction(n.r):
		out.kind = Float
		out.Float = joined(c, c.floatTerm(l, n.l), c.floatTerm(r, n.r), floatOps[n.op])
	default:
		out.kind, out.unit = Int, sameUnit(l, r)
		out.Int = joined(c, c.intTerm(l, n.l, out.unit), c.intTerm(r, n.r, out.unit), intOps[n.op])
	}
	return out
}

// times compiles arithmetic with durations and instants.
func (c *compiler) times(n *arithmetic, l, r, out *operand) *operand {
	lKind, rKind := kindOf(l), kindOf(r)
	out.kind, out.unit = Duration, "s"
	additive := n.op == "+" || n.op == "-"
	switch {
	case additive && lKind == Time && rKind == Time && n.op == "-": // the time between them
	case additive && (lKind == Time && rKind != Time || rKind == Time && n.op == "+" && lKind != Time):
		out.kind = Time
	case additive && lKind != Time && rKind != Time:
	case n.op == "*" && lKind != Time && rKind != Time && (lKind != Duration || rKind != Duration),
		n.op == "/" && lKind == Duration && rKind != Duration && rKind != Time:
		f := floatOps[n.op]
		out.Int = joined(c, c.floatTerm(l, n.l), c.floatTerm(r, n.r), func(x, y float64) (int64, bool) {
			v, ok := f(x, y)
			return int64(math.Round(v)), ok && math.Abs(v) < 1<<62
		})
		return out
	default:
		c.fail(n.opAt, "", "%s and %s cannot be joined by %s", c.source(n.l.where()), c.source(n.r.where()), n.op)
	}
	for _, x := range []*operand{l, r} {
		if x != nil && x.kind != Duration && x.kind != Time {
			c.fail(n.opAt, "", "%s is %s: expected a duration or a time", x.name, article(x.kind))
		}
	}
	term := func(o *operand, x node) term[int64] {
		if o != nil {
			return term[int64]{source: o.Int}
		}
		return term[int64]{constant: c.int(&operand{kind: Duration, unit: "s", name: c.source(n.where())}, asLiteral(x))}
	}
	out.Int = joined(c, term(l, n.l), term(r, n.r), intOps[n.op])
	return out
}

// addend compiles a part of a sum. It returns nil for a literal.
func (c *compiler) addend(x node) *operand {
	if l, ok := x.(*literal); ok {
		if l.quoted || l.char || c.looksLikeField(l.text) {
			c.unknown(l)
		}
		return nil
	}
	o := c.operand(x)
	if !o.numeric() || o.kind == Bool {
		c.fail(x.where(), "", "%s is %s: sums are of numbers and times", o.name, article(o.kind))
	}
	return o
}

func kindOf(o *operand) Kind {
	if o == nil {
		return Heading
	}
	return o.kind
}

func asLiteral(x node) *literal {
	l, _ := x.(*literal)
	return l
}

func firstLiteral(n *arithmetic) *literal {
	if l := asLiteral(n.l); l != nil {
		return l
	}
	return asLiteral(n.r)
}

// fraction reports whether a literal is not a whole number: 0.5, 1e-3.
func (c *compiler) fraction(x node) bool {
	l := asLiteral(x)
	if l == nil {
		return false
	}
	number, unit := splitUnit(l.text)
	_, _, whole := parseInteger(number)
	return unit == "" && !whole
}

func sameUnit(l, r *operand) string {
	switch {
	case l == nil:
		return r.unit
	case r == nil || l.unit == r.unit:
		return l.unit
	}
	return ""
}

// term is one side of a sum: a source, or a constant of the filter.
type term[T any] struct {
	source   Source[T] // nil for a constant
	constant T
}

func (c *compiler) intTerm(o *operand, x node, unit string) term[int64] {
	if o != nil {
		return term[int64]{source: o.ints()}
	}
	return term[int64]{constant: c.int(&operand{kind: Int, unit: unit, name: c.source(x.where())}, asLiteral(x))}
}

func (c *compiler) floatTerm(o *operand, x node) term[float64] {
	if o != nil {
		return term[float64]{source: o.floats()}
	}
	return term[float64]{constant: c.float(&operand{kind: Float, name: c.source(x.where())}, asLiteral(x))}
}

// joined returns a source of the results of f over two terms.
func joined[S, T int64 | float64](c *compiler, l, r term[S], f func(x, y S) (T, bool)) Source[T] {
	switch {
	case r.source == nil:
		return mapped(l.source, func(_ *Record, v S) (T, bool) { return f(v, r.constant) })
	case l.source == nil:
		return mapped(r.source, func(_ *Record, v S) (T, bool) { return f(l.constant, v) })
	}
	slot := c.slots
	c.slots++
	return func(pass Test[T], all bool) Predicate {
		inner := r.source(func(x *Record, w S) bool {
			v, ok := f(fromSlot[S](x.slots[slot]), w)
			return ok && pass(x, v)
		}, all)
		return l.source(func(x *Record, v S) bool {
			x.slots[slot] = toSlot(v)
			return inner(x)
		}, all)
	}
}

// toSlot and fromSlot convert numbers to and from the bits of a record's slot.
func toSlot[T int64 | float64](v T) uint64 {
	if f, ok := any(v).(float64); ok {
		return math.Float64bits(f)
	}
	return uint64(int64(v))
}

func fromSlot[T int64 | float64](bits uint64) T {
	var v T
	if _, ok := any(v).(float64); ok {
		return T(math.Float64frombits(bits))
	}
	return T(int64(bits))
}

var intOps = map[string]func(x, y int64) (int64, bool){
	"+": func(x, y int64) (int64, bool) { v := x + y; return v, (v > x) == (y > 0) },
	"-": func(x, y int64) (int64, bool) { v := x - y; return v, (v < x) == (y > 0) },
	"*": func(x, y int64) (int64, bool) {
		v := x * y
		return v, x == 0 || v/x == y && (x != -1 || y != math.MinInt64)
	},
	"/": func(x, y int64) (int64, bool) {
		if y == 0 || x == math.MinInt64 && y == -1 {
			return 0, false
		}
		return x / y, true
	},
	"%": func(x, y int64) (int64, bool) {
		if y == 0 || y == -1 {
			return 0, y != 0
		}
		return x % y, true
	},
}

var floatOps = map[string]func(x, y float64) (float64, bool){
	"+": func(x, y float64) (float64, bool) { return x + y, true },
	"-": func(x, y float64) (float64, bool) { return x - y, true },
	"*": func(x, y float64) (float64, bool) { return x * y, true },
	"/": func(x, y float64) (float64, bool) { return x / y, y != 0 },
	"%": func(x, y float64) (float64, bool) { return math.Mod(x, y), y != 0 },
}

// extreme compiles max(…) and min(…): the largest or smallest of all values of
// the arguments.
func (c *compiler) extreme(n *call, out *operand) *operand {
	var args []*operand
	kind := Heading
	for _, x := range n.args {
		o := c.addend(x)
		args = append(args, o)
		switch k := kindOf(o); {
		case k == Heading:
		case kind == Heading:
			kind, out.unit = k, o.unit
		case (k == Time || kind == Time || k == Duration || kind == Duration) && k != kind:
			c.fail(x.where(), "", "%s is %s: expected %s as the arguments before it", o.name, article(k), article(kind))
		case k == Float || kind == Float:
			kind = Float
		default:
			kind = max(kind, k)
		}
	}
	if kind == Heading {
		c.fail(n.at, "", "%s is asked about fields", n.function)
	}
	sign := 1
	if n.function == "min" {
		sign = -1
	}
	switch out.kind = kind; kind {
	case Float:
		list := make([]term[float64], len(args))
		for i, o := range args {
			list[i] = c.floatTerm(o, n.args[i])
		}
		out.Float = largest(c, list, float64(sign))
	case Duration, Time:
		list := make([]term[int64], len(args))
		for i, o := range args {
			if o != nil {
				list[i] = term[int64]{source: o.Int}
			} else {
				list[i] = term[int64]{constant: c.int(&operand{kind: kind, unit: "s", name: out.name}, asLiteral(n.args[i]))}
			}
		}
		out.Int = largest(c, list, int64(sign))
	default:
		out.kind = Int
		list := make([]term[int64], len(args))
		for i, o := range args {
			list[i] = c.intTerm(o, n.args[i], out.unit)
		}
		out.Int = largest(c, list, int64(sign))
	}
	return out
}

// largest returns a source of the largest value of the terms, or of the
// smallest if sign is -1.
func largest[T int64 | float64](c *compiler, list []term[T], sign T) Source[T] {
	slot, some := c.slots, c.slots+1
	c.slots += 2
	note := func(x *Record, v T) bool {
		if x.slots[some] == 0 || v*sign > fromSlot[T](x.slots[slot])*sign {
			x.slots[slot], x.slots[some] = toSlot(v), 1
		}
		return false
	}
	runs := make([]Predicate, len(list))
	for i, t := range list {
		if t.source != nil {
			runs[i] = t.source(note, false)
		} else {
			runs[i] = func(x *Record) bool { return note(x, t.constant) }
		}
	}
	return One(func(x *Record) (T, bool) {
		x.slots[some] = 0
		for _, run := range runs {
			run(x)
		}
		return fromSlot[T](x.slots[slot]), x.slots[some] != 0
	})
}

// fold computes the result of two numeric literals, so that 2*1024 is a literal
// like any other. It returns nil if they are not both numbers.
func fold(op string, l, r node) *literal {
	x, y := asLiteral(l), asLiteral(r)
	if x == nil || y == nil || x.quoted || y.quoted || x.char || y.char {
		return nil
	}
	xNumber, xUnit := splitUnit(x.text)
	yNumber, yUnit := splitUnit(y.text)
	unit := xUnit
	switch {
	case xUnit == yUnit && (unit == "" || op == "+" || op == "-"):
	case op == "*" && (xUnit == "" || yUnit == ""):
		unit = xUnit + yUnit
	case op == "/" && yUnit == "":
	default:
		return nil
	}
	var text string
	a, negative, ok := parseInteger(xNumber)
	b, negative2, ok2 := parseInteger(yNumber)
	if ok && ok2 && a <= math.MaxInt64 && b <= math.MaxInt64 {
		v, ok := intOps[op](sign(int64(a), negative), sign(int64(b), negative2))
		if !ok {
			return nil
		}
		text = strconv.FormatInt(v, 10)
	} else {
		f, err := strconv.ParseFloat(xNumber, 64)
		g, err2 := strconv.ParseFloat(yNumber, 64)
		v, ok := floatOps[op](f, g)
		if err != nil || err2 != nil || !ok || strings.ContainsAny(xNumber+yNumber, "xX_:") {
			return nil
		}
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return &literal{at: l.where().with(r.where()), text: text + unit}
}
