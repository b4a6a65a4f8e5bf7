package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/thresholds/constants"
)

// TestSources: each number of the machines says what it rests on, by a known word. The test
// that a measured number names exists, and so does the rule that a definition names.
func TestSources(t *testing.T) {
	root := testenv.Module(t)
	tree, err := constants.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tree.Constants); n < 200 {
		t.Fatalf("found %d constants, expected at least 200", n)
	}
	for _, fault := range unsourced(tree, declarations(t, root)) {
		t.Error(fault)
	}
}

// declarations returns the text of all Go files that declare tests or rules.
func declarations(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"machine", "analyze", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(p string, _ fs.DirEntry, err error) error {
			name := filepath.Base(p)
			rules := strings.HasPrefix(name, "rules") && filepath.Ext(name) == ".go"
			if err != nil || !rules && !strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(p)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// unsourced returns a sentence for each number whose Source line is missing or wrong.
func unsourced(tree *constants.Tree, declared string) (faults []string) {
	for _, c := range tree.Constants {
		at := fmt.Sprintf("%s:%d: %s", c.File, c.Line, c.Name)
		switch {
		case c.Kind == constants.Derived:
		case c.Kind == "":
			faults = append(faults, at+": expected a line such as \"// Source: measured, TestMarginsGaffer\" in its comment")
		case !slices.Contains(constants.Kinds, c.Kind):
			faults = append(faults, fmt.Sprintf("%s: source %q: expected one of %v", at, c.Kind, constants.Kinds))
		case c.Rests == "":
			faults = append(faults, fmt.Sprintf("%s: source %s: expected what it rests on behind a comma", at, c.Kind))
		case c.Kind == constants.Measured && !strings.Contains(declared, "func "+c.Rests+"("):
			faults = append(faults, fmt.Sprintf("%s: there is no test %s", at, c.Rests))
		case c.Kind == constants.Definition:
			if rule, _, _ := strings.Cut(c.Rests, ":"); !strings.Contains(declared, `ID: "`+rule+`"`) {
				faults = append(faults, fmt.Sprintf("%s: there is no rule %s", at, rule))
			}
		}
	}
	return faults
}

// TestSourcesCatches plants constants whose sources are missing or wrong.
func TestSourcesCatches(t *testing.T) {
	for _, x := range []struct{ text, fault string }{
		{"const soon = 4 * time.Millisecond", "expected a line such as"},
		{"// Source: guess, it looked right\nconst soon = 4", `source "guess"`},
		{"// Source: bound\nconst most = 4", "behind a comma"},
		{"// Source: measured, TestNothing\nconst soon = 4", "no test TestNothing"},
		{"// Source: definition, no-rule: many\nconst many = 4", "no rule no-rule"},
		{"func f() {\n\tconst soon = 4\n}", "expected a line such as"},
		{"// Source: law, the text\nconst due = 4\nconst late = due + time.Second", "late: expected a line such as"},
		{"// Source: law, the text\nconst due = 4\nconst late = 2 * due", ""},
		{"const word, first = \"x\", kind(1)\ntype kind int\nconst (\n\tone kind = iota\n\ttwo\n)", ""},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "machine"), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "package machine\n\nimport \"time\"\n\nvar _ time.Duration\n\n" + x.text + "\n"
		if err := os.WriteFile(filepath.Join(root, "machine", "x.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tree, err := constants.Read(root)
		if err != nil {
			t.Fatal(err)
		}
		switch faults := unsourced(tree, ""); {
		case x.fault == "" && len(faults) > 0:
			t.Errorf("%s\nis not found right: %s", x.text, faults)
		case x.fault != "" && !strings.Contains(strings.Join(faults, "\n"), x.fault):
			t.Errorf("%s\nfound %q, expected a sentence with %q", x.text, faults, x.fault)
		}
	}
}

// TestMargins: the present value of each measured constant has a measured margin of Least.
// docs/thresholds.md is the table of the sources and these margins.
func TestMargins(t *testing.T) {
	root := testenv.Module(t)
	tree, err := constants.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	margins, err := readMargins(filepath.Join(root, marginsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range missing(tree, margins) {
		t.Error(fault)
	}
	want, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != table(tree, margins) {
		t.Errorf("%s is not the table of the sources: go run ./internal/thresholds", page)
	}
}

// TestMarginsMissing: a constant without a margin, with one of another value, with a
// small one, and one that nothing hangs on are found.
func TestMarginsMissing(t *testing.T) {
	tree := &constants.Tree{}
	add := func(name string, kind constants.Kind) {
		tree.Constants = append(tree.Constants, &constants.Constant{Package: "p", Name: name, Value: "4", Kind: kind})
	}
	for _, name := range []string{"good", "none", "other", "small", "idle"} {
		add(name, constants.Measured)
	}
	add("bound", constants.Bound)
	margins := map[string]margin{
		"p.good": {"p.good", "4", 2, 5, 1, ""}, "p.other": {"p.other", "3", 2, 5, 1, ""},
		"p.small": {"p.small", "4", 5, 1, 1, ""}, "p.idle": {"p.idle", "4", 5, 5, 0, ""},
	}
	faults := missing(tree, margins)
	for i, part := range []string{
		"none has not been measured", "other is 4, and 3", "small has a margin of 1,", "idle moves no fact",
	} {
		if len(faults) != 4 || !strings.Contains(faults[i], part) {
			t.Fatalf("found %q, expected four sentences, one with %q", faults, part)
		}
	}
}
