package filter

import (
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds nesting, so that a hostile filter cannot exhaust the stack.
const maxDepth = 200

type parser struct {
	text   string
	tokens []token
	next   int
	depth  int
	// field reports whether a word names a field or a protocol.
	field func(string) bool
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokEnd {
		p.next++
	}
	return t
}

// op consumes the next token if it is one of the operators.
func (p *parser) op(ops ...string) (token, bool) {
	if t := p.peek(); t.kind == tokOp {
		for _, o := range ops {
			if t.text == o {
				return p.take(), true
			}
		}
	}
	return token{}, false
}

func (p *parser) fail(at span, suggestion, format string, args ...any) {
	fail(p.text, at, suggestion, format, args...)
}

// show returns a token as the user wrote it.
func (p *parser) show(t token) string {
	if t.kind == tokEnd {
		return "the end"
	}
	return strconv.Quote(p.text[t.at.from:t.at.to])
}

func (p *parser) parse() node {
	n := p.test(0)
	if t := p.peek(); t.kind != tokEnd {
		if t.kind == tokOp && t.text == ")" {
			p.fail(t.at, "", ") without a ( before it")
		}
		p.fail(t.at, "", "expected an operator such as == or &&, found %s", p.show(t))
	}
	return n
}

// power has the precedence of the logical operators.
var power = map[string]int{"||": 1, "^^": 1, "&&": 2}

func (p *parser) test(least int) node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().at, "", "nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	l := p.unary()
	for {
		t := p.peek()
		bind := power[t.text]
		if t.kind != tokOp || bind == 0 || bind <= least {
			return l
		}
		p.take()
		l = &logic{t.text, l, p.test(bind)}
	}
}

func (p *parser) unary() node {
	if t, ok := p.op("!"); ok {
		if p.depth++; p.depth > maxDepth {
			p.fail(t.at, "", "nested deeper than %d", maxDepth)
		}
		defer func() { p.depth-- }()
		return &not{t.at, p.unary()}
	}
	if p.peek().kind == tokOp && p.peek().text == "(" {
		open := p.next
		p.take()
		n := p.test(0)
		if _, ok := p.op(")"); !ok {
			p.fail(p.peek().at, "", "expected ), found %s", p.show(p.peek()))
		}
		// A parenthesis that looked like a test may be the left side of one: (a + b)
		// > 5.
		if _, ok := n.(*exists); !ok || !p.continues() {
			return n
		}
		p.next = open
	}
	return p.comparison()
}

// continues reports whether the next token makes the text before it an operand.
func (p *parser) continues() bool {
	t := p.peek()
	if t.kind == tokWord {
		return len(t.text) > 1 && t.text[0] == '-'
	}
	return t.kind == tokOp &&
		(slices.Contains(comparisons, t.text) || slices.Contains([]string{"+", "-", "*", "/", "%", "&", "in"}, t.text))
}

var comparisons = []string{"==", "!=", "===", "!==", ">", ">=", "<", "<=", "contains", "matches"}

func (p *parser) comparison() node {
	quantifier := ""
	if t, ok := p.op("any", "all"); ok {
		quantifier = t.text
	}
	l := p.operand()
	if n := p.membership(l, quantifier); n != nil {
		return n
	}
	var whole node
	for {
		t, ok := p.op(comparisons...)
		if !ok {
			break
		}
		r := p.operand()
		c := &compare{t.text, quantifier, t.at, l, r}
		if whole == nil {
			whole = c
		} else {
			whole = &logic{"&&", whole, c} // a < b < c
		}
		l = r
	}
	if whole != nil {
		return whole
	}
	if quantifier != "" {
		p.fail(p.peek().at, "", "expected a comparison after %s, found %s", quantifier, p.show(p.peek()))
	}
	return &exists{l}
}

func (p *parser) membership(x node, quantifier string) node {
	negated := false
	if t := p.peek(); t.kind == tokOp && t.text == "!" && p.next+1 < len(p.tokens) && p.tokens[p.next+1].text == "in" &&
		p.tokens[p.next+1].kind == tokOp {
		p.take()
		negated = true
	}
	in, ok := p.op("in")
	if !ok {
		return nil
	}
	if _, ok := p.op("{"); !ok {
		p.fail(p.peek().at, "in {1, 2, 5..9}", "expected { after in, found %s", p.show(p.peek()))
	}
	m := &member{at: in.at, quantifier: quantifier, negated: negated, x: x}
	for {
		v := interval{from: p.literal("a value")}
		if _, ok := p.op(".."); ok {
			v.to = p.literal("the end of the range")
		}
		m.set = append(m.set, v)
		if end, ok := p.op("}"); ok {
			m.at = m.at.with(end.at)
			return m
		}
		// Old versions of Wireshark separated by blanks, and people still do.
		if _, ok := p.op(","); !ok && p.peek().kind != tokWord && p.peek().kind != tokString && p.peek().kind != tokChar {
			p.fail(p.peek().at, "", "expected , or } in the set, found %s", p.show(p.peek()))
		}
	}
}

func (p *parser) literal(what string) *literal {
	switch t := p.take(); t.kind {
	case tokWord:
		return &literal{at: t.at, text: t.text}
	case tokString:
		return &literal{at: t.at, text: t.text, quoted: true}
	case tokChar:
		return &literal{at: t.at, text: t.text, char: true}
	default:
		p.fail(t.at, "", "expected %s, found %s", what, p.show(t))
		return nil
	}
}

// operand parses an operand of a comparison. & has lower precedence than + and
// -, which have lower precedence than *, / and %.
func (p *parser) operand() node {
	x := p.sum()
	for {
		if _, ok := p.op("&"); !ok {
			return x
		}
		x = &mask{x, p.sum()}
	}
}

func (p *parser) sum() node {
	x := p.product()
	for {
		if t := p.peek(); t.kind == tokWord && len(t.text) > 1 && t.text[0] == '-' {
			// In `frame.len -8` the lexer has read the sign as part of the number.
			p.tokens[p.next] = token{tokWord, t.text[1:], span{t.at.from + 1, t.at.to}}
			p.tokens = slices.Insert(p.tokens, p.next, token{tokOp, "-", span{t.at.from, t.at.from + 1}})
		}
		t, ok := p.op("+", "-")
		if !ok {
			return x
		}
		x = p.join(t, x, p.product())
	}
}

func (p *parser) product() node {
	x := p.factor()
	for {
		t, ok := p.op("*", "/", "%")
		if !ok {
			return x
		}
		x = p.join(t, x, p.factor())
	}
}

func (p *parser) join(t token, l, r node) node {
	if v := fold(t.text, l, r); v != nil {
		return v
	}
	return &arithmetic{t.text, t.at, l, r}
}

// factor parses a field, a value, or a sum in braces or parentheses.
func (p *parser) factor() node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().at, "", "nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	if t, ok := p.op("-"); ok {
		x := p.factor()
		if l := asLiteral(x); l != nil && !l.quoted && !l.char && l.text != "" && digit(l.text[0]) {
			return &literal{at: t.at.with(l.at), text: "-" + l.text}
		}
		return &arithmetic{"-", t.at, &literal{at: t.at, text: "0"}, x}
	}
	open, ok := p.op("{", "(")
	if !ok {
		return p.primary()
	}
	x, end := p.operand(), map[string]string{"{": "}", "(": ")"}[open.text]
	if _, ok := p.op(end); !ok {
		p.fail(p.peek().at, "", "expected %s, found %s", end, p.show(p.peek()))
	}
	return x
}

func (p *parser) primary() node {
	t := p.take()
	var x node
	switch t.kind {
	case tokString:
		x = &literal{at: t.at, text: t.text, quoted: true}
	case tokChar:
		x = &literal{at: t.at, text: t.text, char: true}
	case tokWord:
		switch {
		case p.peek().kind == tokOp && p.peek().text == "(" && p.peek().at.from == t.at.to:
			x = p.call(t)
		case p.field(t.text):
			x = &name{t.at, t.text}
		default:
			x = &literal{at: t.at, text: t.text}
		}
	case tokOp:
		p.fail(t.at, "", "expected a field or a value, found the operator %s", p.show(t))
	default:
		p.fail(t.at, "", "expected a field or a value, found %s", p.show(t))
	}
	for p.peek().kind == tokSlice {
		s := p.take()
		x = &slice{s.at, x, p.sliceRanges(s)}
	}
	return x
}

func (p *parser) call(t token) node {
	c := &call{at: t.at, nameAt: t.at, function: strings.ToLower(t.text)}
	p.take() // (
	if p.depth++; p.depth > maxDepth {
		p.fail(t.at, "", "nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	if end, ok := p.op(")"); ok {
		c.at = c.at.with(end.at)
		return c
	}
	for {
		c.args = append(c.args, p.operand())
		if end, ok := p.op(")"); ok {
			c.at = c.at.with(end.at)
			return c
		}
		if _, ok := p.op(","); !ok {
			p.fail(p.peek().at, "", "expected , or ) after an argument of %s, found %s", t.text, p.show(p.peek()))
		}
	}
}

// sliceRanges parses the text in the brackets of a slice.
func (p *parser) sliceRanges(t token) []sliceRange {
	var out []sliceRange
	at := t.at.from + 1
	for part := range strings.SplitSeq(t.text, ",") {
		s, ok := parseSliceRange(strings.TrimSpace(part))
		if !ok {
			p.fail(span{at, at + max(len(part), 1)}, "",
				"expected [offset:length], [from-to], [offset], [:length] or [offset:], found [%s]", part)
		}
		out = append(out, s)
		at += len(part) + 1
	}
	return out
}

func parseSliceRange(s string) (sliceRange, bool) {
	number := func(s string) (int, bool) {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 0, 32)
		return int(n), err == nil
	}
	if before, after, ok := strings.Cut(s, ":"); ok {
		x := sliceRange{}
		if strings.TrimSpace(before) != "" {
			if x.from, ok = number(before); !ok {
				return x, false
			}
		}
		if strings.TrimSpace(after) == "" {
			x.open = true
			return x, strings.TrimSpace(before) != ""
		}
		x.length, ok = number(after)
		return x, ok && x.length > 0
	}
	if i := strings.LastIndexByte(s, '-'); i > 0 && strings.TrimSpace(s[:i]) != "" {
		if s[i-1] == '-' { // from-(-to)
			i--
		}
		from, ok1 := number(s[:i])
		to, ok2 := number(s[i+1:])
		return sliceRange{from: from, to: to, byEnd: true}, ok1 && ok2 && ((from < 0) != (to < 0) || to >= from)
	}
	from, ok := number(s)
	return sliceRange{from: from, length: 1}, ok
}
