package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// paragraphs gathers the lines of running text and splits them into sentences.
type paragraphs struct {
	*reading
	name  string
	text  strings.Builder
	begin []place // where in text each line begins
	list  bool    // the line is an item of a list in a comment, or goes on with one
}

type place struct{ offset, line int }

// line adds a line of running text. An item of a list begins a sentence.
func (p *paragraphs) line(n int, text string) {
	if item.MatchString(text) {
		p.end()
	}
	if p.text.Len() > 0 {
		p.text.WriteByte(' ')
	}
	p.begin = append(p.begin, place{p.text.Len(), n})
	p.text.WriteString(text)
}

var item = regexp.MustCompile(`^([-*•]|\d+[.)])\s`)

// end checks what was gathered.
func (p *paragraphs) end() {
	text := p.text.String()
	p.text.Reset()
	begin := p.begin
	p.begin = nil
	lineOf := func(offset int) int {
		n := 0
		for _, b := range begin {
			if b.offset <= offset {
				n = b.line
			}
		}
		return n
	}
	for i := range terms {
		if t := &terms[i]; !t.allows(p.name) {
			for _, at := range t.word.FindAllStringIndex(text, -1) {
				p.fault(lineOf(at[0]), "%q: %s", text[at[0]:at[1]], t.say)
			}
		}
	}
	for from := 0; from < len(text); {
		to := from + sentence(text[from:])
		n := words(text[from:to])
		p.words += n
		p.longest = max(p.longest, n)
		if n > mostWords {
			p.fault(lineOf(from), "sentence of %d words: %q", n, shortened(strings.TrimSpace(text[from:to])))
		}
		from = to
	}
}

// sentence returns the length of the first sentence. A full stop, a question mark
// or an exclamation mark ends it, where a space and no small letter follow. "e.g."
// and "i.e." end none.
func sentence(text string) int {
	for i, c := range text {
		if c != '.' && c != '!' && c != '?' {
			continue
		}
		rest := strings.TrimLeft(text[i+1:], "\")`*”’")
		if rest == "" {
			return len(text)
		}
		after := strings.TrimLeft(rest, " ")
		if after == rest {
			continue
		}
		next, _ := utf8.DecodeRuneInString(after)
		abbreviation := strings.HasSuffix(text[:i+1], "e.g.") || strings.HasSuffix(text[:i+1], "i.e.") ||
			strings.HasSuffix(text[:i+1], "vs.")
		if !abbreviation && (!unicode.IsLower(next) || c != '.') || lowerStart(after) && !abbreviation {
			return len(text) - len(after)
		}
	}
	return len(text)
}

// lowerStart reports whether a sentence begins with a name that is written small:
// "ackscope reads …", "reliable sends …", a field such as ack_bits.
func lowerStart(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return word == "ackscope" || word == "reliable" || word == "netcode" || word == "yojimbo" || word == "tshark" ||
		strings.ContainsAny(word, "_0123456789") || strings.IndexFunc(word, unicode.IsUpper) > 0
}

var wordly = regexp.MustCompile(`[\pL\pN]`)

// words counts what a reader reads as words: what holds a letter or a digit.
func words(text string) (n int) {
	for w := range strings.FieldsSeq(text) {
		if wordly.MatchString(w) {
			n++
		}
	}
	return n
}

func shortened(text string) string {
	if len(text) <= 90 {
		return text
	}
	cut := strings.LastIndexByte(text[:90], ' ')
	return text[:max(cut, 0)] + " …"
}
