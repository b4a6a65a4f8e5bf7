package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	red, bold := plain, plain
	red.fg, bold.bold = 1, true
	for _, c := range []struct {
		line  string
		runs  []run
		width int
	}{
		{"plain", []run{{plain, 0, "plain"}}, 5},
		{"a \x1b[31mred\x1b[0m b", []run{{plain, 0, "a "}, {red, 2, "red"}, {plain, 5, " b"}}, 7},
		{"\x1b[1m⇄ x\x1b[22m", []run{{bold, 0, "⇄ x"}}, 3},
		{"\x1b[31ma\x1b[0m\x1b[31mb\x1b[0m", []run{{red, 0, "ab"}}, 2},
		{"cut\x1b[3", []run{{plain, 0, "cut"}}, 3},
		{"erase\x1b[K", []run{{plain, 0, "erase"}}, 5},
		{"\x1b[38;5;196;48;2;1;2;3mx\x1b[m", []run{{style{fg: rgb + 0xff0000, bg: rgb + 0x010203}, 0, "x"}}, 1},
		{
			"\x1b[38;5;244mg\x1b[38:2:255:0:1mh\x1b[39m",
			[]run{{style{fg: rgb + 0x808080, bg: -1}, 0, "g"}, {style{fg: rgb + 0xff0001, bg: -1}, 1, "h"}},
			2,
		},
		{"\x1b[38;5ms", []run{{plain, 0, "s"}}, 1},
	} {
		runs, end, width := split(c.line, plain)
		if !slices.Equal(runs, c.runs) || width != c.width || end != plain {
			t.Errorf("split(%q) = %+v, %d cells, ends in %+v; expected %+v, %d cells", c.line, runs, width, end, c.runs, c.width)
		}
	}
}

func TestDrawIsWellFormed(t *testing.T) {
	var out strings.Builder
	if err := darkPage.draw(strings.NewReader("$ ackscope -Y 'a<1'\na <b> & \x1b[7mc\x1b[0m\n\n\x1b[90;1mdim\x1b[m\n"),
		&out); err != nil {
		t.Fatal(err)
	}
	text := ""
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		if chars, ok := token.(xml.CharData); ok {
			text += strings.Trim(string(chars), "\n")
		}
	}
	if expected := `$ackscope -Y 'a<1'a <b> &cdim`; text != expected {
		t.Errorf("the picture says %q, expected %q", text, expected)
	}
}

// Several spaces are left out, and what follows stands in its own column.
func TestPieces(t *testing.T) {
	type piece struct {
		at   int
		text string
	}
	for text, want := range map[string][]piece{
		"":                 nil,
		"   ":              nil,
		"one":              {{0, "one"}},
		" one two  three ": {{1, "one two"}, {10, "three"}},
		"a   · b":          {{0, "a"}, {4, "· b"}},
	} {
		var got []piece
		for at, part := range pieces(text) {
			got = append(got, piece{at, part})
		}
		if !slices.Equal(got, want) {
			t.Errorf("pieces(%q) = %v, expected %v", text, got, want)
		}
	}
}
