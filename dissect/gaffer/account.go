package gaffer

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// account says what a datagram's bits are for. The ack fields acknowledge, as do the
// lists of slices and messages that arrived. Payload, ciphertext and messages belong to
// the application. If a schema reads messages, each is charged with its id and type
// too: they are part of its cost.
func account(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b *dissect.Bill) {
	Dissect(ctx, dg, d)
	b.Type = "malformed"
	var k copyKey
	for i := 0; i < len(d.Fields); i++ {
		f := &d.Fields[i]
		switch f.Spec {
		case fieldKind:
			b.Type = wire.Kind(f.Uint).String()
			if wire.Kind(f.Uint) == wire.KindSliceAck {
				b.Acks = uint64(max(dg.Length, len(dg.Bytes))) * 8
				return
			}
		case fieldNetcodeType:
			b.Type = wire.NetcodeWord(uint8(f.Uint))
		case fieldAck, fieldAckBits, fieldMessageAck:
			b.Acks += uint64(f.Bits)
		case fieldSliceChunk, fieldBlockMessage:
			k.id, k.known = f.Uint, true
		case fieldSliceID, fieldBlockIndex:
			k.part = f.Uint + 1
		case fieldChannel:
			k = copyKey{channel: f.Uint}
		case fieldPayload:
			b.Charge("", uint64(f.Bits), k.key())
		case fieldCiphertext, fieldUnreadPayload:
			b.Charge("", uint64(f.Bits), 0)
		case fieldBlockData:
			b.Charge("block", uint64(f.Bits), k.key())
		case fieldMessage:
			end := i + 1
			for end < len(d.Fields) && d.Fields[end].Depth > f.Depth {
				end++
			}
			name, key := message(d.Fields[i:end], k, b)
			b.Charge(name, uint64(f.Bits), key)
			i = end - 1
		default:
			if f.Spec.Kind == dissect.KindGroup && f.Depth == 1 && f.Spec != fieldEntry {
				b.Charge(f.Spec.Label, uint64(f.Bits), 0)
			}
		}
	}
}

// copyKey identifies the copies of a message, or of a part of a block.
type copyKey struct {
	channel, id, part uint64
	known             bool
}

func (k copyKey) key() uint64 {
	if !k.known {
		return 0
	}
	return 1<<63 | k.channel<<48 | k.id<<24 | k.part
}

// message returns the name of a message, by the schema or the number of its type. The
// key identifies the message's copies.
func message(fields []dissect.Field, k copyKey, b *dissect.Bill) (name string, key uint64) {
	name = "message"
	for i := range fields {
		switch f := &fields[i]; f.Spec {
		case fieldMessageType:
			name = b.Name("message type", f.Uint)
		case fieldMessageID:
			k.id, k.known = f.Uint, true
		}
	}
	if fields[0].Note != "" {
		name = fields[0].Note
	}
	return name, k.key()
}
