package parquet

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ackscope/ackscope/export"
)

var few = export.Schema{Name: "few", Doc: "For the tests.", Columns: []export.Column{
	{Name: "zeta", Type: export.Uint, Doc: "Stands first."},
	{Name: "alpha", Type: export.Text, Absent: export.Null, Unit: "bytes", Doc: "Is long."},
}}

// TestRowGroupsAreBounded: rows and bytes bound the memory that a row group
// takes, whatever the rows are.
func TestRowGroupsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name        string
		text        string
		rows, least int
	}{
		{"rows", "", 3*groupRows + 5, 4},
		{"bytes", strings.Repeat("long ", 20_000), 500, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			e := New(&out, &few)
			cells := few.Cells()
			for i := range c.rows {
				cells[0].Set, cells[0].Uint = true, uint64(i)
				cells[1].Set, cells[1].Bytes = c.text != "", []byte(c.text)
				if err := e.Encode(cells); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(f.RowGroups()); n < c.least {
				t.Errorf("%d row groups, expected at least %d", n, c.least)
			}
			total := 0
			for _, g := range f.RowGroups() {
				n := int(g.NumRows())
				if total += n; n > groupRows+batchRows || n*len(c.text) > groupBytes+2<<20 {
					t.Errorf("a row group of %d rows and %d bytes, expected %d and %d at most", n, n*len(c.text),
						groupRows, groupBytes)
				}
			}
			if total != c.rows {
				t.Errorf("%d rows, expected %d", total, c.rows)
			}
			if doc, _ := f.Lookup("ackscope.few.alpha"); doc != "bytes: Is long." {
				t.Errorf("the footer says of alpha %q", doc)
			}
			if at := f.Schema().Columns(); at[0][0] != "zeta" || at[1][0] != "alpha" {
				t.Errorf("the columns stand as %v, expected the order of their declaration", at)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	e := New(io.Discard, &few)
	cells := few.Cells()
	cells[0].Set = true
	cells[1].Set, cells[1].Bytes = true, []byte("127.0.0.1:7777")
	b.ReportAllocs()
	for b.Loop() {
		cells[0].Uint++
		if err := e.Encode(cells); err != nil {
			b.Fatal(err)
		}
	}
}
