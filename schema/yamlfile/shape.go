package yamlfile

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The limits of a file's shape. What the library takes for a file grows with the
// square of its depth, of the settings of one mapping and of the documents of one
// file: 40 KB of opening brackets took 2.6 GB.
const (
	// mostDepth is how deep values nest: schemas nest fields 16 deep, each with a
	// list and a mapping.
	mostDepth = 64
	// mostMarks bounds the characters that can begin a token. A token takes some
	// 280 bytes, and as much again when it is parsed. A schema of 10,000 fields of
	// five settings each has 300,000.
	mostMarks = 500_000
	// mostSettings is how many settings a mapping without braces has.
	mostSettings = 1000
	// mostDocuments is how many documents a file has, one for each profile.
	mostDocuments = 128
	// pathBytes is what the paths of all values ("$.messages.1.fields[0]") may take
	// for each byte of the file, beyond pathFree. Those of a schema take about 15.
	pathBytes = 64
	pathFree  = 1 << 20
)

// checkMarks bounds the number of tokens before there are any. It knows nothing of
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

// level is a mapping or sequence that is open.
type level struct {
	kind     levelKind
	column   int
	settings int
	path     int // bytes that it adds to the path of what is in it
}

type levelKind uint8

const (
	levelFlow levelKind = iota
	levelMapping
	levelSequence
)

// sequencePath is what an index adds to a path, about.
const sequencePath = 8

// shape follows the tokens of a file as the parser does, which nests by brackets
// and by columns.
type shape struct {
	levels     []level
	documents  int
	path, cost int // of the open levels; of all values so far
	properties int // anchors and tags in a row
}

// checkShape refuses what the parser would take too much for. It is given the
// library's own tokens, so that both agree what is a bracket and what is text.
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

// setting is one of a mapping whose names begin at the column.
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

// closeTo closes the levels within the innermost brackets that begin at the column
// or behind it.
func (s *shape) closeTo(column int) {
	for n := len(s.levels); n > 0 && s.levels[n-1].kind != levelFlow && s.levels[n-1].column >= column; n-- {
		s.pop()
	}
}
