package srdp

import (
	"errors"
	"math/bits"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Dissect decodes a packet. A datagram whose first byte is no command is
// foreign: it is shown as such, and is not malformed.
func Dissect(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection) {
	s := settingsOf(ctx.Config)
	length := max(dg.Length, len(dg.Bytes))
	d.Snapped = len(dg.Bytes) < length
	d.Add(dissect.Field{Spec: fieldSRDP, Bits: uint32(length) * 8, Note: s.Wire.Form.String()})

	if foreign(&s.Wire, dg.Bytes) {
		d.Add(dissect.Field{Spec: fieldForeign, Depth: 1, Bits: uint32(len(dg.Bytes)) * 8, Bytes: dg.Bytes})
		return
	}
	var pk wire.Packet
	if !s.Wire.Fits(dg.Bytes, length, &pk) {
		if err := s.Wire.Parse(dg.Bytes, length, &pk); !errors.Is(err, common.ErrSnapped) {
			d.Problem = err
		}
	}
	s.Wire.Walk(dg.Bytes, length, func(f wire.Field, at, size int, value uint64) {
		field := dissect.Field{Spec: specs[f], Depth: 1, Bit: uint32(at) * 8, Bits: uint32(size) * 8, Uint: value}
		switch f {
		case wire.FieldID:
			mark := dissect.Field{Spec: fieldAck, Depth: 1, Bit: uint32(at)*8 + 7, Bits: 1, Uint: value >> 15}
			if s.Wire.LittleEndian {
				mark.Bit += 8
			}
			d.Add(mark)
			field.Uint = value &^ wire.AckMark
		case wire.FieldSourceAddress, wire.FieldDestinationAddress:
			field.Bytes = dg.Bytes[at : at+size]
		}
		d.Add(field)
		if f == wire.FieldFlags {
			addFlags(&s.Wire, uint8(value), uint32(at)*8, d)
		}
	})
	if d.Problem != nil {
		return
	}
	if pk.PayloadLen > 0 {
		d.Add(dissect.Field{
			Spec: fieldPayload, Depth: 1, Bit: uint32(pk.PayloadOffset) * 8, Bits: uint32(pk.PayloadLen) * 8,
			Bytes: dg.Bytes[min(pk.PayloadOffset, len(dg.Bytes)):],
		})
	}
	if s.Wire.Contradicts(&pk) {
		say := sayAckCommand
		if pk.Ack {
			say = sayDataCommand
		}
		d.Add(dissect.Field{Spec: fieldOddity, Depth: 1, Bytes: say})
	}
	if pk.PayloadLen > s.MaxPayload {
		d.Add(dissect.Field{Spec: fieldOddity, Depth: 1, Bytes: sayOversize})
	}
}

// foreign reports whether a datagram does not begin with a command byte.
func foreign(p *wire.Profile, b []byte) bool {
	return len(b) == 0 || b[0] != p.DataCommand && b[0] != p.AckCommand
}

// addFlags adds the fields of the flags' bits.
func addFlags(p *wire.Profile, flags uint8, bit uint32, d *dissect.Dissection) {
	for _, f := range [...]struct {
		spec *dissect.FieldSpec
		mask uint8
	}{{fieldOnce, p.DontDuplicate}, {fieldOrder, p.Order}} {
		v := uint64(0)
		if flags&f.mask != 0 {
			v = 1
		}
		d.Add(dissect.Field{Spec: f.spec, Depth: 2, Bit: bit + uint32(bits.TrailingZeros8(f.mask)), Bits: 1, Uint: v})
	}
	if rest := p.UnknownFlags(flags); rest != 0 {
		d.Add(dissect.Field{Spec: fieldUnknown, Depth: 2, Bit: bit, Bits: 8, Uint: uint64(rest)})
	}
}
