package fields

import (
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/filter"
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

// TestColumnsAlone: a field that only columns have is no field of a filter, and
// is not suggested for one. A name that a filter knows stays the filter's field.
func TestColumnsAlone(t *testing.T) {
	only := &filter.Field{Name: "arp.opcode", Kind: filter.Uint, Doc: "ARP: Operation."}
	table := NewTable(Options{Columns: []*filter.Field{only, {Name: "ip.src", Kind: filter.Bytes, Doc: "Another."}}})
	if f, ok := table.LookupColumn("arp.opcode"); !ok || f != only || !f.ColumnOnly() {
		t.Errorf("arp.opcode is %+v, expected the column", f)
	}
	if f, ok := table.LookupColumn("ip.src"); !ok || f.ColumnOnly() || f.Kind != filter.Address {
		t.Errorf("ip.src is %+v, expected the filter's field", f)
	}
	if _, ok := table.Lookup("arp.opcode"); ok || slices.Contains(table.Fields(), only) {
		t.Error("filters know arp.opcode")
	}
	if got := table.Columns(); len(got) != len(table.Fields())+1 || got[len(got)-1] != only {
		t.Errorf("%d columns beside %d fields, expected arp.opcode once, at the end", len(got), len(table.Fields()))
	}
	if near := table.SuggestColumn("arp.opcod"); near != "arp.opcode" {
		t.Errorf("arp.opcod suggests %q for a column", near)
	}
	if near := table.Suggest("arp.opcod"); near == "arp.opcode" {
		t.Error("arp.opcod suggests arp.opcode for a filter")
	}
	_, err := table.Compile("udp and arp.opcode == 1")
	const want = "filter, column 9: expected a field that filters know, found arp.opcode, which only columns have " +
		"(packets -e arp.opcode)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, expected %s", err, want)
	}
	if _, err := table.Compile("ip.src == arp.opcode"); err == nil {
		t.Error("a filter compares with arp.opcode")
	}
}
