package srdp

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// account says what a packet's bits are for. All bits of an acknowledgement
// acknowledge. Data has a header and a payload.
func account(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
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
				b.Type, b.Acks = "acknowledgement", all
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
