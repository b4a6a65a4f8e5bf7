package schema

import (
	"errors"
	"fmt"
	"math"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// Leaf is one value that a walk over data found.
type Leaf struct {
	Field *Field
	Depth int // 0 for the fields of the body itself
	Item  int // index in the enclosing array, from 0; -1 outside arrays
	Bit   int // its first bit, counted from the first bit of the data
	Bits  int // its width in bits
	Uint  uint64
	Bytes []byte // of text and bytes; aliases the data
	Lost  bool   // an array whose items the sender's library has omitted from the wire
}

// mostValues bounds the values of one body. Without it, an array of items of
// zero bits could claim any number of them.
const mostValues = 1 << 16

// Skip moves r past a message body of the given type. Its error is a
// *wire.ParseError, with bits counted from the first bit of r.
func (s *Schema) Skip(kind uint32, r *bits.Reader) error { return s.Visit(kind, r, nil) }

// Visit moves r past a message body and calls do for each of its fields in
// order. Groups and arrays come before their contents, with zero bits.
func (s *Schema) Visit(kind uint32, r *bits.Reader, do func(*Leaf)) error {
	b, err := s.body(kind, r.Pos())
	if err != nil {
		return err
	}
	return b.Visit(r, do)
}

// Read reads a message body.
func (s *Schema) Read(kind uint32, r *bits.Reader) (Record, error) {
	b, err := s.body(kind, r.Pos())
	if err != nil {
		return nil, err
	}
	return b.Read(r)
}

// Body returns the body of a message type. It returns nil if the schema has no
// such type.
func (s *Schema) Body(kind uint32) *Body { return s.Messages[kind] }

func (s *Schema) body(kind uint32, at int) (*Body, error) {
	if b := s.Messages[kind]; b != nil {
		return b, nil
	}
	return nil, &wire.ParseError{
		Field: "message_type", Bit: at, Expected: "a type of the schema", Found: fmt.Sprint(kind),
		Err: wire.ErrRange,
	}
}

// Visit does for this body what Schema.Visit does.
func (b *Body) Visit(r *bits.Reader, do func(*Leaf)) error {
	w := b.walker()
	defer b.schema.walkers.Put(w)
	w.reading.From = r
	w.cursor, w.visit, w.keep = w.reading, do, false
	_, err := w.fields(b.Fields, nil, 0, -1)
	w.visit, w.reading.From = nil, nil
	return err
}

// Read reads a body of this type. Bytes in the record are copies.
func (b *Body) Read(r *bits.Reader) (Record, error) {
	w := b.walker()
	defer b.schema.walkers.Put(w)
	w.reading.From = r
	w.cursor, w.visit, w.keep = w.reading, nil, true
	record, err := w.fields(b.Fields, nil, 0, -1)
	w.reading.From = nil
	return record, err
}

// Write writes a body of this type. values is a Record or a map[string]any. Its
// error names the field that is missing or does not fit.
func (b *Body) Write(to *bits.Writer, values any) error { return b.code(bits.Writing{To: to}, values) }

// Measure returns the number of bits that values take when they are written
// from bit at on.
func (b *Body) Measure(at int, values any) (int, error) {
	m := &bits.Measuring{At: at}
	err := b.code(m, values)
	return m.At - at, err
}

func (b *Body) code(c bits.Cursor, values any) error {
	w := b.walker()
	defer b.schema.walkers.Put(w)
	w.cursor, w.visit, w.keep = c, nil, false
	_, err := w.fields(b.Fields, values, 0, -1)
	w.cursor = nil
	return err
}

// walker is the state of one walk over a body.
type walker struct {
	coding  Coding
	cursor  bits.Cursor
	reading *bits.Reading
	slots   []int64
	visit   func(*Leaf)
	keep    bool // return the values as a Record
	left    int  // how many values may still come
	word    uint64
	bytes   []byte
	item    int // index in the array around the current field
	items   int // number of items of that array
	leaf    Leaf
}

func (b *Body) walker() *walker {
	w, _ := b.schema.walkers.Get().(*walker)
	if w == nil {
		w = &walker{reading: &bits.Reading{}}
	}
	if cap(w.slots) < b.slots {
		w.slots = make([]int64, b.slots)
	}
	w.slots = w.slots[:b.slots]
	clear(w.slots)
	w.coding, w.left = b.schema.coding, mostValues
	return w
}

// fields walks a list of fields. When writing, in holds their values.
func (w *walker) fields(fields []*Field, in any, depth, item int) (Record, error) {
	var out Record
	for _, f := range fields {
		if f.cond != nil && f.cond.eval(w.slots) == 0 {
			w.slots[f.slot] = 0
			continue
		}
		var value any
		if !w.cursor.Reading() && f.Name != "" {
			v, ok := lookup(in, f.Name)
			if !ok {
				return nil, fmt.Errorf("%s: no value is given", f.Name)
			}
			value = v
		}
		got, err := w.field(f, value, depth, item)
		if err != nil {
			return nil, err
		}
		if w.keep && f.Name != "" {
			out = append(out, Member{f.Name, got})
		}
	}
	return out, nil
}

func (w *walker) field(f *Field, in any, depth, item int) (any, error) {
	if w.left--; w.left < 0 {
		return nil, w.fault(f, w.cursor.Pos(), wire.ErrRange, fmt.Sprintf("at most %d values in a body", mostValues))
	}
	switch f.kind {
	case kindGroup:
		w.tell(f, w.cursor.Pos(), depth, item)
		return w.fields(f.Fields, in, depth+1, -1)
	case kindArray:
		return w.array(f, in, depth, item)
	case kindAlign:
		at := w.cursor.Pos()
		err := w.cursor.Align()
		w.word = 0
		return nil, w.done(f, at, depth, item, err)
	case kindZeros:
		return nil, w.zeros(f, depth, item)
	}
	if !w.cursor.Reading() {
		if err := w.take(f, in); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	at := w.cursor.Pos()
	if err := w.done(f, at, depth, item, w.code(f)); err != nil {
		return nil, err
	}
	w.slots[f.slot] = int64(w.word)
	if !w.keep {
		return nil, nil
	}
	return w.value(f), nil
}

// code reads or writes w.word or w.bytes through the cursor.
func (w *walker) code(f *Field) error {
	switch f.kind {
	case kindWord:
		width := f.width
		if f.bits != nil {
			n := f.bits.eval(w.slots)
			if n < 0 || n > 64 {
				return wire.ErrRange
			}
			width = int(n)
		}
		if err := w.coding.Word(w.cursor, &w.word, width); err != nil {
			return err
		}
		if f.signed && w.cursor.Reading() {
			w.word = uint64(int64(w.word<<(64-width)) >> (64 - width))
		}
		return nil
	case kindRange:
		least, most := uint64(*f.Min), uint64(*f.Max)
		return w.coding.Count(w.cursor, &w.word, least, most)
	case kindNumber:
		return f.code(w.cursor, &w.word)
	case kindBool:
		if f.item {
			return w.coding.BoolItem(w.cursor, &w.word, w.item, w.items)
		}
		return w.coding.Bool(w.cursor, &w.word)
	case kindFloat:
		return w.coding.Word(w.cursor, &w.word, 32)
	case kindDouble:
		return w.coding.Word(w.cursor, &w.word, 64)
	case kindText:
		return w.coding.Text(w.cursor, &w.bytes, int(*f.Max))
	case kindBytes:
		n, err := w.count(f, len(w.bytes))
		if err != nil {
			return err
		}
		return w.coding.Bytes(w.cursor, &w.bytes, n)
	}
	return nil
}

// count codes how many items or bytes a field has. When writing, that is n.
func (w *walker) count(f *Field, n int) (int, error) {
	if f.count != nil {
		want := f.count.eval(w.slots)
		if want < 0 || want > mostCount || !w.cursor.Reading() && want != int64(n) {
			return 0, wire.ErrRange
		}
		return int(want), nil
	}
	v := uint64(n)
	if !w.cursor.Reading() && (int64(n) < *f.Min || int64(n) > *f.Max) {
		return 0, wire.ErrRange
	}
	if err := w.coding.Count(w.cursor, &v, uint64(*f.Min), uint64(*f.Max)); err != nil {
		return 0, err
	}
	if v > mostCount {
		return 0, wire.ErrRange
	}
	return int(v), nil
}

func (w *walker) array(f *Field, in any, depth, item int) (any, error) {
	var items []any
	if !w.cursor.Reading() {
		list, ok := in.([]any)
		if !ok {
			return nil, fmt.Errorf("%s: expected a list, found %T", f.Name, in)
		}
		items = list
	}
	at := w.cursor.Pos()
	if f.noCount {
		w.word = 0
		return Missing(-1), w.done(f, at, depth, item, nil)
	}
	n, err := w.count(f, len(items))
	w.word = uint64(n)
	if err := w.done(f, at, depth, item, err); err != nil {
		return nil, err
	}
	if f.lost {
		return Missing(n), nil
	}
	var out []any
	for i := range n {
		var one any
		if !w.cursor.Reading() {
			one = items[i]
		}
		var got any
		if f.Item != nil {
			w.item, w.items = i, n
			got, err = w.field(f.Item, one, depth+1, i)
		} else {
			if w.left--; w.left < 0 {
				err = w.fault(f, w.cursor.Pos(), wire.ErrRange, fmt.Sprintf("at most %d values in a body", mostValues))
			} else {
				got, err = w.fields(f.Fields, one, depth+1, i)
			}
		}
		if err != nil {
			return nil, err
		}
		if w.keep {
			out = append(out, got)
		}
	}
	return out, nil
}

func (w *walker) zeros(f *Field, depth, item int) error {
	at := w.cursor.Pos()
	n := f.bits.eval(w.slots)
	if n < 0 || n > 8*mostCount {
		return w.fault(f, at, wire.ErrRange, fmt.Sprintf("0 to %d bits", 8*mostCount))
	}
	for n > 0 {
		step := min(n, 64)
		w.word = 0
		if err := w.cursor.Bits(&w.word, int(step)); err != nil {
			return w.done(f, at, depth, item, err)
		}
		if w.word != 0 {
			return w.done(f, at, depth, item, bits.ErrPadding)
		}
		n -= step
	}
	return w.done(f, at, depth, item, nil)
}

// done returns the error of a field, or passes its value to the visitor.
func (w *walker) done(f *Field, at, depth, item int, err error) error {
	switch {
	case err == nil:
		w.tell(f, at, depth, item)
		return nil
	case errors.Is(err, bits.ErrShort):
		return w.fault(f, at, wire.ErrShort, "")
	case errors.Is(err, bits.ErrPadding):
		return w.fault(f, at, wire.ErrPadding, "")
	case errors.Is(err, wire.ErrRange):
		return w.fault(f, at, wire.ErrRange, limits(f))
	}
	return w.fault(f, at, err, "")
}

func (w *walker) tell(f *Field, at, depth, item int) {
	if w.visit == nil {
		return
	}
	w.leaf = Leaf{Field: f, Depth: depth, Item: item, Bit: at, Bits: w.cursor.Pos() - at, Uint: w.word, Lost: f.lost}
	switch f.kind {
	case kindText, kindBytes:
		w.leaf.Uint, w.leaf.Bytes = 0, w.bytes
	case kindGroup:
		w.leaf.Uint = 0
	}
	w.visit(&w.leaf)
}

func (w *walker) fault(f *Field, at int, kind error, expected string) error {
	name := f.Name
	if name == "" {
		name = f.Type
	}
	return &wire.ParseError{Field: name, Bit: at, Expected: expected, Err: kind}
}

func limits(f *Field) string {
	if f.Min != nil && f.Max != nil {
		return fmt.Sprintf("%d to %d", *f.Min, *f.Max)
	}
	if f.Max != nil {
		return fmt.Sprintf("at most %d", *f.Max)
	}
	return ""
}

// value returns the value that was read, as a Go value.
func (w *walker) value(f *Field) any {
	switch f.Shape() {
	case Bool:
		return w.word != 0
	case Float:
		return math.Float32frombits(uint32(w.word))
	case Double:
		return math.Float64frombits(w.word)
	case Text:
		return string(w.bytes)
	case Bytes:
		return append([]byte{}, w.bytes...)
	case Int:
		return int64(w.word)
	}
	return w.word
}
