package riptide

import (
	"errors"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Dissect splits a message into its fields, down to the bit.
func Dissect(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection) {
	s := settingsOf(ctx.Config)
	codec := s.Senders[ctx.From].Codec
	length := max(dg.Length, len(dg.Bytes))
	d.Snapped = len(dg.Bytes) < length
	d.Add(dissect.Field{Spec: fieldRiptide, Bits: uint32(length) * 8, Note: codec.Dialect.Name})

	if dg.Prefix.Bytes > 0 {
		d.Add(dissect.Field{Spec: fieldLength, Depth: 1, Uint: uint64(length), Note: prefixNotes[dg.Prefix]})
	}

	var m wire.Message
	err := codec.Parse(dg.Bytes, length, &m)
	if err != nil && !errors.Is(err, common.ErrSnapped) {
		d.Problem = err
	}
	add := func(f wire.Field, bit, width int, value uint64) {
		field := dissect.Field{Spec: specs[f], Depth: 1, Bit: uint32(bit), Bits: uint32(width), Uint: value}
		switch f {
		case wire.FieldType:
			field.Uint = uint64(m.Type)
		case wire.FieldAckBits:
			field.Note = ackBitsNote(value)
		case wire.FieldRTT:
			field.Uint = uint64(int64(m.RTT))
			if m.RTT == -1 {
				field.Note = "none yet"
			}
		}
		d.Add(field)
	}
	if err == nil {
		codec.WalkMessage(dg.Bytes, length, &m, add)
	} else {
		codec.Walk(dg.Bytes, length, add)
	}
	if err != nil && !errors.Is(err, common.ErrTrailing) {
		return
	}
	if (m.Type == wire.Ack || m.Type == wire.AckExtra) && !m.HasCause {
		d.Add(dissect.Field{Spec: fieldCause, Depth: 1, Uint: uint64(m.Cause)})
	}
	if m.HasReason {
		if name := reasonWord(codec.Dialect, &m); name != nil {
			d.Add(dissect.Field{Spec: fieldWord, Depth: 1, Bytes: name})
		}
	}
	for _, o := range oddities {
		if m.Oddities&o.oddity != 0 {
			d.Add(dissect.Field{Spec: fieldOddity, Depth: 1, Bytes: o.words})
		}
	}
	if values, heading := s.bodies.of(s.Senders[ctx.From], &m); values != nil {
		s.bodies.add(s.Senders[ctx.From], &m, dg, d, values, heading)
		return
	}
	body(&m, dg.Bytes, length, d)
}

// body adds the fields after the header, and the padding.
func body(m *wire.Message, b []byte, length int, d *dissect.Dissection) {
	spec := fieldData
	if m.Type.User() {
		spec = fieldPayload
	}
	pad := length*8 - m.BodyBit
	if m.BodyBits >= 8 {
		// The values decide which bits of the last byte are padding, so these stay with the values.
		pad = 0
		d.Add(dissect.Field{
			Spec: spec, Depth: 1, Bit: uint32(m.BodyBit), Bits: uint32(m.BodyBits),
			Bytes: d.Unaligned(b, m.BodyBit),
		})
	}
	if pad > 0 && pad < 8 && len(b) == length {
		d.Add(dissect.Field{
			Spec: fieldPadding, Depth: 1, Bit: uint32(m.BodyBit), Bits: uint32(pad),
			Uint: uint64(b[length-1]) >> (8 - pad),
		})
	}
}

// reasonWords holds every reason's name as bytes, by dialect, type and number. So dissecting a
// packet allocates none.
var reasonWords = func() map[*wire.Dialect]map[wire.Type]map[uint8][]byte {
	all := map[*wire.Dialect]map[wire.Type]map[uint8][]byte{}
	for _, dialect := range wire.Dialects {
		of := map[wire.Type]map[uint8][]byte{wire.Reject: {}, wire.Disconnect: {}}
		for n := range 256 {
			if name := dialect.RejectReason(uint8(n)); name != "" {
				of[wire.Reject][uint8(n)] = []byte(name)
			}
			if name := dialect.DisconnectReason(uint8(n)); name != "" {
				of[wire.Disconnect][uint8(n)] = []byte(name)
			}
		}
		all[dialect] = of
	}
	return all
}()

func reasonWord(dialect *wire.Dialect, m *wire.Message) []byte {
	return reasonWords[dialect][m.Type][m.Reason]
}
