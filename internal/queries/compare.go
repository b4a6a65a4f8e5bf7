package queries

import (
	"bufio"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// tolerance is the share by which a number may differ: engines add and interpolate in another order.
const tolerance = 1e-9

// Compare compares the rows of a query with those that a test computed. Their order counts.
func Compare(t testing.TB, e Engine, name string, got Table, want [][]any) {
	t.Helper()
	if columns := described(t, e, name); !slices.Equal(got.Columns, columns) {
		t.Errorf("%s, %s: the columns are %q, and the comment describes %q", name, e, got.Columns, columns)
	}
	for i := range min(len(got.Rows), len(want)) {
		if !slices.EqualFunc(got.Rows[i], want[i], equal) {
			t.Errorf("%s, %s: row %d is\n%v\nexpected\n%v", name, e, i+1, got.Rows[i], want[i])
			return
		}
	}
	if len(got.Rows) != len(want) || len(want) == 0 {
		t.Errorf("%s, %s: found %d rows, expected %d, and some at least", name, e, len(got.Rows), len(want))
	}
}

// equal compares a value of a query with a computed one: nil, a bool, a string, an int or a float64.
func equal(got, want any) bool {
	n, ok := got.(json.Number)
	if !ok {
		return got == want
	}
	x, err := n.Float64()
	if err != nil {
		return false
	}
	switch y := want.(type) {
	case int:
		return x == float64(y)
	case float64:
		return math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
	}
	return false
}

// described returns the columns that the comment of a query lists.
func described(t testing.TB, e Engine, name string) (columns []string) {
	t.Helper()
	text, err := Text(e, name)
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		rest, indented := strings.CutPrefix(s.Text(), "--   ")
		switch {
		case strings.HasPrefix(s.Text(), "-- Columns"):
			within = true
		case within && indented:
			columns = append(columns, strings.Fields(rest)[0])
		case within:
			return columns
		}
	}
	t.Fatalf("%s: expected that its comment lists columns, found none", name)
	return nil
}
