package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	heading = regexp.MustCompile(`^#+ `)
	target  = regexp.MustCompile(`\]\([^)]*\)`)
	inline  = regexp.MustCompile("`[^`]*`")
)

// readDocument checks a Markdown file. Fenced and indented blocks, tables and
// HTML are exempt.
func readDocument(name, text string) *reading {
	r := &reading{}
	p := paragraphs{reading: r, name: name}
	fenced, inList := false, false
	line := 0
	for raw := range strings.SplitSeq(text, "\n") {
		line++
		trimmed := strings.TrimSpace(raw)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
			p.end()
			continue
		}
		if item.MatchString(trimmed) {
			inList = true
		} else if trimmed != "" && !strings.HasPrefix(raw, " ") {
			inList = false
		}
		block := strings.HasPrefix(raw, "    ") && !inList
		if fenced || block || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "<") {
			p.end()
			continue
		}
		if n := utf8.RuneCountInString(raw); n > mostColumns && !lone(trimmed) {
			r.fault(line, "line of %d columns: expected at most %d", n, mostColumns)
		}
		if trimmed == "" || heading.MatchString(trimmed) {
			p.end()
			continue
		}
		quote := strings.TrimSpace(strings.TrimPrefix(trimmed, ">"))
		p.line(line, inline.ReplaceAllStringFunc(target.ReplaceAllString(quote, "]"), oneWord))
	}
	p.end()
	return r
}

// oneWord stands for a piece of code, which counts as one word and is not prose:
// the user nobody in `ackscope capture -Z nobody`.
func oneWord(string) string { return "`code`" }

// lone reports whether a line is a single word or link, which cannot be broken.
func lone(text string) bool { return !strings.Contains(target.ReplaceAllString(text, "]"), " ") }
