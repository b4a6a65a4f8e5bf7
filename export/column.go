package export

import (
	"math"
	"net/netip"
)

// Type is what a column's values are.
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
	JSON               // an object or a list of the shape that Column.Shape says, in JSON
)

var typeWords = [...]string{"uint64", "int64", "double", "boolean", "text", "timestamp", "list of uint64",
	"list of double", "list of text", "json"}

// String returns the word of docs/tables.md.
func (t Type) String() string { return typeWords[t] }

// Absence says what becomes of a column that a row has no value for.
type Absence uint8

const (
	Never   Absence = iota // every row has a value
	Null                   // null; in JSON too
	Omitted                // null; in JSON its key is left out
	Either                 // null; in JSON its key is left out where the row has no such thing at all
)

// Column declares one column of a table. Names, types and order are stable.
type Column struct {
	Name   string
	Type   Type
	Absent Absence
	Digits int    // of a Float
	Unit   string // "ms", "bytes"; empty for none
	Doc    string // one sentence
	Words  []string
	Shape  *Shape // of JSON; nil for any
}

// Shape is what a value in JSON looks like: an object of the columns, a list of
// such, or an object that has any keys.
type Shape struct {
	List    bool
	Columns []Column // nil for any keys
	Item    *Column  // of a list whose items are no objects
}

// Schema is a table without its rows, or an object that a command prints.
type Schema struct {
	Name    string
	Doc     string
	Columns []Column
	OneOf   []*Schema // of a command whose lines are of several kinds; it has no Columns then
}

// Cell is one value of a row. Rows are filled again and again into the same
// cells, which keep their memory.
type Cell struct {
	Set   bool
	Uint  uint64  // Uint, Bool
	Int   int64   // Int, Time
	Float float64 // Float
	Bytes []byte  // Text, JSON, and all texts of Texts
	Uints []uint64
	Reals []float64
	Ends  []int // of Texts: where each text ends in Bytes

	plain  bool  // of Text: nothing in it needs an escape
	null   bool  // of Either: the row has such a thing, but it is not known
	scaled int64 // of a Float: the value times 10^Digits
	exact  bool  // scaled holds it
}

func (c *Cell) reset() {
	c.Set, c.null, c.plain, c.Bytes, c.Uints, c.Reals, c.Ends = false, false, false, c.Bytes[:0], c.Uints[:0],
		c.Reals[:0], c.Ends[:0]
}

func (c *Cell) uint(v uint64) { c.Set, c.Uint = true, v }
func (c *Cell) int(v int64)   { c.Set, c.Int = true, v }

func (c *Cell) bool(v bool) {
	c.Set, c.Uint = true, 0
	if v {
		c.Uint = 1
	}
}

func (c *Cell) text(s string) { c.Set, c.Bytes = true, append(c.Bytes[:0], s...) }

// own is text of ours that needs no escape.
func (c *Cell) own(s string) { c.Set, c.plain, c.Bytes = true, true, append(c.Bytes[:0], s...) }

// addr is an address, with its port.
func (c *Cell) addr(a netip.AddrPort) { c.Set, c.plain, c.Bytes = true, true, a.AppendTo(c.Bytes[:0]) }

// word is text, but nothing for the empty one.
func (c *Cell) word(s string) {
	if s != "" {
		c.text(s)
	}
}

// bytes takes what was appended to c.Bytes[:0].
func (c *Cell) bytes(b []byte) { c.Set, c.Bytes = true, b }

// float sets a number, rounded to so many decimals; nothing where it is none.
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

// Table declares a table: rows of R.
type Table[R any] struct {
	Schema
	get []func(row *R, to *Cell)
}

// column is a declaration with what fills it.
type column[R any] struct {
	Column
	get func(row *R, to *Cell)
}

func newTable[R any](name, doc string, columns ...column[R]) *Table[R] {
	t := &Table[R]{Schema: Schema{Name: name, Doc: doc}}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
		t.get = append(t.get, c.get)
	}
	return t
}

// Cells returns the memory for a row.
func (s *Schema) Cells() []Cell { return make([]Cell, len(s.Columns)) }

// Fill sets the cells of a row.
func (t *Table[R]) Fill(row *R, cells []Cell) {
	for i, get := range t.get {
		cells[i].reset()
		get(row, &cells[i])
	}
}

// Encoder writes the rows of one table.
type Encoder interface {
	// Encode writes a row. It keeps nothing of the cells.
	Encode(cells []Cell) error
	// Close ends the table; what it is written to stays the caller's.
	Close() error
}

// Rows fills and encodes rows.
type Rows[R any] struct {
	table *Table[R]
	cells []Cell
	to    Encoder
}

// NewRows returns what takes rows of a table for an encoder of it.
func NewRows[R any](t *Table[R], to Encoder) *Rows[R] {
	return &Rows[R]{t, t.Cells(), to}
}

// Add writes a row.
func (r *Rows[R]) Add(row *R) error {
	r.table.Fill(row, r.cells)
	return r.to.Encode(r.cells)
}

// Tables lists the tables.
func Tables() []*Schema {
	return []*Schema{&Packets.Schema, &Events.Schema, &Messages.Schema, &Flows.Schema, &Findings.Schema}
}
