package riptide

import (
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// account charges a message's bits to their purposes. All bits of an Ack count as acks, and so do
// the header fields of Notify that name received ids. User messages and the data of a few others
// have a body.
func account(_ dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
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
			b.Type += " " + strconv.FormatUint(f.Uint, 10)
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
