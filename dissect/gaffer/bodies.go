package gaffer

import (
	"fmt"
	"math"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/schema"
	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// bodies has the messages or the packets of a schema, with a spec for each of their
// fields. It is the wire.Bodies of a profile. Code that needs values calls Read.
type bodies struct {
	byType map[uint32]*schema.Body
	groups map[uint32]*dissect.FieldSpec
	specs  map[*schema.Field]*dissect.FieldSpec
}

func newBodies(prefix string, byType map[uint32]*schema.Body) *bodies {
	b := &bodies{byType, map[uint32]*dissect.FieldSpec{}, map[*schema.Field]*dissect.FieldSpec{}}
	for _, kind := range schema.Kinds(byType) {
		body := byType[kind]
		name := body.Name
		if name == "" {
			name = fmt.Sprintf("type%d", kind)
		}
		path := prefix + "." + name
		b.groups[kind] = &dissect.FieldSpec{Name: path, Label: name, Kind: dissect.KindGroup, Doc: body.Doc}
		b.name(path, body.Fields)
	}
	return b
}

// name creates the field specs below a path.
func (b *bodies) name(path string, fields []*schema.Field) {
	for _, f := range fields {
		at, label := path, f.Name
		if f.Name != "" {
			at += "." + f.Name
		} else if label = f.Type; f.Shape() == schema.Padding {
			b.specs[f] = fieldPadding
			continue
		}
		b.specs[f] = &dissect.FieldSpec{Name: at, Label: label, Kind: dissect.KindOfShape(f.Shape()), Doc: f.Doc}
		b.name(at, f.Fields)
		if f.Item != nil {
			b.name(at, []*schema.Field{f.Item})
		}
	}
}

// Skip moves r past a body.
func (b *bodies) Skip(kind uint32, r *bits.Reader) error {
	body, err := b.body(kind, r)
	if err != nil {
		return err
	}
	return body.Visit(r, nil)
}

// fill reports whether a packet's body fills its payload, except for zero bits up to a
// whole byte. It returns true if the capture or the schema does not show that.
func (b *bodies) fill(pk *wire.Packet, data []byte) bool {
	end := pk.PayloadOffset + pk.PayloadLen
	if end > len(data) || b.byType[pk.Type] == nil {
		return true
	}
	var r bits.Reader
	r.Reset(data[:end], pk.PayloadOffset*8+pk.PayloadBit)
	return b.Skip(pk.Type, &r) == nil && r.Align() && r.Left() == 0
}

// Read reads a body's values.
func (b *bodies) Read(kind uint32, r *bits.Reader) (schema.Record, error) {
	body, err := b.body(kind, r)
	if err != nil {
		return nil, err
	}
	return body.Read(r)
}

// Name returns the name of a type. It is empty if the schema lacks the type.
func (b *bodies) Name(kind uint32) string {
	if body := b.byType[kind]; body != nil {
		return body.Name
	}
	return ""
}

func (b *bodies) body(kind uint32, r *bits.Reader) (*schema.Body, error) {
	if body := b.byType[kind]; body != nil {
		return body, nil
	}
	return nil, &common.ParseError{
		Field: "type", Bit: r.Pos(), Expected: "a type that the schema has",
		Found: fmt.Sprint(kind), Err: common.ErrRange,
	}
}

// fields adds the fields of a body that begins at bit at of t.b, under a heading. It
// returns the bit after the body.
func (b *bodies) fields(t *tree, kind uint32, at int, depth uint8) (int, error) {
	var r bits.Reader
	r.Reset(t.b, at)
	body, err := b.body(kind, &r)
	if err != nil {
		return at, err
	}
	d := t.d // the visitor keeps d, not the tree itself
	heading := len(d.Fields)
	d.Add(dissect.Field{Spec: b.groups[kind], Depth: depth, Bit: uint32(at)})
	err = body.Visit(&r, func(l *schema.Leaf) {
		f := dissect.Field{
			Spec: b.specs[l.Field], Depth: depth + 1 + uint8(min(l.Depth, 100)), Bit: uint32(l.Bit),
			Bits: uint32(l.Bits), Uint: l.Uint, Bytes: l.Bytes,
		}
		switch {
		case l.Field.Shape() == schema.Float:
			f.Uint = math.Float64bits(float64(math.Float32frombits(uint32(l.Uint))))
		case l.Field.Type == "array":
			f.Note = fmt.Sprintf("%d items", l.Uint)
		case l.Item >= 0:
			f.Note = fmt.Sprintf("item %d", l.Item)
		}
		d.Add(f)
	})
	d.Fields[heading].Bits = uint32(r.Pos() - at)
	return r.Pos(), err
}

// Body returns the body of a type, for code that writes messages. It is nil if the
// schema lacks the type.
func (b *bodies) Body(kind uint32) *schema.Body { return b.byType[kind] }
