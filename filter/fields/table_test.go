package fields

import (
	"strings"
	"testing"
)

// TestTable: every field has a description, compiles alone and has a column.
func TestTable(t *testing.T) {
	table := NewTable(Options{})
	for _, f := range table.Fields() {
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: its sentence is %q", f.Name, f.Doc)
		}
		if _, err := table.Compile(f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Column() == nil {
			t.Errorf("%s has no column", f.Name)
		}
	}
}
