package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestProse: the comments and documents of the repository keep the rules of this
// package. It says where they do not, as `go run ./internal/prose` does.
func TestProse(t *testing.T) {
	t.Chdir("../..")
	if _, err := os.Stat(".git"); err != nil {
		testenv.Skip(t, "no git checkout: git alone knows the files of the repository")
	}
	files, err := tracked(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 500 {
		t.Fatalf("expected hundreds of files, found %d", len(files))
	}
	for _, name := range files {
		r, err := readFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.faults {
			t.Errorf("%s:%d: %s", name, f.line, f.text)
		}
	}
}

// TestFaults: each rule finds what breaks it, in comments, names and documents,
// and nothing where the text keeps it.
func TestFaults(t *testing.T) {
	long := strings.Repeat("word ", mostWords)
	for name, c := range map[string]struct{ file, text, want string }{
		"short":          {"machine/a.go", "package a\n\n// A does this. B does that.\n", ""},
		"long sentence":  {"machine/a.go", "package a\n\n// A " + long + "ends.\n", "3: sentence of 27 words"},
		"two sentences":  {"machine/a.go", "package a\n\n// A " + long[:60] + "ends. B " + long[:40] + ".\n", ""},
		"over two lines": {"machine/a.go", "package a\n\n// A " + long + "\n// ends.\n", "3: sentence of 27 words"},
		"a list": {
			"machine/a.go", "package a\n\n//   - A " + long[:60] + "\n//     " + long[:70] + "ends.\n//   - B.\n",
			"3: sentence of 28 words",
		},
		"abbreviation":     {"machine/a.go", "package a\n\n// A i.e. " + long + ".\n", "3: sentence of 27 words"},
		"drawing":          {"machine/a.go", "package a\n\n//\tA " + long + "ends.\n", ""},
		"word":             {"machine/a.go", "package a\n\n// A courier.\n", `3: "courier": what carried`},
		"name":             {"machine/a.go", "package a\n\nvar newCourier int\n", `3: "Courier"`},
		"judge":            {"machine/a.go", "package a\n\nvar judgeVantage int\n", `3: "judge"`},
		"judge in replay":  {"replay/a.go", "package a\n\nvar judgeVantage int\n", ""},
		"column":           {"replay/a.go", "package a\n\nvar _ = f(" + strings.Repeat("1, ", 50) + "1)\n", "3: line of 162"},
		"column of a text": {"replay/a.go", "package a\n\nvar _ = `" + strings.Repeat("1, ", 50) + "`\n", ""},
		"no Go":            {"replay/a.go", "packag", "1: not readable"},
		"page":             {"docs/a.md", "# A\n\nIt is short.\n", ""},
		"page, sentence": {
			"docs/a.md", "# A\n\nIt\n" + long[:60] + "\n" + long[:70] + "ends.\n",
			"3: sentence of 28 words",
		},
		"page, column":    {"docs/a.md", strings.Repeat("A b. ", 21) + "\n", "1: line of 105 columns"},
		"page, table":     {"docs/a.md", "| " + strings.Repeat("a b. ", 21) + "\n", ""},
		"page, block":     {"docs/a.md", "```\n" + strings.Repeat("a b ", 30) + "\n```\n", ""},
		"page, code":      {"docs/a.md", "The user `nobody` runs it.\n", ""},
		"page, word":      {"docs/a.md", "The user nobody runs it.\n", `1: "nobody"`},
		"page, reference": {"docs/a.md", "See section 4.2.\n", `1: "section 4.2"`},
	} {
		var r *reading
		if strings.HasSuffix(c.file, ".md") {
			r = readDocument(c.file, c.text)
		} else {
			r = readGo(c.file, []byte(c.text))
		}
		var got strings.Builder
		for _, f := range r.faults {
			fmt.Fprintf(&got, "%d: %s\n", f.line, f.text)
		}
		if c.want == "" && got.Len() > 0 || !strings.HasPrefix(got.String(), c.want) {
			t.Errorf("%s: expected %q, found %q", name, c.want, got.String())
		}
	}
}
