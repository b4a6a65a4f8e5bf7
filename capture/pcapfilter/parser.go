package pcapfilter

import (
	"fmt"
	"strings"
)

// parser converts tokens to a tree by libpcap's grammar, in which `and` and
// `or` have the same precedence.
type parser struct {
	filter string
	tokens []token
	at     int
	depth  int // of parentheses and negations, bounded
	tags   int // number of `vlan`s so far: the tags that precede what follows
	last   qualifiers
	seen   bool // last was set
}

// qualifiers say what a value is compared with.
type qualifiers struct {
	proto     string // "" for every protocol that fits
	direction direction
	kind      string // "host", "net", "port", "portrange", "proto"
}

type direction uint8

const (
	either direction = iota
	source
	destination
	both
)

const nesting = 64

func parse(filter string) (node, error) {
	tokens, err := lex(filter)
	if err != nil {
		return nil, err
	}
	p := &parser{filter: filter, tokens: tokens}
	if p.peek() == "" {
		return always{}, nil
	}
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t != "" {
		return nil, p.fail("expected and, or or the end, found %q", t)
	}
	return n, nil
}

func (p *parser) peek() string { return p.tokens[p.at].text }

func (p *parser) next() string {
	t := p.tokens[p.at]
	if t.text != "" {
		p.at++
	}
	return t.text
}

// accept consumes the next token if it is one of these words.
func (p *parser) accept(words ...string) (string, bool) {
	for _, w := range words {
		if p.peek() == w {
			return p.next(), true
		}
	}
	return "", false
}

// fail returns an error at the next token.
func (p *parser) fail(format string, args ...any) error {
	return &Error{Filter: p.filter, Column: p.tokens[p.at].column, Reason: fmt.Sprintf(format, args...)}
}

// failBefore returns an error at the previous token.
func (p *parser) failBefore(format string, args ...any) error {
	p.at--
	return p.fail(format, args...)
}

func (p *parser) expression() (node, error) {
	left, err := p.term(false)
	if err != nil {
		return nil, err
	}
	for {
		and := false
		if _, ok := p.accept("and", "&&"); ok {
			and = true
		} else if _, ok := p.accept("or", "||"); !ok {
			return left, nil
		}
		right, err := p.term(true)
		if err != nil {
			return nil, err
		}
		if and {
			left = conjunction{left, right}
		} else {
			left = disjunction{left, right}
		}
	}
}

// term parses one operand. After an operator a value may be alone.
func (p *parser) term(behind bool) (node, error) {
	if p.depth++; p.depth > nesting {
		return nil, p.fail("expected at most %d parentheses and negations in each other", nesting)
	}
	defer func() { p.depth-- }()
	if _, ok := p.accept("not", "!"); ok {
		n, err := p.term(behind)
		return negation{n}, err
	}
	if _, ok := p.accept("("); ok {
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		if _, ok := p.accept(")"); !ok {
			return nil, p.fail("expected a closing parenthesis, found %s", found(p.peek()))
		}
		return n, nil
	}
	return p.primitive(behind)
}

// protocols that may be alone, and the qualifiers that may follow them.
var protocols = map[string]string{
	"ip": "host net proto", "ip6": "host net proto", "arp": "host net", "rarp": "host net",
	"tcp": "port portrange", "udp": "port portrange", "sctp": "port portrange",
	"icmp": "", "icmp6": "", "igmp": "", "esp": "", "ah": "", "ether": "host proto",
}

func (p *parser) primitive(behind bool) (node, error) {
	switch word := p.peek(); word {
	case "vlan":
		return p.vlan()
	case "less", "greater":
		p.next()
		n, err := p.number(0xffffffff)
		return length{atLeast: word == "greater", bytes: n}, err
	case "len":
		return p.content(p.next())
	case "broadcast", "multicast":
		return p.groupAddress("")
	case "inbound", "outbound":
		p.next()
		if word == "inbound" {
			return negation{outgoing{}}, nil
		}
		return outgoing{}, nil
	}
	var q qualifiers
	named := false
	if _, ok := protocols[p.peek()]; ok {
		q.proto, named = p.next(), true
		switch p.peek() {
		case "[":
			if q.proto == "esp" || q.proto == "ah" {
				return nil, p.fail("%s does not go with [", q.proto)
			}
			return p.content(q.proto)
		case "broadcast", "multicast":
			return p.groupAddress(q.proto)
		}
	}
	directed, err := p.direction(&q)
	if err != nil {
		return nil, err
	}
	kind, typed := p.accept("host", "net", "port", "portrange", "proto")
	switch {
	case typed:
		q.kind = kind
	case directed:
		q.kind = "host"
	case named:
		if q.proto == "ether" {
			return nil, p.fail("expected host, src, dst, proto, [, broadcast or multicast behind ether, found %s",
				found(p.peek()))
		}
		return protocol{q.proto, p.tags}, nil
	case behind && p.seen && startsValue(p.peek()):
		q = p.last
	default:
		return nil, p.fail("expected a protocol, src, dst, host, net, port, portrange, vlan, less, greater, len, not or a "+
			"parenthesis, found %s", found(p.peek()))
	}
	if named && !strings.Contains(" "+protocols[q.proto]+" ", " "+q.kind+" ") {
		return nil, p.fail("%s does not go with %s", q.proto, q.kind)
	}
	if directed && q.kind == "proto" {
		return nil, p.fail("a direction does not go with proto")
	}
	p.last, p.seen = q, true
	return p.value(q)
}

// direction parses src, dst, src or dst, src and dst.
func (p *parser) direction(q *qualifiers) (bool, error) {
	first, ok := p.accept("src", "dst")
	if !ok {
		return false, nil
	}
	q.direction = source
	if first == "dst" {
		q.direction = destination
	}
	// The token directly after the first word distinguishes "src or dst host X"
	// from "src host X or dst host Y".
	operator := p.peek()
	if operator != "or" && operator != "and" && operator != "||" && operator != "&&" {
		return true, nil
	}
	p.next()
	other := map[string]string{"src": "dst", "dst": "src"}[first]
	if _, ok := p.accept(other); !ok {
		return false, p.fail("expected %s, found %s", other, found(p.peek()))
	}
	q.direction = either
	if operator == "and" || operator == "&&" {
		q.direction = both
	}
	return true, nil
}

func (p *parser) vlan() (node, error) {
	p.next()
	n := tag{depth: p.tags, any: true}
	if t := p.peek(); t != "" && '0' <= t[0] && t[0] <= '9' {
		id, err := p.number(4095)
		if err != nil {
			return nil, err
		}
		n.any, n.id = false, id
	}
	p.tags++
	return n, nil
}

func startsValue(t string) bool {
	return t != "" && ('0' <= t[0] && t[0] <= '9' || strings.Contains(t, ":"))
}

func found(t string) string {
	if t == "" {
		return "the end"
	}
	return fmt.Sprintf("%q", t)
}
