package riptide

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema"
	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// bodies is a user's schema, prepared for every coding of values, with a field for each field of
// the schema.
//
//   - Its messages describe Unreliable and Reliable messages by their id.
//   - Its packets describe what has no id, by the number of its type. These are Notify (6), and the
//     data of Connect (2), of a Reject (3) and of a kick (5).
type bodies struct {
	byCoding map[wire.Coding]*schema.Schema
	specs    map[int]*dissect.FieldSpec // by schema.Field.Index, which all copies of a field share
	messages map[uint32]*dissect.FieldSpec
	packets  map[uint32]*dissect.FieldSpec
	all      []*dissect.FieldSpec // in the order of the file
}

// fields lists the schema's fields. They follow the protocol's own fields.
func (b *bodies) fields() []*dissect.FieldSpec {
	if b == nil {
		return nil
	}
	return b.all
}

// spec records a field of the schema.
func (b *bodies) spec(f *dissect.FieldSpec) *dissect.FieldSpec {
	b.all = append(b.all, f)
	return f
}

func newBodies(s *schema.Schema) (*bodies, error) {
	b := &bodies{
		byCoding: map[wire.Coding]*schema.Schema{}, specs: map[int]*dissect.FieldSpec{},
		messages: map[uint32]*dissect.FieldSpec{}, packets: map[uint32]*dissect.FieldSpec{},
	}
	for _, c := range hypotheses {
		codings := []wire.Coding{{Codec: c}}
		for _, build := range wire.Builds {
			if build.Dialect == c.Dialect {
				codings = append(codings, wire.CodingOf(c, wire.Matching(func(o *wire.Build) bool { return o == build })))
			}
		}
		for _, coding := range codings {
			if b.byCoding[coding] != nil {
				continue
			}
			ready, err := s.With(coding)
			if err != nil {
				return nil, err
			}
			b.byCoding[coding] = ready
		}
	}
	ready := b.byCoding[wire.Coding{Codec: hypotheses[0]}]
	for _, kind := range schema.Kinds(ready.Packets) {
		if !slices.Contains(packetTypes, wire.Type(kind)) {
			return nil, &schema.Error{
				Path: fmt.Sprintf("$.packets.%d", kind),
				Text: "expected 2 (connect data), 3 (reject data), 5 (kick data) or 6 (notify)",
			}
		}
	}
	for _, kind := range schema.Kinds(ready.Messages) {
		if kind > math.MaxUint16 {
			return nil, &schema.Error{Path: fmt.Sprintf("$.messages.%d", kind), Text: "message ids are 0 to 65535"}
		}
	}
	b.describe("riptide.message", ready.Messages, b.messages)
	b.describe("riptide.packet", ready.Packets, b.packets)
	return b, nil
}

// packetTypes are the types whose bodies a schema describes as packets.
var packetTypes = []wire.Type{wire.Connect, wire.Reject, wire.Disconnect, wire.Notify}

func (b *bodies) describe(prefix string, byKind map[uint32]*schema.Body, groups map[uint32]*dissect.FieldSpec) {
	for _, kind := range schema.Kinds(byKind) {
		body := byKind[kind]
		name := body.Name
		if name == "" {
			name = fmt.Sprintf("id%d", kind)
		}
		groups[kind] = b.spec(&dissect.FieldSpec{
			Name: prefix + "." + name, Label: name, Kind: dissect.KindGroup, Doc: body.Doc,
		})
		b.name(prefix+"."+name, body.Fields)
	}
}

func (b *bodies) name(path string, fields []*schema.Field) {
	for _, f := range fields {
		at, label := path, f.Type
		if f.Name != "" {
			at, label = path+"."+f.Name, f.Name
		}
		b.specs[f.Index()] = b.spec(&dissect.FieldSpec{
			Name: at, Label: label, Kind: dissect.KindOfShape(f.Shape()), Doc: f.Doc,
		})
		b.name(at, f.Fields)
		if f.Item != nil {
			b.name(at, []*schema.Field{f.Item})
		}
	}
}

// of returns the schema of a message's values, and the heading of its fields. Both are nil where
// the schema does not describe the message, or the message has no values.
func (b *bodies) of(s Sender, m *wire.Message) (*schema.Body, *dissect.FieldSpec) {
	if b == nil {
		return nil, nil
	}
	coding := wire.CodingOf(s.Codec, s.Builds)
	coding.NotifyHeader = false
	ready := b.byCoding[coding]
	kind := uint32(m.Type)
	switch m.Type {
	case wire.Notify:
		if !m.Bare {
			return ready.Packets[kind], b.packets[kind]
		}
	case wire.Unreliable, wire.Reliable:
	case wire.Reject:
		if m.Reason != s.Codec.Dialect.CustomReason {
			return nil, nil
		}
		return dataBody(ready, b, m)
	case wire.Disconnect:
		if m.Reason != s.Codec.Dialect.KickedReason {
			return nil, nil
		}
		return dataBody(ready, b, m)
	case wire.Connect:
		return dataBody(ready, b, m)
	default:
		return nil, nil
	}
	kind = uint32(m.MessageID)
	return ready.Messages[kind], b.messages[kind]
}

// dataBody returns the schema of connect, reject or kick data. The data is optional, so the result
// is nil where there is none.
func dataBody(s *schema.Schema, b *bodies, m *wire.Message) (*schema.Body, *dissect.FieldSpec) {
	if m.BodyBits < 8 {
		return nil, nil
	}
	return s.Packets[uint32(m.Type)], b.packets[uint32(m.Type)]
}

// add adds the fields of a message's values under their heading.
func (b *bodies) add(s Sender, m *wire.Message, dg *machine.Datagram, d *dissect.Dissection, body *schema.Body,
	heading *dissect.FieldSpec,
) {
	var r bits.Reader
	r.Reset(dg.Bytes, m.BodyBit)
	at := len(d.Fields)
	d.Add(dissect.Field{Spec: heading, Depth: 1, Bit: uint32(m.BodyBit)})
	err := body.Visit(&r, func(l *schema.Leaf) {
		f := dissect.Field{
			Spec: b.specs[l.Field.Index()], Depth: 2 + uint8(min(l.Depth, 100)), Bit: uint32(l.Bit),
			Bits: uint32(l.Bits), Uint: l.Uint, Bytes: l.Bytes,
		}
		switch {
		case l.Lost:
			f.Note = "left off the wire by the sender's library"
		case l.Field.Shape() == schema.Float:
			f.Uint = math.Float64bits(float64(math.Float32frombits(uint32(l.Uint))))
		}
		d.Add(f)
	})
	d.Fields[at].Bits = uint32(r.Pos() - m.BodyBit)
	rest := m.BodyBit + m.BodyBits - r.Pos()
	if err == nil {
		err = ended(s, m, &r)
	} else if dg.Length > len(dg.Bytes) && errors.Is(err, common.ErrShort) {
		return // the snap length cut it
	}
	if err != nil && d.Problem == nil {
		d.Problem = err
	}
	if rest > 0 && rest < 8 {
		v, _ := r.Bits(rest)
		d.Add(dissect.Field{
			Spec: fieldPadding, Depth: 1, Bit: uint32(m.BodyBit + m.BodyBits - rest),
			Bits: uint32(rest), Uint: v,
		})
	}
}

// ended returns an error unless a body was read to its end. In the bit-packed form zeros of the
// last byte may be left.
func ended(s Sender, m *wire.Message, r *bits.Reader) error {
	rest := m.BodyBit + m.BodyBits - r.Pos()
	after := *r
	v, ok := after.Bits(min(rest, 64))
	// Where bools were lost, a bit or two of their length can be left.
	lost := wire.CodingOf(s.Codec, s.Builds).LostBoolArrays
	if rest == 0 || s.Codec.Dialect.Form == wire.BitPacked && rest < 8 && ok && (v == 0 || lost) {
		return nil
	}
	return &common.ParseError{
		Field: "payload", Bit: r.Pos(), Expected: "the end, by the schema",
		Found: fmt.Sprintf("%d bits", rest), Err: common.ErrTrailing,
	}
}

// read reads a body that begins at a bit of b and ends where m says.
func read(s Sender, body *schema.Body, m *wire.Message, b []byte, bit int) (schema.Record, error) {
	var r bits.Reader
	r.Reset(b, bit)
	values, err := body.Read(&r)
	if err != nil {
		return nil, err
	}
	at := *m
	at.BodyBit = bit
	return values, ended(s, &at, &r)
}

// describe returns the name of a message from a tracker. It also returns the values where a schema
// reads them to the end.
func describe(c *dissect.Config, m *machine.Message) (string, dissect.Values) {
	set := settingsOf(c)
	s := set.Senders[m.From]
	x := wire.Message{Type: wire.Type(m.Type), BodyBits: m.Bits}
	if m.ID >= 0 {
		x.MessageID, x.Bare = uint16(m.ID), x.Type == wire.Notify
	}
	body, _ := set.bodies.of(s, &x)
	if body == nil {
		return "", nil
	}
	if m.Body == nil && m.Bits >= 8 {
		return body.Name, nil
	}
	values, err := read(s, body, &x, m.Body, int(m.BodyBit))
	if err != nil {
		return body.Name, nil
	}
	return body.Name, values
}
