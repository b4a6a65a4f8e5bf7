package testenv

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

// HoldTable compares the table that a target of the Makefile makes with the one in a page
// of the documentation. With write set it writes the page. On the page, the table stands
// in a code block between two comments:
//
//	<!-- make faults -->
//	<!-- end -->
func HoldTable(t testing.TB, path, target string, table []byte, write bool) {
	t.Helper()
	begin, end := "<!-- "+target+" -->\n```text\n", "```\n<!-- end -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(page, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatalf("%s: expected a table between %q and %q", path, begin, end)
	}
	now := slices.Concat(head, []byte(begin), table, []byte(end), tail)
	switch {
	case bytes.Equal(page, now):
	case write:
		if err := os.WriteFile(path, now, 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another table than these runs: run the test again with =update in place of =1", path)
	}
}
