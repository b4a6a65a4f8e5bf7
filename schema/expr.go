package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// expr is a compiled expression over the values of earlier fields. Arithmetic
// wraps at 64 bits. An operation without a result returns 0: division by zero,
// an index beyond a table, a shift by 64 or more.
//
//	or    = and { "||" and }                 compare = sum [ ("=="|"!="|"<="|">="|"<"|">") sum ]
//	and   = compare { "&&" compare }         sum     = product { ("+"|"-"|"|"|"^") product }
//	unary = ("!"|"-") unary | value          product = unary { ("*"|"/"|"%"|"&"|"<<"|">>") unary }
//	value = number | field | "(" or ")" | "[" or { "," or } "]" "[" or "]"
type expr interface{ eval(slots []int64) int64 }

type (
	number  int64
	fieldOf int
	unary   struct {
		op byte
		x  expr
	}
	binary struct {
		op   string
		x, y expr
	}
	table struct {
		items []expr
		at    expr
	}
)

func (n number) eval([]int64) int64        { return int64(n) }
func (f fieldOf) eval(slots []int64) int64 { return slots[f] }

func (u unary) eval(slots []int64) int64 {
	v := u.x.eval(slots)
	if u.op == '-' {
		return -v
	}
	return truth(v == 0)
}

func (t table) eval(slots []int64) int64 {
	i := t.at.eval(slots)
	if i < 0 || i >= int64(len(t.items)) {
		return 0
	}
	return t.items[i].eval(slots)
}

func (b binary) eval(slots []int64) int64 {
	x := b.x.eval(slots)
	switch b.op {
	case "||":
		return truth(x != 0 || b.y.eval(slots) != 0)
	case "&&":
		return truth(x != 0 && b.y.eval(slots) != 0)
	}
	y := b.y.eval(slots)
	switch b.op {
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	case "<=":
		return truth(x <= y)
	case ">=":
		return truth(x >= y)
	case "<":
		return truth(x < y)
	case ">":
		return truth(x > y)
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "&":
		return x & y
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "/", "%":
		if y == 0 || y == -1 { // -1: the negation of the smallest number overflows
			if b.op == "/" && y == -1 {
				return -x
			}
			return 0
		}
		if b.op == "/" {
			return x / y
		}
		return x % y
	}
	if y < 0 || y > 63 {
		return 0
	}
	if b.op == "<<" {
		return x << uint(y)
	}
	return x >> uint(y)
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// parser parses an expression by precedence, lowest first.
type parser struct {
	text  string
	at    int
	depth int
	scope *scope
}

var levels = [][]string{
	{"||"},
	{"&&"},
	{"==", "!=", "<=", ">=", "<", ">"},
	{"+", "-", "|", "^"},
	{"*", "/", "%", "&", "<<", ">>"},
}

func (p *parser) parse() (expr, error) {
	e, err := p.level(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.text) {
		return nil, fmt.Errorf("column %d: expected an operator, found %q", p.at+1, p.text[p.at:])
	}
	return e, nil
}

func (p *parser) level(n int) (expr, error) {
	if n == len(levels) {
		return p.unary()
	}
	x, err := p.level(n + 1)
	if err != nil {
		return nil, err
	}
	for {
		op := p.operator(n)
		if op == "" {
			return x, nil
		}
		y, err := p.level(n + 1)
		if err != nil {
			return nil, err
		}
		x = binary{op, x, y}
	}
}

// operator consumes an operator of level n. If a longer operator of another
// level begins with the same characters, it returns an empty string.
func (p *parser) operator(n int) string {
	p.space()
	rest, longest, level := p.text[p.at:], "", 0
	for l, ops := range levels {
		for _, op := range ops {
			if strings.HasPrefix(rest, op) && len(op) > len(longest) {
				longest, level = op, l
			}
		}
	}
	if longest == "" || level != n {
		return ""
	}
	p.at += len(longest)
	return longest
}

func (p *parser) unary() (expr, error) {
	if p.depth++; p.depth > 64 {
		return nil, fmt.Errorf("column %d: nested too deep", p.at+1)
	}
	defer func() { p.depth-- }()
	p.space()
	if p.at == len(p.text) {
		return nil, fmt.Errorf("column %d: expected a number, a field or a bracket, found the end", p.at+1)
	}
	switch c := p.text[p.at]; {
	case c == '!' || c == '-':
		p.at++
		x, err := p.unary()
		return unary{c, x}, err
	case c == '(':
		p.at++
		x, err := p.level(0)
		if err != nil {
			return nil, err
		}
		return x, p.expect(')')
	case c == '[':
		return p.table()
	case c >= '0' && c <= '9':
		word := p.word()
		v, err := strconv.ParseInt(word, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("column %d: %q is no number", p.at-len(word)+1, word)
		}
		return number(v), nil
	case isWord(c):
		word := p.word()
		slot, ok := p.scope.find(word)
		if !ok {
			return nil, fmt.Errorf("column %d: no earlier field with a number is named %q", p.at-len(word)+1, word)
		}
		return fieldOf(slot), nil
	default:
		return nil, fmt.Errorf("column %d: expected a number, a field or a bracket, found %q", p.at+1, p.text[p.at:])
	}
}

func (p *parser) table() (expr, error) {
	var t table
	for {
		p.at++ // the bracket or the comma
		x, err := p.level(0)
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, x)
		if p.space(); p.at < len(p.text) && p.text[p.at] == ',' {
			continue
		}
		if err := p.expect(']'); err != nil {
			return nil, err
		}
		if err := p.expect('['); err != nil {
			return nil, err
		}
		if t.at, err = p.level(0); err != nil {
			return nil, err
		}
		return t, p.expect(']')
	}
}

func (p *parser) expect(c byte) error {
	if p.space(); p.at == len(p.text) || p.text[p.at] != c {
		return fmt.Errorf("column %d: expected %q", p.at+1, c)
	}
	p.at++
	return nil
}

func (p *parser) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && isWord(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
