package gaffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	mathbits "math/bits"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// settings returns the profile of a flow. It is nil if the flow is not of this
// protocol.
func settings(ctx dissect.Context) *wire.Profile {
	if ctx.Config == nil {
		return nil
	}
	p, _ := ctx.Config.Profile.(*wire.Profile)
	return p
}

// securedBy returns the keyed profile of a flow. It is nil if the flow has another
// profile.
func securedBy(ctx dissect.Context) *secured {
	if ctx.Config == nil {
		return nil
	}
	s, _ := ctx.Config.Profile.(*secured)
	return s
}

// Dissect takes a datagram apart down to the bit.
func Dissect(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection) {
	if s := securedBy(ctx); s != nil {
		s.dissect(ctx, dg, d)
		return
	}
	p := settings(ctx)
	if p == nil {
		return
	}
	length := max(dg.Length, len(dg.Bytes))
	t := tree{p: p, b: dg.Bytes, length: length, d: d}
	t.put(fieldGaffer, 0, 0, length*8, 0).Note = ctx.Config.Dialect
	err := p.Parse(dg.Bytes, dg.Length, &t.pk)
	if err == nil {
		t.made(fieldKind, uint64(t.pk.Kind))
	}
	switch p.Form {
	case wire.FormReliable:
		t.reliable()
	case wire.FormNetcode:
		t.netcode()
	default:
		t.fixed(err)
	}
	if err == nil {
		t.body()
	} else {
		t.problem(err)
	}
	d.Snapped = len(dg.Bytes) < length
}

// tree adds the fields of one datagram, as far as its bytes were captured.
type tree struct {
	p      *wire.Profile
	b      []byte
	length int // on the wire
	pk     wire.Packet
	d      *dissect.Dissection
	layout layout // of bodies that no schema reads; nil if nothing is known about them
}

// put adds a field of n bits at bit pos. It writes in place: a field is large, and a
// packet has many.
func (t *tree) put(spec *dissect.FieldSpec, depth uint8, pos, n int, v uint64) *dissect.Field {
	fields := t.d.Fields
	if len(fields) == cap(fields) {
		fields = slices.Grow(fields, 16)
	}
	fields = fields[:len(fields)+1]
	t.d.Fields = fields
	f := &fields[len(fields)-1]
	f.Spec, f.Depth, f.Bit, f.Bits, f.Uint, f.Bytes, f.Note = spec, depth, uint32(pos), uint32(n), v, nil, ""
	return f
}

// uint adds a field of n bytes at byte at, if they were captured.
func (t *tree) uint(spec *dissect.FieldSpec, at, n int, v uint64) {
	if at+n <= len(t.b) {
		t.put(spec, 1, at*8, n*8, v)
	}
}

// bytes adds a field of n bytes at byte at, with those that were captured.
func (t *tree) bytes(spec *dissect.FieldSpec, at, n int) {
	if n > 0 && at <= len(t.b) {
		t.put(spec, 1, at*8, n*8, 0).Bytes = t.b[at:min(at+n, len(t.b))]
	}
}

// made adds a field that is not on the wire.
func (t *tree) made(spec *dissect.FieldSpec, v uint64) { t.put(spec, 1, 0, 0, v) }

func (t *tree) ackBits(at, n int) {
	h := t.pk.Header
	t.put(fieldAckBits, 1, at*8, n*8, h.AckBits).Note = ackBitsNotes[mathbits.OnesCount64(h.AckBits)]
	if t.p.NothingReceived(h) {
		t.made(fieldNothing, 1)
	}
}

// reliable adds the headers of reliable: a fragment's, then a packet's.
func (t *tree) reliable() {
	if len(t.b) == 0 {
		return
	}
	at := 0
	if t.b[0]&1 != 0 {
		t.uint(fieldPrefix, 0, 1, uint64(t.b[0]))
		t.prefixBit(fieldPrefixFragment, 0, 0)
		t.put(fieldPrefixUnused, 2, 1, 7, uint64(t.b[0]>>1))
		if len(t.b) < 5 {
			return
		}
		t.uint(fieldSequence, 1, 2, uint64(t.pk.Sequence))
		t.uint(fieldFragmentID, 3, 1, uint64(t.pk.FragmentID))
		t.uint(fieldFragmentCount, 4, 1, uint64(t.pk.FragmentCount))
		at = 5
	}
	if !t.pk.HasHeader {
		return
	}
	prefix, h := t.b[at], t.pk.Header
	t.uint(fieldPrefix, at, 1, uint64(prefix))
	t.prefixBit(fieldPrefixFragment, at, 0)
	for i := range fieldPrefixByte {
		t.prefixBit(fieldPrefixByte[i], at, 1+i)
	}
	t.prefixBit(fieldPrefixNear, at, 5)
	t.put(fieldPrefixUnused, 2, at*8+6, 2, uint64(prefix>>6))
	t.uint(fieldSequence, at+1, 2, uint64(h.Sequence))
	n := 2
	if prefix>>5&1 != 0 {
		n = 1
	}
	t.uint(fieldAck, at+3, n, uint64(h.Ack))
	if n == 1 {
		t.put(fieldDifference, 2, (at+3)*8, 8, uint64(t.b[at+3]))
	}
	t.ackBits(at+3+n, t.pk.HeaderLen-3-n)
	if !t.p.Canonical(t.b, &t.pk) {
		t.made(fieldCanonical, 1)
	}
}

func (t *tree) prefixBit(spec *dissect.FieldSpec, at, bit int) {
	t.put(spec, 2, at*8+bit, 1, uint64(t.b[at]>>bit&1))
}

// fixed adds prefix and header of form fixed. If err is set, it adds the fields read
// before.
func (t *tree) fixed(err error) {
	at := 0
	for _, x := range t.p.Prefix {
		switch x {
		case wire.PrefixZero:
			if at < len(t.b) {
				t.uint(fieldZero, at, 1, uint64(t.b[at]))
			}
			at++
		case wire.PrefixID:
			if at+4 <= len(t.b) {
				id := binary.LittleEndian.Uint32(t.b[at:])
				if t.p.ByteOrder == wire.BigEndian {
					id = binary.BigEndian.Uint32(t.b[at:])
				}
				t.uint(fieldProtocolID, at, 4, uint64(id))
			}
			at += 4
		case wire.PrefixCRC32:
			t.crc(at)
			at += 4
		}
	}
	if t.pk.PayloadOffset == 0 && err != nil {
		return // the header was not reached
	}
	for _, f := range t.p.Header {
		n := f.Bits / 8
		switch f.Field {
		case wire.FieldSequence:
			t.uint(fieldSequence, at, n, uint64(t.pk.Sequence))
		case wire.FieldAck:
			t.uint(fieldAck, at, n, uint64(t.pk.Header.Ack))
		case wire.FieldAckBits:
			t.ackBits(at, n)
		}
		at += n
	}
}

func (t *tree) crc(at int) {
	if at+4 > len(t.b) {
		return
	}
	f := t.put(fieldCRC, 1, at*8, 32, uint64(binary.LittleEndian.Uint32(t.b[at:])))
	switch {
	case t.pk.CRCCheck == wire.Differs:
		f.Note = fmt.Sprintf("wrong: %#08x was expected", t.pk.CRCWant)
	case t.pk.CRCCheck == wire.Matches:
		f.Note = "right"
	case t.p.ProtocolID == nil:
		f.Note = "not checked: the protocol id is not known"
	case len(t.b) < t.length:
		f.Note = "not checked: the capture cut the datagram"
	}
	if t.pk.CRCCheck != wire.Unchecked {
		ok := uint64(0)
		if t.pk.CRCCheck == wire.Matches {
			ok = 1
		}
		t.made(fieldCRCOK, ok)
	}
	if t.p.ProtocolID != nil {
		t.made(fieldProtocolID, uint64(*t.p.ProtocolID))
	}
}

func (t *tree) netcode() {
	if len(t.b) == 0 {
		return
	}
	if t.b[0] == 0 {
		t.uint(fieldNetcodeType, 0, 1, 0)
		t.bytes(fieldNetcodeVersion, 1, t.pk.PayloadOffset-1)
		return
	}
	t.put(fieldNetcodeType, 1, 0, 4, uint64(t.b[0]&15))
	t.put(fieldNetcodeLength, 1, 4, 4, uint64(t.b[0]>>4))
	if n := t.pk.PayloadOffset - 1; n > 0 {
		t.uint(fieldNetcodeSequence, 1, n, t.pk.NetcodeSequence)
	}
}

// body adds what follows the header of a datagram that was read whole.
func (t *tree) body() {
	pk := &t.pk
	if pk.Kind == wire.KindEncrypted && pk.NetcodeType != 0 {
		t.bytes(fieldCiphertext, pk.PayloadOffset, pk.PayloadLen-16)
		t.bytes(fieldMAC, pk.PayloadOffset+pk.PayloadLen-16, 16)
		return
	}
	pos := (pk.HeaderOffset + pk.HeaderLen) * 8
	if t.p.Form == wire.FormFixed && pos < pk.PayloadOffset*8+pk.PayloadBit {
		t.frame()
	}
	switch {
	case pk.Kind == wire.KindHandshake:
		t.bytes(fieldFiller, pk.PayloadOffset, pk.PayloadLen)
	case pk.Kind == wire.KindRegular:
		t.payload()
	default:
		t.bytes(fieldPayload, pk.PayloadOffset, pk.PayloadLen)
	}
	if t.p.EndCheck && pk.Kind != wire.KindFragment {
		if at := pk.PayloadOffset + pk.PayloadLen; at+4 <= len(t.b) {
			t.uint(fieldEndCheck, at, 4, uint64(binary.LittleEndian.Uint32(t.b[at:])))
		}
	}
}

// frame adds the bit-packed fields between header and payload.
func (t *tree) frame() {
	pk, p := &t.pk, t.p
	pos := (pk.HeaderOffset + pk.HeaderLen) * 8
	if p.PacketTypes > 1 {
		n := bits.Required(0, uint64(p.PacketTypes-1))
		spec := fieldType
		if pk.Kind == wire.KindHandshake {
			spec = fieldHandshake
		}
		pos = t.packed(spec, pos, n, uint64(pk.Type))
	}
	switch pk.Kind {
	case wire.KindFragment:
		pos = t.packed(fieldFragmentID, pos, 8, uint64(pk.FragmentID))
		pos = t.packed(fieldFragmentCount, pos, 8, uint64(pk.FragmentCount))
	case wire.KindSlice, wire.KindSliceAck:
		idBits := bits.Required(0, uint64(p.Slices-1))
		pos = t.packed(fieldSliceChunk, pos, 16, uint64(pk.Chunk))
		if pk.Kind == wire.KindSlice {
			pos = t.packed(fieldSliceID, pos, idBits, uint64(pk.SliceID))
		}
		pos = t.packed(fieldSliceCount, pos, idBits, uint64(pk.SliceCount))
		if pk.Kind == wire.KindSliceAck {
			for i := 0; i < pk.SliceCount; i += 64 {
				pos = t.packed(fieldSliceAcked, pos, min(pk.SliceCount-i, 64), pk.SliceAcked[i/64])
			}
		} else if pk.SliceID == pk.SliceCount-1 {
			pos = t.packed(fieldSliceBytes, pos, bits.Required(1, uint64(p.SliceSize)), uint64(pk.PayloadLen))
		}
	case wire.KindHandshake:
		pos = t.packed(fieldClientSalt, pos, 64, pk.ClientSalt)
		switch pk.Handshake {
		case wire.ConnectRequest:
		case wire.ConnectDenied:
			pos = t.packed(fieldReason, pos, 1, uint64(pk.DenyReason))
		default:
			pos = t.packed(fieldChallengeSalt, pos, 64, pk.ChallengeSalt)
		}
	default:
		if p.PayloadLengthBits > 0 {
			pos = t.packed(fieldPayloadLength, pos, p.PayloadLengthBits, uint64(pk.PayloadLen))
		}
	}
	if n := pk.PayloadOffset*8 + pk.PayloadBit - pos; n > 0 && n < 8 {
		t.packed(fieldPadding, pos, n, 0)
	}
}

// packed adds a field of n bits at bit pos. It returns the bit after it.
func (t *tree) packed(spec *dissect.FieldSpec, pos, n int, v uint64) int {
	t.put(spec, 1, pos, n, v)
	return pos + n
}

// problem records what is wrong with the datagram. A cut capture is no such problem.
func (t *tree) problem(err error) {
	var malformed *common.ParseError
	if errors.As(err, &malformed) && t.d.Problem == nil {
		t.d.Problem = malformed
	}
}
