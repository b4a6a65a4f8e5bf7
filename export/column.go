package export

import (
	"math"
	"net/netip"
)

// Type is the type of a column's values.
type Type uint8

const (
	Uint   Type = iota // 0 to 2^64-1
	Int                // -2^63 to 2^63-1
	Float              // a number, rounded to Column.Digits decimals
	Bool               // true or false
	Text               // UTF-8
	Time               // an instant in nanoseconds, UTC
	Uints              // a list of Uint
	Floats             // a list of numbers
	Texts              // a list of Text
	JSON               // an object or a list with the structure of Column.Shape, in JSON
)

var typeWords = [...]string{
	"uint64", "int64", "double", "boolean", "text", "timestamp", "list of uint64",
	"list of double", "list of text", "json",
}

// String returns the name in docs/tables.md.
func (t Type) String() string { return typeWords[t] }

// Absence says how a missing value of a column is written.
type Absence uint8

const (
	Never   Absence = iota // every row has a value
	Null                   // null, in JSON too
	Omitted                // null; in JSON the key is omitted
	Either                 // null; in JSON the key is omitted if the column does not apply to the row at all
)

// Column declares one column of a table. Names, types and order are stable.
type Column struct {
	Name   string
	Type   Type
	Absent Absence
	Digits int    // of a Float
	Unit   string // "ms", "bytes"; empty if there is none
	Doc    string // one sentence
	Words  []string
	Shape  *Shape // of JSON; nil for any structure
}

// Shape is the structure of a JSON value: an object with these columns, a list
// of such objects, or an object with any keys.
type Shape struct {
	List    bool
	Columns []Column // nil for any keys
	Item    *Column  // of a list whose items are not objects
}

// Schema is a table without its rows, or an object that a command prints.
type Schema struct {
	Name    string
	Doc     string
	Columns []Column
	OneOf   []*Schema // for a command whose lines are of several kinds; Columns is then empty
}

// Cell is one value of a row. Cells are reused for all rows, so that they keep
// their memory.
type Cell struct {
	Set   bool
	Uint  uint64  // Uint, Bool
	Int   int64   // Int, Time
	Float float64 // Float
	Bytes []byte  // Text, JSON, and all texts of Texts
	Uints []uint64
	Reals []float64
	Ends  []int // of Texts: the end of each text in Bytes

	refers bool   // own and text keep a reference in str, in place of a copy in Bytes
	str    string // of Text, where refers is set
	plain  bool   // of Text: no character needs an escape
	null   bool   // of Either: the column applies to the row, but the value is not known
	scaled int64  // of a Float: the value times 10^Digits
	exact  bool   // scaled holds the value
}

func (c *Cell) reset() {
	c.Set, c.null, c.plain, c.str, c.Bytes, c.Uints, c.Reals, c.Ends = false, false, false, "", c.Bytes[:0],
		c.Uints[:0], c.Reals[:0], c.Ends[:0]
}

func (c *Cell) uint(v uint64) { c.Set, c.Uint = true, v }
func (c *Cell) int(v int64)   { c.Set, c.Int = true, v }

func (c *Cell) bool(v bool) {
	c.Set, c.Uint = true, 0
	if v {
		c.Uint = 1
	}
}

func (c *Cell) text(s string) {
	if c.Set = true; c.refers {
		c.str = s
		return
	}
	c.Bytes = append(c.Bytes[:0], s...)
}

// own sets a text of the program, which needs no escape.
func (c *Cell) own(s string) {
	c.plain = true
	c.text(s)
}

// addr sets an address with its port.
func (c *Cell) addr(a netip.AddrPort) { c.Set, c.plain, c.Bytes = true, true, a.AppendTo(c.Bytes[:0]) }

// word sets a text. It sets nothing if the text is empty.
func (c *Cell) word(s string) {
	if s != "" {
		c.text(s)
	}
}

// bytes sets a text that was appended to c.Bytes[:0].
func (c *Cell) bytes(b []byte) { c.Set, c.Bytes = true, b }

// float sets a number, rounded to digits decimals. It sets nothing for NaN and
// infinities.
func (c *Cell) float(v float64, digits int) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	scale := math.Pow10(digits)
	n := math.Round(v * scale)
	c.Set, c.exact = true, math.Abs(n) < 1<<53
	if c.exact {
		c.scaled, c.Float = int64(n), n/scale
		return
	}
	c.Float = v
}

// Table declares a table with rows of type R.
type Table[R any] struct {
	Schema
	get    []func(row *R, to *Cell)
	shared []shared[R] // in order
}

// column is a declaration with the function that fills it.
type column[R any] struct {
	Column
	get func(row *R, to *Cell)
}

func newTable[R any](name, doc string, columns ...column[R]) *Table[R] {
	t := &Table[R]{
		Schema: Schema{Name: name, Doc: doc, Columns: make([]Column, len(columns))},
		get:    make([]func(*R, *Cell), len(columns)),
	}
	for i, c := range columns {
		t.Columns[i], t.get[i] = c.Column, c.get
	}
	return t
}

// Cells returns the cells for a row.
func (s *Schema) Cells() []Cell { return make([]Cell, len(s.Columns)) }

// Fill sets the cells to the values of a row.
func (t *Table[R]) Fill(row *R, cells []Cell) {
	for i, get := range t.get {
		cells[i].reset()
		get(row, &cells[i])
	}
}

// Encoder writes the rows of one table.
type Encoder interface {
	// Encode writes a row. It does not retain the cells.
	Encode(cells []Cell) error
	// Close ends the table. It does not close the underlying writer.
	Close() error
}

// Rows fills and encodes the rows of a table.
type Rows[R any] struct {
	table *Table[R]
	cells []Cell
	to    Encoder
	lines *lineRows[R] // of JSON Lines, which need no cells; otherwise nil
}

// NewRows returns a Rows for a table and an encoder of it.
func NewRows[R any](t *Table[R], to Encoder) *Rows[R] {
	if l, ok := to.(*Lines); ok {
		return &Rows[R]{table: t, to: to, lines: newLineRows(t, l)}
	}
	return &Rows[R]{table: t, cells: t.Cells(), to: to}
}

// Add writes a row.
func (r *Rows[R]) Add(row *R) error {
	if r.lines != nil {
		return r.lines.add(row)
	}
	r.table.Fill(row, r.cells)
	return r.to.Encode(r.cells)
}

// Tables returns all tables.
func Tables() []*Schema {
	return []*Schema{&Packets.Schema, &Events.Schema, &Messages.Schema, &Flows.Schema, &Findings.Schema}
}
