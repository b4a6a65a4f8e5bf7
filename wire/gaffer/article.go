package gaffer

import (
	"github.com/ackscope/ackscope/wire"
)

// fragment reads what follows type 0 in the fragmentation sample:
//
//	[crc32 4][sequence 2] | [type 2 bits = 0][fragment id 8][count 8][pad 6] | data
//
// A fragment has no end check. The joined data of all fragments is a whole packet,
// which has its own.
func (f *frame) fragment() error {
	out := f.out
	out.Kind = KindFragment
	id, err := f.bits("fragment.id", 8)
	if err != nil {
		return err
	}
	count, err := f.bits("fragment.count", 8)
	if err != nil {
		return err
	}
	out.FragmentID, out.FragmentCount = int(id), int(count)
	most := f.p.MaxFragments
	if most == 0 {
		most = 255
	}
	if count == 0 || int(count) > most {
		return f.fault("fragment.count", wire.ErrRange, want("1 to %d", most), count, 8)
	}
	if id >= count {
		return f.fault("fragment.id", wire.ErrRange, want("less than the count, %d", int(count)), id, 16)
	}
	if err := f.align(); err != nil {
		return err
	}
	out.PayloadOffset = f.r.Pos() / 8
	out.PayloadLen = f.wireLen - out.PayloadOffset
	if size := f.p.FragmentSize; size > 0 &&
		(out.PayloadLen > size || out.PayloadLen != size && id != count-1 || out.PayloadLen == 0) {
		return f.fault("payload", wire.ErrRange, want("%d bytes, fewer in the last fragment", size),
			uint64(out.PayloadLen), 0)
	}
	return nil
}

// slice reads type 0 of the large blocks sample:
//
//	[crc32 4] | [type 1 bit = 0][chunk id 16][slice id][count-1][last slice: bytes-1] pad | data | end check
func (f *frame) slice() error {
	out := f.out
	out.Kind = KindSlice
	chunk, err := f.bits("slice.chunk", 16)
	if err != nil {
		return err
	}
	out.Chunk = uint16(chunk)
	if out.SliceID, err = f.ranged("slice.id", 0, f.p.Slices-1); err != nil {
		return err
	}
	if out.SliceCount, err = f.ranged("slice.count", 1, f.p.Slices); err != nil {
		return err
	}
	if out.SliceID >= out.SliceCount {
		return f.fault("slice.id", wire.ErrRange, want("less than the count, %d", out.SliceCount), uint64(out.SliceID),
			2*f.p.plan.idBits)
	}
	n := f.p.SliceSize
	if out.SliceID == out.SliceCount-1 {
		if n, err = f.ranged("slice.bytes", 1, f.p.SliceSize); err != nil {
			return err
		}
	}
	if err := f.align(); err != nil {
		return err
	}
	return f.payload(n)
}

// sliceAck reads type 1 of the large blocks sample:
//
//	[crc32 4] | [type 1 bit = 1][chunk id 16][count-1][one bit a slice] pad | end check
func (f *frame) sliceAck() error {
	out := f.out
	out.Kind = KindSliceAck
	chunk, err := f.bits("slice.chunk", 16)
	if err != nil {
		return err
	}
	out.Chunk = uint16(chunk)
	if out.SliceCount, err = f.ranged("slice.count", 1, f.p.Slices); err != nil {
		return err
	}
	for i := 0; i < out.SliceCount; i += 64 {
		if out.SliceAcked[i/64], err = f.bits("slice.acked", min(out.SliceCount-i, 64)); err != nil {
			return err
		}
	}
	if err := f.align(); err != nil {
		return err
	}
	return f.payload(0)
}

// handshake reads the packets of the connect sample:
//
//	[0x00][crc32 4] | [type 3 bits][client salt 64][0: pad, 256 zero bytes | 1: reason 1 bit | 2..5: challenge salt 64] pad | end check
func (f *frame) handshake() error {
	out := f.out
	out.Kind = KindHandshake
	out.Handshake = HandshakeKind(out.Type)
	var err error
	if out.ClientSalt, err = f.bits("handshake.client_salt", 64); err != nil {
		return err
	}
	n := 0
	switch out.Handshake {
	case ConnectRequest:
		n = RequestPadding
	case ConnectDenied:
		reason, err := f.bits("handshake.reason", 1)
		if err != nil {
			return err
		}
		out.DenyReason = uint8(reason)
	default:
		if out.ChallengeSalt, err = f.bits("handshake.challenge_salt", 64); err != nil {
			return err
		}
	}
	if err := f.align(); err != nil {
		return err
	}
	at := f.r.Pos() / 8
	for i := at; i < min(at+n, len(f.b)); i++ {
		if f.b[i] != 0 {
			return f.error("handshake.padding", i*8, wire.ErrPadding, want("0x00"), want("%#02x", int(f.b[i])))
		}
	}
	return f.payload(n)
}
