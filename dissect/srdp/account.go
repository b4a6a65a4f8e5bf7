package srdp

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// account says what a packet's bits are for. All bits of an acknowledgement
// acknowledge. Data has a header and a payload.
func account(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
	s, length := settingsOf(ctx.Config), max(dg.Length, len(dg.Bytes))
	var pk wire.Packet
	switch {
	case !s.Wire.Fits(dg.Bytes, length, &pk):
		Dissect(ctx, dg, d)
		accountFields(ctx, dg, d, b)
	case pk.Ack:
		b.Type, b.Acks = typeAck, uint64(length)*8
	default:
		b.Type = nameOf(&s.Wire, pk.Flags)
		b.Charge("", uint64(pk.PayloadLen)*8, 0)
	}
}

// typeAck is the type of all acknowledgements.
const typeAck = "acknowledgement"

// accountFields does the same by the fields of a datagram, of which some may be missing.
func accountFields(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
	flags, all := uint8(0), uint64(max(dg.Length, len(dg.Bytes)))*8
	b.Type = "malformed"
	for i := range d.Fields {
		switch f := &d.Fields[i]; f.Spec {
		case fieldForeign:
			b.Type = "foreign"
			b.Charge("", all, 0)
			return
		case fieldAck:
			if f.Uint == 1 {
				b.Type, b.Acks = typeAck, all
				return
			}
			b.Type = ""
		case fieldFlags:
			flags = uint8(f.Uint)
		case fieldPayload:
			b.Charge("", uint64(f.Bits), 0)
		}
	}
	if b.Type == "" {
		b.Type = nameOf(&settingsOf(ctx.Config).Wire, flags)
	}
}
