package constants

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sources = `package p

import "time"

// soon is short.
// Source: measured, TestSoon
const soon = 4 * time.Millisecond

const (
	// Source: bound, the room
	most = 64
	// few is few.
	// Source: measured, TestSoon.
	few int64 = 3
	twice = 2 * soon // twice as long
	kind = "word"
)

type kinds int

const (
	one kinds = iota
	two
)

func f() time.Duration {
	const late = soon + twice
	return late
}
`

// written puts the sources into a folder of their own.
func written(t *testing.T, text string) *Tree {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "machine", "p"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "machine", "p", "p.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestRead: numbers are found with what they rest on; words and enumerations are none.
func TestRead(t *testing.T) {
	var found []string
	for _, c := range written(t, sources).Constants {
		found = append(found, strings.Join([]string{c.Key(), c.Value, string(c.Kind), c.Rests, c.Doc}, "|"))
	}
	want := []string{
		"machine/p.soon|4 * time.Millisecond|measured|TestSoon|soon is short.",
		"machine/p.most|64|bound|the room|",
		"machine/p.few|3|measured|TestSoon|few is few.",
		"machine/p.twice|2 * soon|derived||twice as long",
		"machine/p.late|soon + twice|derived||",
	}
	if got := strings.Join(found, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nexpected\n%s", got, strings.Join(want, "\n"))
	}
}

// TestOverlay: measured constants become variables that can be scaled, and so does what
// follows from them; nothing else changes, and no line moves.
func TestOverlay(t *testing.T) {
	tree, dir := written(t, sources), t.TempDir()
	list, err := tree.Overlay(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil || len(overlay.Replace) != 1 {
		t.Fatalf("%v, %d files replaced; expected one", err, len(overlay.Replace))
	}
	for _, to := range overlay.Replace {
		got, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), to, got, 0); err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		for _, part := range []string{
			"var soon = 4 * time.Millisecond", `thresholdsdial.Add("machine/p.soon", &soon)`, "var few int64 = 3",
			"var twice = 2 * soon", "thresholdsdial.Derive(func() { twice = 2 * soon })", "most = 64",
			"var   late = soon + twice",
		} {
			if !strings.Contains(string(got), part) {
				t.Errorf("no %q in\n%s", part, got)
			}
		}
		if strings.Contains(string(got), "const soon") || strings.Contains(string(got), "&most") {
			t.Errorf("soon is constant still, or most is not:\n%s", got)
		}
		was, is := strings.Split(sources, "\n"), strings.Split(string(got), "\n")
		for i, line := range was {
			if strings.Contains(line, "func f()") && is[i] != line {
				t.Errorf("line %d is %q, expected %q", i+1, is[i], line)
			}
		}
	}
}

// TestOverlayRefuses: a measured constant within a function cannot be scaled from
// outside, and one in a line with others only together with them.
func TestOverlayRefuses(t *testing.T) {
	for text, fault := range map[string]string{
		"package p\n\nfunc f() int {\n\t// Source: measured, TestSoon\n\tconst soon = 4\n\treturn soon\n}\n": "functions",
	} {
		if _, err := written(t, text).Overlay(t.TempDir()); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s\n%v, expected an error with %q", text, err, fault)
		}
	}
}
