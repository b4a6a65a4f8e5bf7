package message

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/export"
)

// filled returns a row in which each column has a value.
func filled(s *export.Schema) []export.Cell {
	cells := s.Cells()
	for i := range cells {
		c := &cells[i]
		c.Set, c.Uint, c.Int, c.Float = true, 1, int64(-i), float64(i)/2
		c.Bytes, c.Uints, c.Reals = []byte(`"a"`), []uint64{uint64(i), 1 << 40}, []float64{0.25}
	}
	return cells
}

// TestRows: a row reads back as it was, and no part of it does.
func TestRows(t *testing.T) {
	for _, kind := range Stored {
		s := Schema(kind)
		body := Append(nil, kind, filled(s))
		d, cells := NewDecoder(s), s.Cells()
		if err := d.Decode(body, cells); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if again := Append(nil, kind, cells); !bytes.Equal(again, body) {
			t.Errorf("%s: the row reads back as another one", kind)
		}
		for n := range body {
			if d.Decode(body[:n], cells) == nil {
				t.Errorf("%s: %d of %d bytes pass for a row", kind, n, len(body))
			}
		}
	}
}

// TestOtherVersions: a row with other columns is never read as one of these, even if its bytes would fit.
func TestOtherVersions(t *testing.T) {
	for _, kind := range Stored {
		own := Schema(kind)
		d := NewDecoder(own)
		change := func(f func(list []export.Column) []export.Column) *export.Schema {
			return &export.Schema{Name: own.Name, Columns: f(slices.Clone(own.Columns))}
		}
		for what, s := range map[string]*export.Schema{
			"exchanged": change(func(list []export.Column) []export.Column { // both are texts
				i, j := Column(own, "protocol"), Column(own, "dialect")
				list[i], list[j] = list[j], list[i]
				return list
			}),
			"renamed": change(func(list []export.Column) []export.Column {
				list[1].Name += "_new"
				return list
			}),
			"more": change(func(list []export.Column) []export.Column {
				return append(list, export.Column{Name: "new", Type: export.Uint, Absent: export.Omitted})
			}),
		} {
			body := s.AppendRow(nil, filled(s))
			if d.Decode(body, own.Cells()) == nil {
				t.Errorf("%s, columns %s: the row is read", kind, what)
			}
			if v, other := d.Other(body); !other || v.String() == d.own.String() {
				t.Errorf("%s, columns %s: expected another version, found %v", kind, what, v)
			}
		}
		if _, other := d.Other(Append(nil, kind, filled(own))); other {
			t.Errorf("%s: a row of this version counts as one of another", kind)
		}
		for n := range 5 {
			if _, other := d.Other(make([]byte, n)); other {
				t.Errorf("%s: %d bytes count as a row", kind, n)
			}
		}
	}
}
