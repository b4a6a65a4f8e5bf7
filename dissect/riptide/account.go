package riptide

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// account charges a message's bits to their purposes. All bits of an Ack count as acks, and so do
// the header fields of Notify that name received ids. User messages and the data of a few others
// have a body.
func account(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
	settings, length := settingsOf(ctx.Config), max(dg.Length, len(dg.Bytes))
	sender := settings.Senders[ctx.From]
	var m wire.Message
	if sender.Codec.Parse(dg.Bytes, length, &m) == nil {
		if values, _ := settings.bodies.of(sender, &m); values == nil {
			accountMessage(sender.Codec, dg.Bytes, length, &m, b)
			return
		}
	}
	Dissect(ctx, dg, d)
	accountFields(dg, d, b)
}

// accountMessage charges a whole message whose body no schema describes.
func accountMessage(codec wire.Codec, bytes []byte, length int, m *wire.Message, b *dissect.Bill) {
	b.Type = m.Type.String()
	if m.Type == wire.Ack || m.Type == wire.AckExtra {
		b.Acks = uint64(length) * 8
		return
	}
	codec.WalkMessage(bytes, length, m, func(f wire.Field, _, width int, value uint64) {
		switch f {
		case wire.FieldMessageID:
			b.Type = b.Name(b.Type, value)
		case wire.FieldLast, wire.FieldAckBits, wire.FieldFlag, wire.FieldCause:
			b.Acks += uint64(width)
		}
	})
	if m.BodyBits >= 8 {
		b.Charge("", uint64(m.BodyBits), 0)
	}
}

// accountFields does the same by the fields of a datagram, of which some may be missing.
func accountFields(dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
	b.Type = "malformed"
	for i := range d.Fields {
		f := &d.Fields[i]
		switch f.Spec {
		case fieldType:
			b.Type = wire.Type(f.Uint).String()
			if t := wire.Type(f.Uint); t == wire.Ack || t == wire.AckExtra {
				b.Acks = uint64(max(dg.Length, len(dg.Bytes))) * 8
				return
			}
		case fieldMessageID:
			b.Type = b.Name(b.Type, f.Uint)
		case fieldLast, fieldAckBits, fieldFlag, fieldCause:
			b.Acks += uint64(f.Bits)
		case fieldData, fieldPayload:
			b.Charge("", uint64(f.Bits), 0)
		default:
			if f.Spec.Kind == dissect.KindGroup && f.Depth == 1 {
				b.Type += " " + f.Spec.Label
				b.Charge("", uint64(f.Bits), 0)
			}
		}
	}
}
