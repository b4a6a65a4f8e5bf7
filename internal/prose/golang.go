package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

// readGo checks the comments, the names and the lines of a Go file.
func readGo(name string, src []byte) *reading {
	r := &reading{}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		r.fault(1, "not readable: %v", err)
		return r
	}
	for _, group := range file.Comments {
		p := paragraphs{reading: r, name: name}
		for _, c := range group.List {
			line := files.Position(c.Pos()).Line
			for k, text := range strings.Split(c.Text, "\n") {
				p.comment(line+k, text)
			}
		}
		p.end()
	}
	seen := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !seen[id.Name] {
			seen[id.Name] = true
			r.terms(name, files.Position(id.Pos()).Line, spaced(id.Name))
		}
		return true
	})
	r.columns(src)
	return r
}

// comment takes one line of a comment.
func (p *paragraphs) comment(line int, text string) {
	text = strings.TrimRight(text, " \t\r")
	body, isLine := strings.CutPrefix(text, "//")
	if !isLine {
		body = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "/*"), "*/")
	}
	directive := isLine && body != "" && body[0] != ' ' && body[0] != '\t'
	trimmed := strings.TrimSpace(body)
	indented := strings.HasPrefix(body, "  ")
	p.list = indented && (item.MatchString(trimmed) || p.list && trimmed != "")
	drawing := strings.HasPrefix(body, "\t") || indented && !p.list
	switch {
	case directive || drawing || strings.HasPrefix(body, " Output:"):
		p.end()
	case trimmed == "":
		p.end()
	default:
		p.line(line, trimmed)
	}
}

var humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// spaced splits a name of Go into its words: "judgeVantage" gives "judge Vantage".
func spaced(name string) string {
	return strings.ReplaceAll(humps.ReplaceAllString(name, "$1 $2"), "_", " ")
}

// columns checks the length of each line that holds code or a comment. Lines of
// raw strings are text of their own, and a single token cannot be broken.
func (r *reading) columns(src []byte) {
	exempt := map[int]bool{}
	set := token.NewFileSet()
	f := set.AddFile("", set.Base(), len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, scanner.ScanComments)
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			break
		}
		from := f.Line(pos)
		to := from + strings.Count(text, "\n")
		drawing := kind == token.COMMENT && (strings.HasPrefix(text, "//\t") || strings.HasPrefix(text, "//nolint") ||
			strings.Contains(text, "//nolint") || strings.Contains(text, "://"))
		long := kind == token.STRING && utf8.RuneCountInString(text) > mostGo-40 && !strings.Contains(text, " ")
		if kind == token.STRING && text[0] == '`' || drawing || long {
			for l := from; l <= to; l++ {
				exempt[l] = true
			}
		}
	}
	line := 0
	for text := range strings.SplitSeq(string(src), "\n") {
		line++
		if n := utf8.RuneCountInString(text); n > mostGo && !exempt[line] {
			r.fault(line, "line of %d columns: expected at most %d", n, mostGo)
		}
	}
}

// A reading is what one file shows.
type reading struct {
	words, longest int
	faults         []fault
}

type fault struct {
	line int
	text string
}

func (r *reading) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, fault{line, fmt.Sprintf(format, args...)})
}

// terms reports the words of a text that the glossary forbids here.
func (r *reading) terms(name string, line int, text string) {
	for i := range terms {
		if t := &terms[i]; !t.allows(name) {
			if found := t.word.FindString(text); found != "" {
				r.fault(line, "%q: %s", found, t.say)
			}
		}
	}
}
