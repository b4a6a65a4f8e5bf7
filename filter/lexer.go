package filter

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is the kind of a token. Field names, keywords and unquoted literals
// are all words. The parser distinguishes them by their position.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokWord
	tokString // text is the value without escapes
	tokChar   // 'A': text is the byte
	tokOp     // text is the canonical spelling of the operator
	tokSlice  // text is what [ and ] enclose
)

type token struct {
	kind tokenKind
	text string
	at   span
}

// symbols in the order in which they are tried: longer ones first.
var symbols = []struct{ text, op string }{
	{"===", "==="},
	{"!==", "!=="},
	{"==", "=="},
	{"!=", "!="},
	{"~=", "!=="},
	{">=", ">="},
	{"<=", "<="},
	{"&&", "&&"},
	{"||", "||"},
	{"^^", "^^"},
	{"..", ".."},
	{">", ">"},
	{"<", "<"},
	{"!", "!"},
	{"~", "matches"},
	{"&", "&"},
	{"+", "+"},
	{"-", "-"},
	{"*", "*"},
	{"/", "/"},
	{"%", "%"},
	{"(", "("},
	{")", ")"},
	{"{", "{"},
	{"}", "}"},
	{",", ","},
}

// wordOps are the words that are operators.
var wordOps = map[string]string{
	"eq": "==", "ne": "!=", "any_eq": "==", "all_ne": "!=", "all_eq": "===", "any_ne": "!==",
	"gt": ">", "ge": ">=", "lt": "<", "le": "<=",
	"and": "&&", "or": "||", "xor": "^^", "not": "!",
	"contains": "contains", "matches": "matches", "in": "in", "bitand": "&", "bitwise_and": "&",
	"any": "any", "all": "all",
}

// mistakes are symbols that people type in place of an operator.
var mistakes = []struct{ text, op string }{{"=", "=="}, {"|", "||"}, {"^", "^^"}, {"<>", "!="}}

// lex splits a filter into tokens. field reports whether a name is a field's: then
// the dashes in it are no operators.
func lex(text string, field func(string) bool) []token {
	var out []token
	for i := 0; ; {
		for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
			i++
		}
		if i == len(text) {
			return append(out, token{tokEnd, "", span{i, i}})
		}
		t := lexOne(text, i, field)
		out = append(out, t)
		i = t.at.to
	}
}

func lexOne(text string, i int, field func(string) bool) token {
	c := text[i]
	switch {
	case c == '"':
		return lexString(text, i, i)
	case (c == 'r' || c == 'R') && i+1 < len(text) && text[i+1] == '"':
		return lexRaw(text, i)
	case c == '\'':
		return lexChar(text, i)
	case c == '[':
		end := strings.IndexByte(text[i:], ']')
		if end < 0 {
			fail(text, span{i, i + 1}, "", "expected ] to close this slice")
		}
		return token{tokSlice, text[i+1 : i+end], span{i, i + end + 1}}
	case wordByte(c) || c == ':' || c == '-' && i+1 < len(text) && (digit(text[i+1]) || text[i+1] == '.') || c == '.' &&
		(i+1 >= len(text) || text[i+1] != '.'):
		if n := dashedName(text[i:], field); n > 0 {
			return token{tokWord, text[i : i+n], span{i, i + n}}
		}
		return lexWord(text, i)
	}
	for _, m := range mistakes {
		if strings.HasPrefix(text[i:], m.text) && !startsSymbol(text[i:], len(m.text)) {
			fail(text, span{i, i + len(m.text)}, m.op, "%q is no operator", m.text)
		}
	}
	for _, s := range symbols {
		if strings.HasPrefix(text[i:], s.text) {
			return token{tokOp, s.op, span{i, i + len(s.text)}}
		}
	}
	if c == ']' {
		fail(text, span{i, i + 1}, "", "] without a [ before it")
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	fail(text, span{i, i + n}, "", "%q does not belong in a filter", r)
	return token{}
}

// startsSymbol reports whether s begins with a symbol longer than n bytes.
func startsSymbol(s string, n int) bool {
	for _, y := range symbols {
		if len(y.text) > n && strings.HasPrefix(s, y.text) {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func wordByte(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

// dashedName returns the length of the longest field name with dashes at the start of
// s, or 0. Such names come from schemas and from events, as rel.keep-alive does.
func dashedName(s string, field func(string) bool) (n int) {
	const most = 256 // bytes, so that a long filter takes no quadratic time
	for n < min(len(s), most) && (wordByte(s[n]) || s[n] == '.' || s[n] == '-') {
		n++
	}
	for dash := strings.LastIndexByte(s[:n], '-'); dash >= 0; dash = strings.LastIndexByte(s[:n], '-') {
		if field(s[:n]) {
			return n
		}
		n = dash
	}
	return 0
}

// lexWord reads names, numbers with units, addresses and byte strings. Some
// characters belong to a word only in some positions:
//
//   - dots and colons belong to it, but two dots in a row do not;
//   - a dash belongs to it after the start of a byte string, a date or a word of
//     a closed list;
//   - a slash belongs to it after the start of an address;
//   - a plus belongs to it in the exponent of a number.
func lexWord(text string, i int) token {
	j := i + 1
	for ; j < len(text); j++ {
		switch c := text[j]; {
		case wordByte(c) || c == ':':
			continue
		case c == '%':
			// A share (3%), or the zone of an address; otherwise the remainder operator.
			if w := text[i:j]; strings.Contains(w, "::") || dotted(w) && (j+1 == len(text) || !wordByte(text[j+1])) {
				continue
			}
		case c == '.':
			if j+1 < len(text) && text[j+1] == '.' {
				return word(text, i, j)
			}
			continue
		case c == '-' || c == '+':
			if j+1 < len(text) && wordByte(text[j+1]) &&
				(hexPairs(text[i:j]) || c == '-' && dashed(text[i:j]) || exponent(text[i:j])) {
				continue
			}
		case c == '/':
			if j+1 < len(text) && digit(text[j+1]) &&
				(strings.Contains(text[i:j], ":") || strings.Contains(text[i:j], ".") && dotted(text[i:j])) {
				continue
			}
		}
		break
	}
	return word(text, i, j)
}

func word(text string, i, j int) token {
	w := text[i:j]
	if op, ok := wordOps[strings.ToLower(w)]; ok {
		return token{tokOp, op, span{i, j}}
	}
	return token{tokWord, w, span{i, j}}
}

// dashed reports whether w can be the start of a word of a closed list, such as
// false-ack. Such a word has letters, dashes and, after the first character,
// digits.
func dashed(w string) bool {
	for i := range len(w) {
		if c := w[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || i > 0 && digit(c)) {
			return false
		}
	}
	return true
}

// hexPairs reports whether w is pairs of hexadecimal digits joined by dashes.
func hexPairs(w string) bool {
	for i := range len(w) {
		if i%3 == 2 {
			if w[i] != '-' {
				return false
			}
		} else if !strings.ContainsRune("0123456789abcdefABCDEF", rune(w[i])) {
			return false
		}
	}
	return len(w)%3 == 2
}

// dotted reports whether w consists of digits and dots.
func dotted(w string) bool { return strings.Trim(w, "0123456789.") == "" }

func exponent(w string) bool {
	n := len(w)
	return n >= 2 && (w[n-1] == 'e' || w[n-1] == 'E') && digit(w[0]) && !strings.HasPrefix(w, "0x") &&
		!strings.Contains(w, ":")
}

func lexRaw(text string, i int) token {
	end := strings.IndexByte(text[i+2:], '"')
	if end < 0 {
		fail(text, span{i, len(text)}, "", "expected a closing \" for this text")
	}
	return token{tokString, text[i+2 : i+2+end], span{i, i + 3 + end}}
}

func lexString(text string, from, i int) token {
	var b strings.Builder
	for j := i + 1; j < len(text); {
		switch text[j] {
		case '"':
			return token{tokString, b.String(), span{from, j + 1}}
		case '\\':
			c, n := escape(text, j)
			b.WriteByte(c)
			j += n
		default:
			b.WriteByte(text[j])
			j++
		}
	}
	fail(text, span{from, len(text)}, "", "expected a closing \" for this text")
	return token{}
}

func lexChar(text string, i int) token {
	if i+1 >= len(text) {
		fail(text, span{i, i + 1}, "", "expected a character and a closing '")
	}
	c, n := text[i+1], 1
	if c == '\\' {
		c, n = escape(text, i+1)
	}
	end := i + 1 + n
	if c == '\'' && n == 1 || end >= len(text) || text[end] != '\'' {
		fail(text, span{i, min(end+1, len(text))}, `"…" for text`, "'…' holds one character")
	}
	return token{tokChar, string([]byte{c}), span{i, end + 1}}
}

// escape returns the byte of the escape sequence at text[i], and its length.
func escape(text string, i int) (byte, int) {
	if i+1 < len(text) {
		switch c := text[i+1]; c {
		case 'n':
			return '\n', 2
		case 't':
			return '\t', 2
		case 'r':
			return '\r', 2
		case 'a':
			return '\a', 2
		case 'b':
			return '\b', 2
		case 'f':
			return '\f', 2
		case 'v':
			return '\v', 2
		case '\\', '"', '\'':
			return c, 2
		case 'x':
			if b, ok := unhex(text, i+2); ok {
				return b, 4
			}
			fail(text, span{i, min(i+4, len(text))}, "", `expected two hexadecimal digits after \x`)
		}
		if c := text[i+1]; c >= '0' && c <= '7' {
			v, n := 0, 0
			for n < 3 && i+1+n < len(text) && text[i+1+n] >= '0' && text[i+1+n] <= '7' {
				v = v*8 + int(text[i+1+n]-'0')
				n++
			}
			return byte(v), 1 + n
		}
	}
	fail(text, span{i, min(i+2, len(text))}, `r"…", where a backslash is itself`,
		`expected \n, \t, \r, \", \\, \xNN or \NNN`)
	return 0, 0
}

func unhex(s string, i int) (byte, bool) {
	if i+2 > len(s) {
		return 0, false
	}
	var v byte
	for _, c := range []byte(s[i : i+2]) {
		switch {
		case digit(c):
			v = v<<4 | (c - '0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | (c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | (c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return v, true
}
