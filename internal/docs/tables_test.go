package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/testenv"
)

// TestTables: docs/tables.md follows from the declaration of the tables. So a
// changed name or type shows in it.
func TestTables(t *testing.T) {
	var page strings.Builder
	page.WriteString("<!-- Written by go test ./internal/docs -update, from the declarations in package export. " +
		"-->\n\n# Tables\n\n" +
		"The columns of `--json` and of `ackscope export jsonl|csv|parquet`. In Parquet all columns of a table are always " +
		"there. " +
		"Where a row has no value, Parquet has null and CSV nothing; in JSON the value is null, or the key is left out, as " +
		"\"if none\" says. " +
		"Lists and objects are JSON in CSV; objects are JSON in Parquet too.\n\n" +
		"Names, types and order are stable: columns may be added, at the end of what they belong to.\n")
	columns := 0
	list := func(s *export.Schema, depth int) {
		fmt.Fprintf(&page, "\n%s %s\n\n%s\n\n| column | type | if none | |\n|---|---|---|---|\n", strings.Repeat("#", depth),
			s.Name, s.Doc)
		columns += columnLines(&page, "", s.Columns)
	}
	for _, s := range export.Tables() {
		list(s, 2)
	}
	page.WriteString("\n# Other objects\n\nWhat commands print with `--json` that is no table: each under the name of " +
		"its command. " +
		"`ackscope schema COMMAND` prints the JSON Schema of these and of the tables; a command that has none takes no " +
		"`--json`.\n")
	for _, s := range export.Objects() {
		if s.OneOf == nil {
			list(s, 2)
			continue
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", s.Name, s.Doc)
		for _, kind := range s.OneOf {
			list(kind, 3)
		}
	}
	if columns < 300 {
		t.Errorf("%d columns, expected at least 300", columns)
	}
	same(t, "docs/tables.md", page.String())
}

// columnLines writes a line for each column, followed by the lines of its inner
// columns.
func columnLines(page *strings.Builder, of string, columns []export.Column) (lines int) {
	for _, c := range columns {
		kind := c.Type.String()
		if c.Unit != "" {
			kind += ", " + c.Unit
		}
		doc := c.Doc
		if len(c.Words) > 0 {
			doc += " One of: " + strings.Join(c.Words, ", ") + "."
		}
		fmt.Fprintf(page, "| `%s%s` | %s | %s | %s |\n", of, c.Name, kind,
			[...]string{"", "null", "left out", "null or left out"}[c.Absent], doc)
		lines++
		if c.Shape != nil {
			lines += columnLines(page, of+c.Name+".", c.Shape.Columns)
		}
	}
	return lines
}

// listed returns what the program lists, which must be at least so many
// objects.
func listed[T any](t *testing.T, least int, args ...string) (list []T) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(testenv.Output(t, testenv.Ackscope(t), args...))); ; {
		var x T
		if err := d.Decode(&x); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	if len(list) < least {
		t.Errorf("%v: %d are listed, expected %d at least", args, len(list), least)
	}
	return list
}

// TestFields: docs/fields.md is the output of `ackscope fields`.
func TestFields(t *testing.T) {
	var page strings.Builder
	page.WriteString("<!-- Written by go test ./internal/docs -update, from the fields themselves. -->\n\n# Fields\n\n" +
		"What filters (`-Y`) and columns (`-e`) can name; `ackscope fields` prints the same.\n\n| field | type | " +
		"|\n|---|---|---|\n")
	for _, f := range listed[struct{ Name, Type, Unit, Doc string }](t, 100, "fields", "--json") {
		kind := f.Type
		if f.Unit != "" {
			kind += ", " + f.Unit
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", f.Name, kind, strings.ReplaceAll(f.Doc, "|", "\\|"))
	}
	same(t, "docs/fields.md", page.String())
}

// TestProfiles: docs/profiles.md is the output of `ackscope protocols`.
func TestProfiles(t *testing.T) {
	var page strings.Builder
	page.WriteString(
		"<!-- Written by go test ./internal/docs -update, from the profiles themselves. -->\n\n# Profiles\n\n" +
			"How each protocol can be read; `ackscope protocols` prints the same, and `ackscope protocols PROTOCOL` more.\n\n| " +
			"profile | |\n|---|---|\n")
	for _, p := range listed[struct{ Protocol, Profile, Doc string }](t, 10, "protocols", "--json") {
		fmt.Fprintf(&page, "| `%s:%s` | %s |\n", p.Protocol, p.Profile, strings.ReplaceAll(p.Doc, "|", "\\|"))
	}
	same(t, "docs/profiles.md", page.String())
}
