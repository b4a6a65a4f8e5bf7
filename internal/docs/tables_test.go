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
		"This page lists the columns of `--json` and of `ackscope export jsonl|csv|parquet`.\n\n" +
		"Where a row has no value in a column, the formats differ:\n\n" +
		"- JSON has null, or leaves the key out, as the column \"if none\" says.\n" +
		"- CSV has an empty field.\n" +
		"- Parquet has null. It always has all columns of a table.\n\n" +
		"CSV holds lists and objects as JSON. Parquet holds objects as JSON too.\n\n" +
		"Names, types and order are stable. New columns may come at the end of the table or object to which\n" +
		"they belong.\n")
	columns := 0
	list := func(s *export.Schema, depth int) {
		fmt.Fprintf(&page, "\n%s %s\n\n%s\n\n| column | type | if none | meaning |\n|---|---|---|---|\n",
			strings.Repeat("#", depth), s.Name, s.Doc)
		columns += columnLines(&page, "", s.Columns)
	}
	for _, s := range export.Tables() {
		list(s, 2)
	}
	page.WriteString("\n# Other objects\n\n" +
		"Some commands print an object with `--json`, not a table. Each is listed under the name of its\n" +
		"command; status is an object of package unit.\n\n" +
		"`ackscope schema COMMAND` prints the JSON Schema of these objects and of the tables. A command\n" +
		"without a schema takes no `--json`.\n")
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
		"Filters (`-Y`) and columns (`-e`) can name these fields. `ackscope fields` prints the same list.\n\n" +
		"| field | type | meaning |\n|---|---|---|\n")
	type field struct {
		Name, Type, Unit, Doc string
		ColumnOnly            bool `json:"column_only"`
	}
	apart := false
	for _, f := range listed[field](t, 250, "fields", "--json") {
		if f.ColumnOnly && !apart {
			apart = true
			page.WriteString("\n## Fields for columns alone\n\n" +
				"Only `-e` can name these fields. They are of the layers that `packets -V` shows\n" +
				"([packets.md](packets.md)).\n\n| field | type | meaning |\n|---|---|---|\n")
		}
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
			"A profile says how ackscope reads a protocol. `ackscope protocols` prints the same list, and\n" +
			"`ackscope protocols PROTOCOL` prints more about one protocol.\n\n" +
			"| profile | meaning |\n|---|---|\n")
	for _, p := range listed[struct{ Protocol, Profile, Doc string }](t, 10, "protocols", "--json") {
		fmt.Fprintf(&page, "| `%s:%s` | %s |\n", p.Protocol, p.Profile, strings.ReplaceAll(p.Doc, "|", "\\|"))
	}
	same(t, "docs/profiles.md", page.String())
}
