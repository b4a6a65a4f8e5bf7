package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// coverage reads docs/coverage.md and remembers what it names elsewhere.
type coverage struct {
	root     string
	fields   map[string]bool            // field names of docs/fields.md
	rules    map[string]bool            // headings of docs/findings.md
	literals map[string]bool            // words in quotes in package machine and below
	tests    map[string]map[string]bool // by package folder: its test functions
}

// The columns of the page's tables, from the left.
const (
	columnNumber = iota
	columnStatement
	columnPackets
	columnState
	columnReference
	columnReplay
	columnDocs
	columnTests
	columns
)

var (
	inCode   = regexp.MustCompile("`([^`]+)`")
	inQuotes = regexp.MustCompile(`"([^"]+)"`)
	aLink    = regexp.MustCompile(`\]\(([^)#]+)(?:#([^)]*))?\)`)
	aHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	aField   = regexp.MustCompile("(?m)^\\| `([^`]+)`")
	aRow     = regexp.MustCompile(`^[GRS]\d+$`)
	aWord    = regexp.MustCompile(`"([a-z0-9@.<>=-]+)"`)
)

func newCoverage(t *testing.T) *coverage {
	t.Helper()
	c := &coverage{
		root: testenv.Module(t), fields: map[string]bool{}, rules: map[string]bool{},
		literals: map[string]bool{}, tests: map[string]map[string]bool{},
	}
	for _, m := range aField.FindAllStringSubmatch(c.read(t, "docs/fields.md"), -1) {
		c.fields[m[1]] = true
	}
	for _, m := range aHeading.FindAllStringSubmatch(c.read(t, "docs/findings.md"), -1) {
		c.rules[m[1]] = true
	}
	if err := filepath.WalkDir(filepath.Join(c.root, "machine"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range aWord.FindAllSubmatch(text, -1) {
			c.literals[string(m[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *coverage) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// has reports whether a package has a test, which it finds in the test files. A
// file for another system counts too.
func (c *coverage) has(folder, name string) bool {
	if c.tests[folder] == nil {
		c.tests[folder] = map[string]bool{}
		files, _ := filepath.Glob(filepath.Join(c.root, folder, "*_test.go"))
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				continue // it does not compile: other checks say so
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					c.tests[folder][f.Name.Name] = true
				}
			}
		}
	}
	return c.tests[folder][name]
}

// problems returns what is wrong with the page, and how many rows it has.
func (c *coverage) problems(page string) (list []string, rows int) {
	wrong := func(row, format string, args ...any) {
		list = append(list, row+": "+fmt.Sprintf(format, args...))
	}
	last, number := byte(0), 0
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		row := strings.TrimSpace(cells[0])
		if !aRow.MatchString(row) {
			continue
		}
		if rows++; row[0] != last {
			last, number = row[0], 0
		}
		if number++; row[1:] != fmt.Sprint(number) {
			wrong(row, "expected number %d", number)
		}
		if len(cells) != columns {
			wrong(row, "%d columns, expected %d", len(cells), columns)
			continue
		}
		c.row(row, cells, wrong)
	}
	return list, rows
}

// row checks one row.
func (c *coverage) row(row string, cells []string, wrong func(row, format string, args ...any)) {
	for i, cell := range cells {
		if strings.TrimSpace(cell) == "" {
			wrong(row, "column %d is empty, expected text or –", i+1)
		}
	}
	words := func(column int) (list []string) {
		for _, m := range inCode.FindAllStringSubmatch(cells[column], -1) {
			list = append(list, m[1])
		}
		return list
	}
	for _, w := range words(columnPackets) {
		if strings.Contains(w, ".") && !c.fields[w] {
			wrong(row, "docs/fields.md has no field %q", w)
		}
	}
	for _, w := range words(columnReference) {
		if _, err := os.Stat(filepath.Join(c.root, w)); strings.Contains(w, "/") && err != nil {
			wrong(row, "no file %q", w)
		}
	}
	for _, w := range words(columnReplay) {
		if !strings.HasPrefix(w, "--") && !c.literals[w] {
			wrong(row, "nothing below machine names %q", w)
		}
	}
	for _, m := range inQuotes.FindAllStringSubmatch(cells[columnDocs], -1) {
		if !c.rules[m[1]] {
			wrong(row, "docs/findings.md has no rule %q", m[1])
		}
	}
	for _, m := range aLink.FindAllStringSubmatch(cells[columnDocs], -1) {
		text, err := os.ReadFile(filepath.Join(c.root, "docs", m[1]))
		switch {
		case err != nil:
			wrong(row, "no page %q", m[1])
		case m[2] != "" && !hasAnchor(string(text), m[2]):
			wrong(row, "%s has no heading %q", m[1], m[2])
		}
	}
	named := words(columnTests)
	for _, w := range named {
		folder, name, ok := strings.Cut(w, ".")
		if !ok || !c.has(folder, name) {
			wrong(row, "no test %q", w)
		}
	}
	shown := strings.Join(cells[columnPackets:columnDocs], "") != "––––"
	if len(named) == 0 && shown && !strings.Contains(strings.Join(cells, " "), "**not yet**") {
		wrong(row, "no test, though there is something to hold")
	}
}

// hasAnchor reports whether a page has a heading with an anchor, as web pages of
// repositories make them.
func hasAnchor(page, anchor string) bool {
	for _, m := range aHeading.FindAllStringSubmatch(page, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		if slug == anchor {
			return true
		}
	}
	return false
}

// TestCoverage: every test, file, field, rule and page that docs/coverage.md names
// is there.
func TestCoverage(t *testing.T) {
	c := newCoverage(t)
	page := c.read(t, "docs/coverage.md")
	list, rows := c.problems(page)
	for _, p := range list {
		t.Error(p)
	}
	if rows < 90 {
		t.Errorf("%d rows, expected at least 90", rows)
	}
	t.Logf("%d rows, %d parts not yet there", rows, strings.Count(page, "**not yet**")-1)
}

// TestCoverageCatches breaks a row in each way, and expects the complaint.
func TestCoverageCatches(t *testing.T) {
	c := newCoverage(t)
	const row = "| G1 | It says | `gaffer.ack` | received | `machine/gaffer/state.go` | `ack-omitted` | " +
		"[model](model.md#evidence), \"false-ack\" | `wire/gaffer.TestHeaders` |\n"
	if list, rows := c.problems(row); len(list) > 0 || rows != 1 {
		t.Fatalf("%d rows, %v", rows, list)
	}
	for was, now := range map[string]string{
		"TestHeaders":               "TestHeads",
		"wire/gaffer.T":             "wire/gafer.T",
		"`wire/gaffer.TestHeaders`": "–",
		"gaffer.ack`":               "gaffer.acks`",
		"state.go":                  "states.go",
		"ack-omitted":               "ack-omitteds",
		"false-ack":                 "false-acks",
		"model.md":                  "models.md",
		"#evidence":                 "#evidences",
		"| received ":               "",
		"received":                  " ",
		"G1":                        "G2",
	} {
		if list, _ := c.problems(strings.Replace(row, was, now, 1)); len(list) != 1 {
			t.Errorf("with %q for %q: %q, expected one complaint", now, was, list)
		}
	}
}
