package export

import (
	"bytes"
	"math"
	"reflect"
	"testing"
)

// everyType is a table with a column of each type, and each way to lack a value.
func everyType() *Schema {
	s := &Schema{Name: "every"}
	for kind := Uint; kind <= JSON; kind++ {
		for absent := Never; absent <= Either; absent++ {
			s.Columns = append(s.Columns, Column{
				Name: kind.String() + string('a'+rune(absent)), Type: kind, Absent: absent, Digits: 3,
			})
		}
	}
	return s
}

// setCells returns cells with values of each type; round makes different ones.
func setCells(s *Schema, round int) []Cell {
	cells := s.Cells()
	for i := range cells {
		c := &cells[i]
		if c.null = s.Columns[i].Absent == Either; s.Columns[i].Absent != Never && (i+round)%3 == 0 {
			continue
		}
		c.null = false
		switch s.Columns[i].Type {
		case Uint:
			c.uint(math.MaxUint64 >> (round * 7))
		case Int, Time:
			c.int(math.MinInt64 >> (round * 5))
		case Float:
			c.float([]float64{0, math.Copysign(0, -1), -1.2345, 1e300, 0.001, 1 << 52}[round%6], 3)
		case Bool:
			c.bool(round%2 == 0)
		case Text:
			if c.text("a, \"b\"\n\x00\xff"); round%2 == 0 {
				c.own("10.0.0.1:7777")
			}
		case Uints:
			c.Set, c.Uints = true, make([]uint64, round)
		case Floats:
			c.Set, c.Reals = true, []float64{1.5, math.Copysign(0, -1)}
		case Texts:
			c.Set, c.Bytes, c.Ends = true, []byte("oneé"), []int{0, 3, 5}
		case JSON:
			c.bytes([]byte(`{"x":[1,null]}`))
		}
	}
	return cells
}

func inLines(t *testing.T, s *Schema, cells []Cell) string {
	t.Helper()
	var b bytes.Buffer
	c, err := NewCSV(&b, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Encoder{NewLines(&b, s), c} {
		if err := e.Encode(cells); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestRowsReadBack: a row of any cells is the same in every format once it was read back, and any
// cut of its bytes is refused.
func TestRowsReadBack(t *testing.T) {
	s := everyType()
	for round := range 12 {
		cells := setCells(s, round)
		b, back := s.AppendRow(nil, cells), s.Cells()
		if err := s.ReadRow(b, back); err != nil {
			t.Fatal(err)
		}
		if got, want := inLines(t, s, back), inLines(t, s, cells); got != want {
			t.Fatalf("read back:\n%s\nwritten:\n%s", got, want)
		}
		for i := range back { // Parquet writes the number itself
			if math.Float64bits(back[i].Float) != math.Float64bits(cells[i].Float) {
				t.Errorf("%s: %g, expected %g", s.Columns[i].Name, back[i].Float, cells[i].Float)
			}
		}
		for n := range b {
			if s.ReadRow(b[:n], back) == nil {
				t.Fatalf("%d of %d bytes are a row", n, len(b))
			}
		}
		if s.ReadRow(append(b, 0), back) == nil {
			t.Fatal("a byte too many is a row")
		}
	}
	if Flows.Schema.ReadRow(s.AppendRow(nil, setCells(s, 1)), Flows.Cells()) == nil {
		t.Error("a row of another table is read")
	}
}

// TestRowsKeepFraming: a row cannot claim that text with quotes or ends of lines needs no escape.
func TestRowsKeepFraming(t *testing.T) {
	s := &Schema{Name: "x", Columns: []Column{{Name: "text", Type: Text}, {Name: "json", Type: JSON}}}
	for _, c := range []struct{ text, object string }{
		{`a"b`, `1`}, {"a\nb", `1`}, {"a,b", `1`}, {"a", `{`}, {"a", "[1,\n2]"}, {"a", `1 2`},
	} {
		cells := s.Cells()
		cells[0].own(c.text)
		cells[1].bytes([]byte(c.object))
		if s.ReadRow(s.AppendRow(nil, cells), s.Cells()) == nil {
			t.Errorf("%q is read", c)
		}
	}
}

// FuzzReadRow: no bytes make ReadRow panic, and what it reads is encoded and read again as it was.
func FuzzReadRow(f *testing.F) {
	s := everyType()
	for round := range 6 {
		f.Add(s.AppendRow(nil, setCells(s, round)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cells, again := s.Cells(), s.Cells()
		if s.ReadRow(b, cells) != nil {
			return
		}
		if err := s.ReadRow(s.AppendRow(nil, cells), again); err != nil {
			t.Fatal(err)
		}
		for i := range cells { // NaN is not equal to itself
			for k, v := range cells[i].Reals {
				if math.IsNaN(v) && math.IsNaN(again[i].Reals[k]) {
					cells[i].Reals[k], again[i].Reals[k] = 0, 0
				}
			}
		}
		if !reflect.DeepEqual(cells, again) {
			t.Fatalf("%+v, then %+v", cells, again)
		}
		inLines(t, s, cells)
	})
}
