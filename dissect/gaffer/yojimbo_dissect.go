package gaffer

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// dissect takes a datagram of a keyed flow apart: netcode's clear part, then what it
// carries. Netcode's cipher keeps lengths, so a decrypted field is placed where its
// ciphertext is.
func (s *secured) dissect(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection) {
	var pk wire.Packet
	err := s.layers.Netcode.Parse(dg.Bytes, dg.Length, &pk)
	length := max(dg.Length, len(dg.Bytes))
	d.Add(dissect.Field{Spec: fieldGaffer, Bits: uint32(length) * 8, Note: ctx.Config.Dialect})
	t := tree{p: s.layers.Netcode, b: dg.Bytes, length: length, pk: pk, d: d}
	d.Snapped = len(dg.Bytes) < length
	if err == nil {
		d.Add(dissect.Field{Spec: fieldKind, Depth: 1, Uint: uint64(pk.Kind)})
	}
	t.netcode()
	var malformed *common.ParseError
	switch {
	case errors.As(err, &malformed):
		d.Problem = malformed
		return
	case err != nil:
		return
	case pk.NetcodeType == wire.NetcodeRequestType:
		s.request(&t, dg)
		return
	}
	plain, err := s.open(dg, &pk)
	if err != nil {
		d.Add(dissect.Field{Spec: fieldOpened, Depth: 1, Note: err.Error()})
		t.body()
		return
	}
	d.Add(dissect.Field{Spec: fieldOpened, Depth: 1, Uint: 1})
	first := len(d.Fields)
	inner := tree{p: s.layers.Reliable, b: plain, length: len(plain), d: d}
	switch pk.NetcodeType {
	case wire.NetcodeChallenge, wire.NetcodeResponse:
		inner.uint(fieldChallengeNumber, 0, 8, binary.LittleEndian.Uint64(plain))
		inner.bytes(fieldChallengeToken, 8, wire.ChallengeLen)
	case wire.NetcodeKeepAlive:
		inner.uint(fieldClientIndex, 0, 4, uint64(binary.LittleEndian.Uint32(plain)))
		inner.uint(fieldMaxClients, 4, 4, uint64(binary.LittleEndian.Uint32(plain[4:])))
	case wire.NetcodePayload:
		s.payload(ctx, &inner)
	}
	for i := first; i < len(d.Fields); i++ {
		d.Fields[i].Bit += uint32(pk.PayloadOffset) * 8
	}
	t.bytes(fieldMAC, pk.PayloadOffset+pk.PayloadLen-16, 16)
}

// request adds the fields of a connection request. If its token opens, it adds the
// token's client and servers, never its keys.
func (s *secured) request(t *tree, dg *machine.Datagram) {
	q, err := wire.ParseNetcodeRequest(dg.Bytes)
	if err != nil {
		return // cut by the snap length
	}
	t.uint(fieldNetcodeProtocol, 14, 8, q.ProtocolID)
	t.uint(fieldNetcodeExpire, 22, 8, q.Expire)
	t.bytes(fieldNetcodeNonce, 30, wire.TokenNonceLen)
	t.bytes(fieldNetcodeToken, 54, wire.TokenLen)
	session, err := s.keys.Open(&q)
	if err != nil {
		t.d.Add(dissect.Field{Spec: fieldOpened, Depth: 2, Note: err.Error()})
		return
	}
	t.d.Add(dissect.Field{Spec: fieldOpened, Depth: 2, Uint: 1})
	token := session.Token
	t.d.Add(dissect.Field{Spec: fieldTokenClient, Depth: 2, Uint: token.ClientID})
	t.d.Add(dissect.Field{Spec: fieldTokenTimeout, Depth: 2, Uint: uint64(int64(token.Timeout))})
	for _, a := range token.Servers {
		t.d.Add(dissect.Field{Spec: fieldTokenServer, Depth: 2, Bytes: []byte(a.String())})
	}
}

// payload adds what netcode carries: a packet of reliable, and the connection packet in
// it.
func (s *secured) payload(ctx dissect.Context, t *tree) {
	if err := t.p.Parse(t.b, t.length, &t.pk); err != nil {
		t.problem(err)
		t.bytes(fieldPayload, 0, t.length)
		return
	}
	t.reliable()
	config := s.connection(ctx.Config)
	if t.pk.Kind != wire.KindRegular || config == nil {
		t.bytes(fieldPayload, t.pk.PayloadOffset, t.pk.PayloadLen)
		return
	}
	first := len(t.d.Fields)
	c := tree{p: t.p, b: t.b[t.pk.PayloadOffset:], length: t.pk.PayloadLen, d: t.d}
	c.connection(config)
	if s.layers.Connection == nil {
		t.made(fieldInferred, 1)
	}
	for i := first; i < len(t.d.Fields); i++ {
		t.d.Fields[i].Bit += uint32(t.pk.PayloadOffset) * 8
	}
}

// connection adds the fields of a connection packet, which is all of t.b.
func (t *tree) connection(y *wire.Yojimbo) {
	var p wire.ConnectionPacket
	err := y.Parse(t.b, &p)
	t.packed(fieldEntries, 0, y.EntryBits(), uint64(len(p.Entries)))
	schema, _ := y.Bodies.(*bodies)
	t.layout, _ = y.Bodies.(layout)
	for i := range p.Entries {
		e := &p.Entries[i]
		heading := len(t.d.Fields)
		t.d.Add(dissect.Field{Spec: fieldEntry, Depth: 1, Bit: uint32(e.Bit), Note: "channel " + strconv.Itoa(e.Channel)})
		t.d.Add(dissect.Field{
			Spec: fieldChannel, Depth: 2, Bit: uint32(e.Bit), Bits: uint32(y.ChannelBits()),
			Uint: uint64(e.Channel),
		})
		block := uint64(0)
		if e.Block {
			block = 1
		}
		t.d.Add(dissect.Field{Spec: fieldChannelBlock, Depth: 2, Bit: uint32(e.Bit + y.ChannelBits()), Bits: 1, Uint: block})
		if e.Block {
			t.fragment(&e.Fragment, schema)
		}
		for j := e.First; j < e.First+e.Count; j++ {
			t.message(y, e, &p.Messages[j], schema)
		}
		end := p.End
		if i+1 < len(p.Entries) {
			end = p.Entries[i+1].Bit
		}
		t.d.Fields[heading].Bits = uint32(end - e.Bit)
	}
	switch {
	case err == nil:
		if n := -p.End & 7; n > 0 {
			t.packed(fieldPadding, p.End, n, 0)
		}
	default:
		if !errors.Is(err, wire.ErrOpaque) {
			t.problem(err)
		}
		if left := len(t.b)*8 - p.End; left > 0 {
			t.d.Add(dissect.Field{
				Spec: fieldUnreadPayload, Depth: 1, Bit: uint32(p.End), Bits: uint32(left),
				Bytes: t.b[p.End/8:],
			})
		}
	}
}

// layout is bodies that were learned from packets. It reports which have counted bytes.
type layout interface {
	Counted(kind uint32) (head, count int, ok bool)
}

// message adds one message of an entry.
func (t *tree) message(y *wire.Yojimbo, e *wire.ChannelEntry, m *wire.ConnectionMessage, b *bodies) {
	f := dissect.Field{Spec: fieldMessage, Depth: 2, Bit: uint32(m.Bit), Bits: uint32(max(m.End-m.Bit, 0))}
	if b != nil && m.Read {
		f.Note = b.Name(m.Type)
	}
	t.d.Add(f)
	if y.Channels[e.Channel].Type == wire.ReliableOrdered {
		t.d.Add(dissect.Field{Spec: fieldMessageID, Depth: 3, Uint: uint64(m.ID)})
	}
	if m.Body == 0 {
		return // its type was not reached
	}
	t.d.Add(dissect.Field{
		Spec: fieldMessageType, Depth: 3, Bit: uint32(m.Bit), Bits: uint32(m.Body - m.Bit),
		Uint: uint64(m.Type),
	})
	if !m.Read {
		return
	}
	t.bodyOf(m.Type, m.Body, m.End, b)
	if m.BlockLen > 0 {
		t.d.Add(dissect.Field{
			Spec: fieldBlockData, Depth: 3, Bit: uint32(m.BlockOffset) * 8, Bits: uint32(m.BlockLen) * 8,
			Bytes: t.b[m.BlockOffset : m.BlockOffset+m.BlockLen],
		})
	}
}

// bodyOf adds a body: its fields by the schema, or its bytes.
func (t *tree) bodyOf(kind uint32, from, to int, b *bodies) {
	if b != nil && b.byType[kind] != nil {
		b.fields(t, kind, from, 3) //nolint:errcheck // Parse has read it without one
		return
	}
	if t.layout != nil {
		if head, count, ok := t.layout.Counted(kind); ok && from+head+count <= to {
			t.unread(from, from+head)
			from += head
			var r bits.Reader
			r.Reset(t.b, from)
			n, _ := r.Bits(count)
			t.d.Add(dissect.Field{Spec: fieldBodyLength, Depth: 3, Bit: uint32(from), Bits: uint32(count), Uint: n})
			t.unread(bits.Bytes(from+count)*8, to)
			return
		}
	}
	t.unread(from, to)
}

// unread adds the bits of a body that no schema reads.
func (t *tree) unread(from, to int) {
	if to > from {
		t.d.Add(dissect.Field{
			Spec: fieldBody, Depth: 3, Bit: uint32(from), Bits: uint32(to - from),
			Bytes: t.b[from/8 : bits.Bytes(to)],
		})
	}
}

func (t *tree) fragment(f *wire.BlockFragment, b *bodies) {
	if f.Size == 0 {
		return
	}
	t.d.Add(dissect.Field{Spec: fieldBlockMessage, Depth: 2, Uint: uint64(f.ID)})
	t.d.Add(dissect.Field{Spec: fieldBlockIndex, Depth: 2, Uint: uint64(f.Index)})
	t.d.Add(dissect.Field{Spec: fieldBlockCount, Depth: 2, Uint: uint64(f.Count)})
	if f.Offset == 0 {
		return
	}
	t.d.Add(dissect.Field{
		Spec: fieldBlockData, Depth: 2, Bit: uint32(f.Offset) * 8, Bits: uint32(f.Size) * 8,
		Bytes: t.b[f.Offset : f.Offset+f.Size],
	})
	if f.Read {
		t.d.Add(dissect.Field{Spec: fieldMessageType, Depth: 3, Uint: uint64(f.Type)})
		t.bodyOf(f.Type, f.Body, f.End, b)
	}
}

// info appends a packet's one-line description.
func (s *secured) info(ctx dissect.Context, dg *machine.Datagram, to []byte) []byte {
	outer := dissect.Context{Config: &dissect.Config{Profile: s.layers.Netcode}, From: ctx.From}
	var pk wire.Packet
	if s.layers.Netcode.Parse(dg.Bytes, dg.Length, &pk) != nil || pk.NetcodeType == wire.NetcodeRequestType {
		return Info(outer, dg, to)
	}
	plain, err := s.open(dg, &pk)
	if err != nil {
		return append(append(Info(outer, dg, to), ": "...), err.Error()...)
	}
	if pk.NetcodeType != wire.NetcodePayload {
		to = append(append(to, wire.NetcodeWord(pk.NetcodeType)...), ", counter "...)
		return strconv.AppendUint(to, pk.NetcodeSequence, 10)
	}
	inside := machine.Datagram{At: dg.At, Ref: dg.Ref, From: dg.From, Bytes: plain, Length: len(plain)}
	to = Info(dissect.Context{Config: &dissect.Config{Profile: s.layers.Reliable}, From: ctx.From}, &inside, to)
	config := s.connection(ctx.Config)
	if config == nil || s.layers.Reliable.Parse(plain, len(plain), &pk) != nil || pk.Kind != wire.KindRegular {
		return to
	}
	var p wire.ConnectionPacket
	err = config.Parse(plain[pk.PayloadOffset:], &p)
	for i := range p.Entries {
		e := &p.Entries[i]
		to = append(strconv.AppendInt(append(to, "; channel "...), int64(e.Channel), 10), ": "...)
		if e.Block {
			to = append(strconv.AppendUint(append(to, "block "...), uint64(e.Fragment.ID), 10), ", fragment "...)
			to = append(strconv.AppendInt(to, int64(e.Fragment.Index), 10), " of "...)
			to = strconv.AppendInt(to, int64(e.Fragment.Count), 10)
			continue
		}
		to = append(strconv.AppendInt(to, int64(e.Count), 10), " messages"...)
		if e.Count == 1 {
			to = to[:len(to)-1]
		}
		if e.Count > 0 && config.Channels[e.Channel].Type == wire.ReliableOrdered {
			to = strconv.AppendUint(append(to, " from id "...), uint64(p.Messages[e.First].ID), 10)
		}
	}
	var malformed *common.ParseError
	if errors.As(err, &malformed) {
		to = append(append(to, "; malformed: "...), err.Error()...)
	}
	return to
}
