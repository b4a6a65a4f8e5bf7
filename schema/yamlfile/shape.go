package yamlfile

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The limits of a file's shape. The library's memory grows with the square of
// the depth, of the settings of one mapping, and of the documents of one file.
// For 40 KB of opening brackets it took 2.6 GB.
const (
	// mostDepth bounds the nesting of values. Schemas nest fields 16 deep, each
	// with a list and a mapping.
	mostDepth = 64
	// mostMarks bounds the characters that can begin a token. A token takes about
	// 280 bytes, and as much again when it is parsed. A schema of 10,000 fields
	// with five settings each has 300,000.
	mostMarks = 500_000
	// mostSettings bounds the settings of a mapping without braces.
	mostSettings = 1000
	// mostDocuments bounds the documents of a file. Each profile is a document.
	mostDocuments = 128
	// pathBytes bounds the memory for the paths of all values
	// ("$.messages.1.fields[0]") per byte of the file, in addition to pathFree.
	// The paths of a schema take about 15.
	pathBytes = 64
	pathFree  = 1 << 20
)

// checkMarks bounds the number of tokens before the lexer runs. It ignores
// quotes and comments, so it counts too many rather than too few.
func checkMarks(src []byte) error {
	marks := 0
	for _, c := range src {
		switch c {
		case '[', ']', '{', '}', ',', ':', '-', '?', '&', '*', '!', '|', '>', '#', '\'', '"', '%', '@', '`', '\n', '\r':
			if marks++; marks > mostMarks {
				return fmt.Errorf("expected at most %d characters that begin, end or divide values, found more", mostMarks)
			}
		}
	}
	return nil
}

// level is an open mapping or sequence.
type level struct {
	kind     levelKind
	column   int
	settings int
	path     int // bytes that it adds to the paths of the values inside it
}

type levelKind uint8

const (
	levelFlow levelKind = iota
	levelMapping
	levelSequence
)

// sequencePath is about how much an index adds to a path.
const sequencePath = 8

// shape follows the tokens of a file as the parser does, which nests by
// brackets and by columns.
type shape struct {
	levels     []level
	documents  int
	path, cost int // of the open levels; of all values so far
	properties int // anchors and tags in a row
}

// checkShape refuses files for which the parser would take too much memory. It
// receives the library's own tokens, so that both agree on what is a bracket
// and what is text.
func checkShape(tokens token.Tokens, size int) error {
	s := &shape{documents: 1}
	for _, t := range tokens {
		s.next(t)
		line := t.Position.Line
		switch {
		case len(s.levels) > mostDepth || s.properties > mostDepth:
			return fmt.Errorf("line %d: expected values nested at most %d deep, found more", line, mostDepth)
		case s.documents > mostDocuments:
			return fmt.Errorf("line %d: expected at most %d documents, found more", line, mostDocuments)
		case len(s.levels) > 0 && s.levels[len(s.levels)-1].settings > mostSettings:
			return fmt.Errorf(
				"line %d: expected at most %d settings in one place, found more (between braces there may be more)", line,
				mostSettings)
		case s.cost > pathFree+pathBytes*size:
			return fmt.Errorf("line %d: expected short names on the way to a value, found long ones", line)
		}
	}
	return nil
}

func (s *shape) next(t *token.Token) {
	column := t.Position.Column
	switch t.Type {
	case token.AnchorType, token.TagType:
		s.properties++
		return
	case token.StringType, token.CommentType, token.SpaceType:
		s.cost += s.path
		return
	}
	s.properties = 0
	s.cost += s.path
	switch t.Type {
	case token.DocumentHeaderType, token.DocumentEndType:
		s.levels, s.path = s.levels[:0], 0
		s.documents++
	case token.SequenceStartType, token.MappingStartType:
		s.push(level{kind: levelFlow, path: sequencePath})
	case token.SequenceEndType, token.MappingEndType:
		s.closeTo(0)
		s.pop()
	case token.CollectEntryType:
		s.closeTo(0)
	case token.SequenceEntryType:
		s.closeTo(column + 1)
		if n := len(s.levels); n > 0 && s.levels[n-1].kind == levelSequence && s.levels[n-1].column == column {
			return
		}
		s.push(level{kind: levelSequence, column: column, path: sequencePath})
	case token.MappingKeyType:
		s.setting(column, 0)
	case token.MappingValueType:
		length := 0
		if key := t.Prev; key != nil && key.Position.Line == t.Position.Line {
			column, length = key.Position.Column, len(key.Value)
		}
		s.setting(column, length)
	}
}

// setting adds a setting of the mapping whose names begin at the column.
func (s *shape) setting(column, length int) {
	s.closeTo(column + 1)
	if n := len(s.levels); n > 0 && s.levels[n-1].kind == levelSequence && s.levels[n-1].column == column {
		s.pop() // a list may begin at the column of the setting that it belongs to
	}
	n := len(s.levels)
	if n == 0 || s.levels[n-1].kind != levelMapping || s.levels[n-1].column != column {
		s.push(level{kind: levelMapping, column: column})
		n++
	}
	top := &s.levels[n-1]
	top.settings++
	s.path += length - top.path
	top.path = length
}

func (s *shape) push(l level) {
	s.levels = append(s.levels, l)
	s.path += l.path
}

func (s *shape) pop() {
	if n := len(s.levels); n > 0 {
		s.path -= s.levels[n-1].path
		s.levels = s.levels[:n-1]
	}
}

// closeTo closes the levels inside the innermost brackets that begin at or
// after the column.
func (s *shape) closeTo(column int) {
	for n := len(s.levels); n > 0 && s.levels[n-1].kind != levelFlow && s.levels[n-1].column >= column; n-- {
		s.pop()
	}
}
