// Package schema reads, writes and measures message bodies by a description of
// their fields: what a game's serialize functions say in code, a schema says as
// data.
//
//	messages:
//	  0:
//	    name: Move
//	    fields:                        bits on the wire, in this order
//	      - {name: tick, type: bits, bits: 32}
//	      - {name: x, type: int, min: -1000, max: 1000}      11: x+1000
//	      - {name: jump, type: bool}                          1
//	      - {name: height, type: float, if: jump}             32, only after jump = 1
//
// One walk over the fields serves all three uses. How a bool, a count, bytes or
// a string are laid out is the protocol's: a Coding from its wire package.
// Lengths that data claims never allocate beyond the data: what is read aliases
// it, and the number of values is bounded.
package schema

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/wire/bits"
)

// Coding is how a protocol puts values on the wire. Errors are those of package
// wire or package bits.
type Coding interface {
	// Word codes the low n bits of a number, 0 to 64.
	Word(c bits.Cursor, v *uint64, n int) error
	// Bool codes 0 or 1.
	Bool(c bits.Cursor, v *uint64) error
	// BoolItem codes 0 or 1 as item i, from 0, of an array of n bools, which some
	// protocols pack.
	BoolItem(c bits.Cursor, v *uint64, i, n int) error
	// Count codes a number of [least, most]: of items, of bytes.
	Count(c bits.Cursor, v *uint64, least, most uint64) error
	// Bytes codes n bytes whose number is known.
	Bytes(c bits.Cursor, v *[]byte, n int) error
	// Text codes a string of at most most bytes.
	Text(c bits.Cursor, v *[]byte, most int) error
	// MostCount is the largest count where a schema sets no max; 0 for a protocol
	// that cannot do without.
	MostCount() int64
	// Alias returns what a protocol's own name of a type stands for: a type, times
	// over without a count; "" for names that it does not have.
	Alias(kind string) (is string, times int)
	// Lost tells of a library's fault: that of arrays of a type the items are left
	// off the wire, or their count too.
	Lost(item string) (items, count bool)
	// Number returns the coding of a number type that only this protocol has, and
	// whether it is signed (two's complement).
	Number(kind string) (code func(c bits.Cursor, v *uint64) error, signed, ok bool)
}

// Schema describes the bodies of messages, and of whole packets where a
// protocol has packet types, by their type. Compile makes it ready.
type Schema struct {
	Messages map[uint32]*Body `yaml:"messages"`
	Packets  map[uint32]*Body `yaml:"packets"`

	coding  Coding
	walkers sync.Pool
}

// Body is one type of message.
type Body struct {
	Name   string   `yaml:"name"`
	Doc    string   `yaml:"doc"`
	Fields []*Field `yaml:"fields"`

	slots  int
	schema *Schema
}

// Field is one field of a body. Which settings it takes depends on its type;
// see Types.
type Field struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	Doc  string `yaml:"doc"`
	Bits string `yaml:"bits"` // bits, zeros: how many; a number or an expression
	Min  *int64 `yaml:"min"`  // int: least value; array, bytes: least count
	// int: largest value; array, bytes: largest count, which is then sent; string: most bytes
	Max    *int64   `yaml:"max"`
	Count  string   `yaml:"count"`  // array, bytes: how many; a number or an expression over earlier fields
	If     string   `yaml:"if"`     // the field is there only where this expression is not 0
	Fields []*Field `yaml:"fields"` // group: its fields; array: those of an item
	Item   *Field   `yaml:"item"`   // array: an item that is one field

	kind   kind
	item   bool // the one field of an array's items
	times  int  // items of an array that an alias stands for
	lost   bool // of an array: its items are not on the wire
	bare   bool // nor is its count
	width  int  // of words
	signed bool
	slot   int // where its value is kept for later expressions
	bits   expr
	count  expr
	cond   expr
	code   func(c bits.Cursor, v *uint64) error
	index  int // among all fields of the schema
}

// kind is what a type's name comes to.
type kind uint8

const (
	kindWord kind = iota
	kindRange
	kindNumber
	kindBool
	kindFloat
	kindDouble
	kindText
	kindBytes
	kindArray
	kindGroup
	kindAlign
	kindZeros
)

var words = map[string]struct {
	width  int
	signed bool
}{
	"uint8": {8, false}, "uint16": {16, false}, "uint32": {32, false}, "uint64": {64, false},
	"int8": {8, true}, "int16": {16, true}, "int32": {32, true}, "int64": {64, true},
}

// Error says what is wrong with a schema, and where: Path is that of the
// setting within the schema, as in "$.messages.1.fields[0].bits".
type Error struct {
	Path string
	Text string
}

func (e *Error) Error() string { return e.Path + ": " + e.Text }

// MostFields is how many fields a schema has, over all bodies: a hundred times
// those of the largest game that was seen.
const MostFields = 10_000

const (
	mostDepth = 16
	mostCount = 1 << 16 // items of an array, bytes of a field
)

// Compile checks the schema and makes it ready. Its error is an *Error.
func (s *Schema) Compile(coding Coding) error {
	s.coding = coding
	index := 0
	for _, part := range []struct {
		path   string
		bodies map[uint32]*Body
	}{{"$.messages", s.Messages}, {"$.packets", s.Packets}} {
		for _, kind := range Kinds(part.bodies) {
			b, path := part.bodies[kind], fmt.Sprintf("%s.%d", part.path, kind)
			if b == nil {
				return &Error{path, "is empty: a body has a name and fields"}
			}
			if err := printable.Name(b.Name); err != nil {
				return &Error{path + ".name", err.Error()}
			}
			c := compiler{coding: coding, index: index}
			if err := c.fields(path+".fields", b.Fields, nil, 0); err != nil {
				return err
			}
			b.slots, b.schema, index = c.slots, s, c.index
		}
	}
	return nil
}

// With returns a copy of the schema, made ready for a coding; s itself need not
// be ready. Its error is an *Error.
func (s *Schema) With(coding Coding) (*Schema, error) {
	c := &Schema{Messages: cloneBodies(s.Messages), Packets: cloneBodies(s.Packets)}
	return c, c.Compile(coding)
}

func cloneBodies(bodies map[uint32]*Body) map[uint32]*Body {
	out := make(map[uint32]*Body, len(bodies))
	for kind, b := range bodies {
		if b != nil {
			b = &Body{Name: b.Name, Doc: b.Doc, Fields: cloneFields(b.Fields)}
		}
		out[kind] = b
	}
	return out
}

func cloneFields(fields []*Field) []*Field {
	var out []*Field
	for _, f := range fields {
		out = append(out, f.clone())
	}
	return out
}

// clone copies what a schema file sets.
func (f *Field) clone() *Field {
	if f == nil {
		return nil
	}
	c := &Field{Name: f.Name, Type: f.Type, Doc: f.Doc, Bits: f.Bits, Min: f.Min, Max: f.Max, Count: f.Count, If: f.If,
		Fields: cloneFields(f.Fields), Item: f.Item.clone()}
	if f.times > 0 { // an alias: its count and item are not the file's
		c.Count, c.Item = "", nil
	}
	return c
}

// Kinds lists the types of some bodies in order.
func Kinds(bodies map[uint32]*Body) []uint32 {
	kinds := make([]uint32, 0, len(bodies))
	for k := range bodies {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Index numbers the field among all of its schema, from 0.
func (f *Field) Index() int { return f.index }

// Signed reports whether the field's number is two's complement.
func (f *Field) Signed() bool { return f.signed }

// Shape says how a field's value reads.
type Shape uint8

const (
	Uint Shape = iota
	Int
	Bool
	Float  // IEEE 754 bits of 32
	Double // of 64
	Text
	Bytes
	Group   // fields below it: groups and arrays
	Padding // no value: align and zeros
)

// Shape returns it.
func (f *Field) Shape() Shape {
	switch f.kind {
	case kindBool:
		return Bool
	case kindFloat:
		return Float
	case kindDouble:
		return Double
	case kindText:
		return Text
	case kindBytes:
		return Bytes
	case kindArray, kindGroup:
		return Group
	case kindAlign, kindZeros:
		return Padding
	}
	if f.signed {
		return Int
	}
	return Uint
}
