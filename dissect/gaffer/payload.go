package gaffer

import (
	"fmt"

	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// payload adds what a regular packet carries: its body by a schema, its
// messages, or its bytes.
func (t *tree) payload() {
	pk, p := &t.pk, t.p
	start := pk.PayloadOffset*8 + pk.PayloadBit
	whole := len(t.b) >= pk.PayloadOffset+pk.PayloadLen
	if b, ok := p.PacketBodies.(*bodies); ok && whole && b.byType[pk.Type] != nil {
		t.packetBody(b, start)
		return
	}
	if p.Messages.Form != wire.MessagesNone && whole && pk.PayloadLen > 0 {
		t.messages(start)
		return
	}
	if pk.PayloadBit == 0 {
		t.bytes(fieldPayload, pk.PayloadOffset, pk.PayloadLen)
	} else if n := pk.PayloadLen*8 - pk.PayloadBit; n > 0 && pk.PayloadOffset < len(t.b) {
		f := t.put(fieldPayload, 1, start, n, 0)
		f.Bytes, f.Note = t.b[pk.PayloadOffset:min(pk.PayloadOffset+pk.PayloadLen, len(t.b))], "begins within the first byte"
	}
}

// packetBody adds the body of a packet type. The body fills the payload, except for
// zero bits up to a whole byte.
func (t *tree) packetBody(b *bodies, start int) {
	payload := t.pk.PayloadOffset + t.pk.PayloadLen
	all := t.b
	t.b = t.b[:payload]
	end, err := b.fields(t, t.pk.Type, start, 1)
	t.b = all
	if err == nil {
		err = t.rest(end, payload)
	}
	if err != nil {
		t.problem(err)
	}
}

// rest adds the padding after a body. Anything more is a fault.
func (t *tree) rest(end, payload int) error {
	var r bits.Reader
	r.Reset(t.b[:payload], end)
	n := -end & 7
	v, _ := r.Bits(n)
	if n > 0 {
		t.packed(fieldPadding, end, n, v)
	}
	switch {
	case v != 0:
		return &common.ParseError{
			Field: "padding", Bit: end, Expected: "zero bits", Found: fmt.Sprint(v),
			Err: common.ErrPadding,
		}
	case r.Left() > 0:
		return &common.ParseError{
			Field: "trailing", Bit: r.Pos(), Expected: "the end of the body",
			Found: fmt.Sprintf("%d more bytes", r.Left()/8), Err: common.ErrTrailing,
		}
	}
	return nil
}

// messages adds the message section that begins at bit start.
func (t *tree) messages(start int) {
	section := &t.p.Messages
	payload := t.pk.PayloadOffset + t.pk.PayloadLen
	m, err := section.Open(t.b[:payload], start)
	pos := start
	if section.Form == wire.MessagesSimple {
		pos = t.packed(fieldMessageAck, pos, wire.MessageIDBits, uint64(m.Ack))
	}
	pos = t.packed(fieldMessageCount, pos, section.CountBits(), uint64(m.Count))
	if section.Form == wire.MessagesSimple {
		t.packed(fieldMessageStart, pos, wire.MessageIDBits, uint64(m.Start))
	}
	if err != nil {
		t.problem(err)
		return
	}
	b, _ := section.Bodies.(*bodies)
	var one wire.Message
	for m.Next(&one) {
		heading := len(t.d.Fields)
		f := t.put(fieldMessage, 1, one.Bit, m.Pos()-one.Bit, 0)
		if b != nil {
			f.Note = b.Name(one.Type)
		}
		t.put(fieldMessageID, 2, one.Bit, one.Kind-one.Bit, uint64(one.ID))
		t.put(fieldMessageType, 2, one.Kind, one.Body-one.Kind, uint64(one.Type))
		if b != nil && b.byType[one.Type] != nil {
			all := t.b
			t.b = t.b[:payload]
			end, _ := b.fields(t, one.Type, one.Body, 2) // m reports what is wrong with it
			t.b = all
			t.d.Fields[heading].Bits = uint32(end - one.Bit)
		}
	}
	switch {
	case m.Err() != nil:
		t.problem(m.Err())
	case m.Count > 0 && section.Bodies == nil:
		// Bodies have no length: without a schema nothing after the first type can be read.
		if rest := payload - bits.Bytes(m.Pos()); rest > 0 {
			t.bytes(fieldPayload, bits.Bytes(m.Pos()), rest)
		}
	default:
		at := m.Pos()
		next, err := m.Close()
		if next*8 > at {
			t.packed(fieldPadding, at, next*8-at, 0)
		}
		if err != nil {
			t.problem(err)
			return
		}
		t.bytes(fieldPayload, next, payload-next)
	}
}
