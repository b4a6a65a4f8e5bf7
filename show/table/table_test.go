package table

import (
	"slices"
	"strings"
	"testing"
)

// render draws rows of plain text.
func render(t *Table, rows [][]string, width int) string {
	for _, row := range rows {
		for i, text := range row {
			t.Note(i, len(text), strings.Trim(text, " -") == "")
		}
	}
	t.Fit(width)
	var b strings.Builder
	for _, row := range rows {
		line := strings.Repeat(" ", 100)
		for _, p := range t.Places() {
			text := row[p.Column][:min(len(row[p.Column]), p.Width)]
			at := p.Start(len(text))
			line = line[:at] + text + line[at+len(text):]
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func TestTable(t *testing.T) {
	columns := []Column{
		{Title: "#", Right: true},
		{Title: "name", Yields: 3},
		{Title: "loss", Right: true, Min: 6, Yields: 1},
		{Title: "note", Yields: 2},
	}
	rows := [][]string{{"1", "gaffer", "2.5%", "-"}, {"12", "riptide/2.1", "-", "-"}}
	for _, c := range []struct {
		width int
		want  string
	}{
		{80, " 1  gaffer         2.5%  -\n12  riptide/2.1       -  -\n"},
		// The column without text goes first, although another has a lower Yields.
		{24, " 1  gaffer         2.5%\n12  riptide/2.1       -\n"},
		{22, " 1  gaffer\n12  riptide/2.1\n"},
		// When the wide column goes, the narrow one stays.
		{12, " 1    2.5%\n12       -\n"},
		{3, " 1\n12\n"},
		{0, " 1\n12\n"},
	} {
		table := New(columns, 2)
		if got := render(table, rows, c.width); got != c.want {
			t.Errorf("in %d columns:\n%sexpected\n%s", c.width, got, c.want)
		}
		if got := table.Total(); got > max(c.width, 2) {
			t.Errorf("in %d columns: %d are taken", c.width, got)
		}
	}
}

// A table without rows keeps its titles if they fit.
func TestTableWithoutRows(t *testing.T) {
	table := New([]Column{{Title: "one"}, {Title: "two", Yields: 1}}, 1)
	if table.Fit(7); len(table.Places()) != 2 {
		t.Errorf("%v, expected both columns", table.Places())
	}
	if table.Fit(6); len(table.Places()) != 1 {
		t.Errorf("%v, expected one column", table.Places())
	}
}

// A bare table omits a column without text, unless the column is needed.
func TestEmptyColumns(t *testing.T) {
	table := New([]Column{{Title: "a"}, {Title: "b"}, {Title: "c"}}, 1)
	table.Bare = true
	if got := render(table, [][]string{{"x", "", "y"}}, 80); got != "x y\n" {
		t.Errorf("bare: %q", got)
	}
	table = New([]Column{{Title: "wide"}, {Title: "sorted", Needed: true}, {Title: "none"}}, 1)
	if got := render(table, [][]string{{"-", "-", "-"}}, 6); got != "-\n" || table.Places()[0].Column != 1 {
		t.Errorf("%q at %v, expected the column that is needed", got, table.Places())
	}
}

// A column with Fill has the width that the others leave.
func TestFill(t *testing.T) {
	table := New([]Column{{Min: 5, Max: 5, Right: true}, {Fill: true}, {Min: 3, Max: 3}}, 1)
	table.Fit(20)
	if want := []Place{{0, 0, 5, true}, {1, 6, 10, false}, {2, 17, 3, false}}; !slices.Equal(table.Places(), want) {
		t.Errorf("%v, expected %v", table.Places(), want)
	}
	if got := render(table, [][]string{{"12", "a text that is longer", "abcd"}}, 20); got != "   12 a text tha abc\n" {
		t.Errorf("%q", got)
	}
	table.Fit(4)
	if p := table.Places(); p[1].Width != 0 {
		t.Errorf("%v, expected nothing to be left", p)
	}
}
