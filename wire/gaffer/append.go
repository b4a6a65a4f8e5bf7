package gaffer

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/wire/bits"
)

// AppendHeader appends what precedes the payload of a regular packet: prefix and
// header. It leaves a CRC zero: Append computes it over the whole datagram.
func (p *Profile) AppendHeader(to []byte, h Header) []byte {
	if p.Form == FormReliable {
		return appendReliable(to, h)
	}
	for _, x := range p.Prefix {
		switch x {
		case PrefixZero:
			to = append(to, 0)
		case PrefixID:
			var id uint32
			if p.ProtocolID != nil {
				id = *p.ProtocolID
			}
			to = p.appendField(to, uint64(id), 4)
		case PrefixCRC32:
			to = append(to, 0, 0, 0, 0)
		}
	}
	for _, f := range p.Header {
		switch f.Field {
		case FieldSequence:
			to = p.appendField(to, uint64(h.Sequence), f.Bits/8)
		case FieldAck:
			to = p.appendField(to, uint64(h.Ack), f.Bits/8)
		case FieldAckBits:
			to = p.appendField(to, h.AckBits, f.Bits/8)
		}
	}
	return to
}

// AppendFragment appends what precedes the data of a fragment of reliable: the fragment
// header and, in fragment 0, the packet's own header.
func AppendFragment(to []byte, h Header, id, count int) []byte {
	to = append(to, prefixFragment, byte(h.Sequence), byte(h.Sequence>>8), byte(id), byte(count-1))
	if id == 0 {
		to = appendReliable(to, h)
	}
	return to
}

// Append appends a whole datagram in this profile: the fields of pk around a payload.
// If the payload begins within a byte (pk.PayloadBit), the bits of its first byte below
// that bit are ignored. The CRC is computed with p.ProtocolID. If that id is unknown,
// the CRC is pk.CRC. Values that do not fit their fields are cut to the field's width.
// So pk should be a packet that Parse could return.
func (p *Profile) Append(to []byte, pk *Packet, payload []byte) []byte {
	start := len(to)
	switch p.Form {
	case FormReliable:
		if pk.Kind == KindFragment {
			h := pk.Header
			h.Sequence = pk.Sequence
			return append(AppendFragment(to, h, pk.FragmentID, pk.FragmentCount), payload...)
		}
		return append(appendReliable(to, pk.Header), payload...)
	case FormNetcode:
		return append(appendNetcode(to, pk), payload...)
	}
	h := pk.Header
	h.Sequence = pk.Sequence
	to = p.AppendHeader(to, h)
	if p.plan.whole {
		to = append(to, payload...)
	} else {
		w := bits.NewWriter(to)
		p.appendFrame(&w, pk, payload)
		to = w.Data()
		if p.EndCheck && (pk.Kind != KindFragment) {
			to = binary.LittleEndian.AppendUint32(to, EndCheck)
		}
	}
	if at := p.plan.crc; at >= 0 {
		crc := pk.CRC
		if p.ProtocolID != nil {
			crc = Checksum(*p.ProtocolID, to[start:], at)
		}
		binary.LittleEndian.PutUint32(to[start+at:], crc)
	}
	return to
}

func (p *Profile) appendFrame(w *bits.Writer, pk *Packet, payload []byte) {
	w.Bits(uint64(pk.Type), p.plan.typeBits)
	switch pk.Kind {
	case KindFragment:
		w.Bits(uint64(pk.FragmentID), 8)
		w.Bits(uint64(pk.FragmentCount), 8)
	case KindSlice:
		w.Bits(uint64(pk.Chunk), 16)
		w.Bits(uint64(pk.SliceID), p.plan.idBits)
		w.Bits(uint64(pk.SliceCount-1), p.plan.idBits)
		if pk.SliceID == pk.SliceCount-1 {
			w.Bits(uint64(len(payload)-1), bits.Required(1, uint64(p.SliceSize)))
		}
	case KindSliceAck:
		w.Bits(uint64(pk.Chunk), 16)
		w.Bits(uint64(pk.SliceCount-1), p.plan.idBits)
		for i := 0; i < pk.SliceCount; i += 64 {
			w.Bits(pk.SliceAcked[i/64], min(pk.SliceCount-i, 64))
		}
	case KindHandshake:
		w.Bits(pk.ClientSalt, 64)
		switch pk.Handshake {
		case ConnectRequest:
		case ConnectDenied:
			w.Bits(uint64(pk.DenyReason), 1)
		default:
			w.Bits(pk.ChallengeSalt, 64)
		}
	default:
		if p.PayloadLengthBits > 0 {
			w.Bits(uint64(len(payload)), p.PayloadLengthBits)
			break
		}
		if n := w.Pos() % 8; n != 0 && len(payload) > 0 {
			w.Bits(uint64(payload[0]>>n), 8-n)
			payload = payload[1:]
		}
	}
	w.Bytes(payload)
}

func (p *Profile) appendField(to []byte, v uint64, n int) []byte {
	for i := range n {
		shift := 8 * i
		if p.ByteOrder == BigEndian {
			shift = 8 * (n - 1 - i)
		}
		to = append(to, byte(v>>shift))
	}
	return to
}
