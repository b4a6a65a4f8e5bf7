// Package schema reads, writes and measures message bodies by a description of
// their fields. A game's serialize functions describe its messages in code; a
// schema describes them in data:
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
// One walk over the fields serves all three uses. The protocol decides the
// layout of a bool, a count, bytes or a string, through a Coding from its wire
// package. A length that the data claims never causes an allocation beyond the
// data. Values alias the data, and their number is bounded.
package schema

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/wire/bits"
)

// Coding is how a protocol encodes values on the wire. Its errors are those of
// package wire or package bits.
type Coding interface {
	// Word codes the low n bits of a number; n is 0 to 64.
	Word(c bits.Cursor, v *uint64, n int) error
	// Bool codes 0 or 1.
	Bool(c bits.Cursor, v *uint64) error
	// BoolItem codes 0 or 1 as item i, from 0, of an array of n bools. Some
	// protocols pack such arrays.
	BoolItem(c bits.Cursor, v *uint64, i, n int) error
	// Count codes a number in [least, most]: of items or of bytes.
	Count(c bits.Cursor, v *uint64, least, most uint64) error
	// Bytes codes n bytes. The wire carries no length.
	Bytes(c bits.Cursor, v *[]byte, n int) error
	// Text codes a string of at most most bytes.
	Text(c bits.Cursor, v *[]byte, most int) error
	// MostCount is the largest count if a schema sets no max. It is 0 for a
	// protocol whose schemas must set one.
	MostCount() int64
	// Alias translates a protocol's own name of a type. It returns the type and,
	// for an array of fixed length, its number of items. It returns "" for names
	// that it does not know.
	Alias(kind string) (is string, times int)
	// Lost describes a fault of a library that omits parts of an array from the
	// wire. It returns whether the items of this type are missing, and whether
	// their count is missing too.
	Lost(item string) (items, count bool)
	// Number returns the coding of a number type that only this protocol has, and
	// whether it is signed (two's complement).
	Number(kind string) (code func(c bits.Cursor, v *uint64) error, signed, ok bool)
}

// Schema describes the bodies of messages by message type. For a protocol with
// packet types, it also describes whole packets. Call Compile before using it.
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

// Field is one field of a body. Its type decides which settings it has; see
// Types.
type Field struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	Doc  string `yaml:"doc"`
	Bits string `yaml:"bits"` // bits, zeros: number of bits, as a number or an expression
	Min  *int64 `yaml:"min"`  // int: smallest value; array, bytes: smallest count
	// int: largest value; array, bytes: largest count, and the count is then sent;
	// string: most bytes
	Max    *int64   `yaml:"max"`
	Count  string   `yaml:"count"`  // array, bytes: the count, as a number or an expression over earlier fields
	If     string   `yaml:"if"`     // the field exists only if this expression is not 0
	Fields []*Field `yaml:"fields"` // group: its fields; array: the fields of an item
	Item   *Field   `yaml:"item"`   // array: an item with a single field

	kind    kind
	item    bool // the single field of an array's items
	times   int  // number of items of an array that an alias names
	lost    bool // of an array: its items are not on the wire
	noCount bool // of an array: its count is not on the wire either
	width   int  // of words
	signed  bool
	slot    int // index of its value in the slots of later expressions
	bits    expr
	count   expr
	cond    expr
	code    func(c bits.Cursor, v *uint64) error
	index   int // among all fields of the schema
}

// kind is the resolved name of a type.
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

// Error says what is wrong with a schema, and where. Path is the path of the
// setting within the schema, such as "$.messages.1.fields[0].bits".
type Error struct {
	Path string
	Text string
}

func (e *Error) Error() string { return e.Path + ": " + e.Text }

// MostFields bounds the fields of a schema, over all bodies. It is a hundred
// times the number of the largest known game.
const MostFields = 10_000

const (
	mostDepth = 16
	mostCount = 1 << 16 // items of an array, bytes of a field
)

// Compile checks the schema and prepares it for use. Its error is an *Error.
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

// With returns a copy of the schema, compiled for a coding. s itself need not
// be compiled. Its error is an *Error.
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

// clone copies the settings of the schema file.
func (f *Field) clone() *Field {
	if f == nil {
		return nil
	}
	c := &Field{
		Name: f.Name, Type: f.Type, Doc: f.Doc, Bits: f.Bits, Min: f.Min, Max: f.Max, Count: f.Count, If: f.If,
		Fields: cloneFields(f.Fields), Item: f.Item.clone(),
	}
	if f.times > 0 { // an alias: its count and item are not from the file
		c.Count, c.Item = "", nil
	}
	return c
}

// Kinds returns the types of some bodies in order.
func Kinds(bodies map[uint32]*Body) []uint32 {
	kinds := make([]uint32, 0, len(bodies))
	for k := range bodies {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Index returns the number of the field among all fields of its schema, from 0.
func (f *Field) Index() int { return f.index }

// Signed reports whether the field's number is two's complement.
func (f *Field) Signed() bool { return f.signed }

// Shape is the form of a field's value.
type Shape uint8

const (
	Uint Shape = iota
	Int
	Bool
	Float  // the bits of a 32-bit IEEE 754 number
	Double // the bits of a 64-bit IEEE 754 number
	Text
	Bytes
	Group   // has fields below it: groups and arrays
	Padding // no value: align and zeros
)

// Shape returns the form of the field's value.
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
