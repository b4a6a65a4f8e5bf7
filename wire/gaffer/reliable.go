package gaffer

import (
	"encoding/binary"
	"math/bits"

	"github.com/ackscope/ackscope/wire"
)

// Bits of reliable's prefix byte.
const (
	prefixFragment = 1 << 0
	prefixAckBits  = 1 << 1 // this bit and the three above: that byte of ack_bits is sent
	prefixNear     = 1 << 5 // ack is sent as sequence minus ack, in one byte
	prefixUnused   = 3 << 6
)

const (
	reliableLeast = 4 // bytes of the shortest header
	reliableMost  = 9
)

// FragmentHeaderLen is the length of reliable's fragment header, in bytes.
const FragmentHeaderLen = 5

// These errors are allocated once: hostile or foreign datagrams cause them all the
// time.
var (
	errReliableShort = &wire.ParseError{Field: "prefix", Expected: "at least 4 bytes", Err: wire.ErrShort}
	errReliableAck   = &wire.ParseError{
		Field: "ack", Bit: 3 * 8,
		Expected: "the ack and ack_bits bytes that the prefix announces", Err: wire.ErrShort,
	}
	errFragmentShort  = &wire.ParseError{Field: "prefix", Expected: "at least 5 bytes", Err: wire.ErrShort}
	errFragmentPrefix = &wire.ParseError{Field: "prefix", Expected: "0x01, as every fragment's", Err: wire.ErrRange}
	errFragmentID     = &wire.ParseError{
		Field: "fragment.id", Bit: 3 * 8, Expected: "less than fragment.count",
		Err: wire.ErrRange,
	}
	errFragmentCount = &wire.ParseError{
		Field: "fragment.count", Bit: 4 * 8, Expected: "at most max_fragments",
		Err: wire.ErrRange,
	}
	errInnerPrefix = &wire.ParseError{
		Field: "prefix", Bit: 5 * 8, Expected: "a regular header in fragment 0",
		Err: wire.ErrRange,
	}
	errInnerSequence = &wire.ParseError{Field: "sequence", Bit: 6 * 8, Expected: "the fragment's own", Err: wire.ErrRange}
	errInnerForm     = &wire.ParseError{Field: "prefix", Bit: 5 * 8, Err: wire.ErrNotCanonical}
	errInnerShort    = &wire.ParseError{
		Field: "header", Bit: 5 * 8, Expected: "a whole header in fragment 0",
		Err: wire.ErrShort,
	}
)

// reliableLen returns the length of a regular header with a given prefix byte.
func reliableLen(prefix byte) int {
	n := 5 - int(prefix>>5&1)
	return n + bits.OnesCount8(prefix&(0xf*prefixAckBits))
}

// parseReliable reads
//
//	regular   [prefix 1][sequence 2][sequence-ack 1 | ack 2][ack_bits 0..4][payload]
//	fragment  [0x01][sequence 2][fragment id 1][count-1 1][fragment 0: regular header][data]
func (p *Profile) parseReliable(b []byte, wireLen int, out *Packet) error {
	if wireLen < 1 {
		return errReliableShort
	}
	if len(b) < 1 {
		return wire.ErrSnapped
	}
	if b[0]&prefixFragment == 0 {
		n, err := readReliable(b, wireLen, &out.Header)
		if err != nil {
			return err
		}
		out.HasHeader, out.HeaderLen = true, n
		out.Sequence = out.Header.Sequence
		out.PayloadOffset, out.PayloadLen = n, wireLen-n
		return nil
	}
	out.Kind = KindFragment
	switch {
	case wireLen < FragmentHeaderLen:
		return errFragmentShort
	case b[0] != prefixFragment:
		return errFragmentPrefix
	case len(b) < FragmentHeaderLen:
		return wire.ErrSnapped
	}
	out.Sequence = uint32(binary.LittleEndian.Uint16(b[1:]))
	out.FragmentID, out.FragmentCount = int(b[3]), int(b[4])+1
	out.PayloadOffset, out.PayloadLen = FragmentHeaderLen, wireLen-FragmentHeaderLen
	if out.FragmentID >= out.FragmentCount {
		return errFragmentID
	}
	if p.MaxFragments > 0 && out.FragmentCount > p.MaxFragments {
		return errFragmentCount
	}
	if out.FragmentID != 0 {
		return nil
	}
	inner := b[FragmentHeaderLen:]
	n, err := readReliable(inner, wireLen-FragmentHeaderLen, &out.Header)
	switch {
	case err == wire.ErrSnapped:
		return err
	case err != nil:
		return errInnerShort
	case inner[0]&prefixFragment != 0:
		return errInnerPrefix
	case out.Header.Sequence != out.Sequence:
		return errInnerSequence
	case !canonical(inner[0], out.Header):
		return errInnerForm
	}
	out.HasHeader, out.HeaderOffset, out.HeaderLen = true, FragmentHeaderLen, n
	out.PayloadOffset += n
	out.PayloadLen -= n
	return nil
}

func readReliable(b []byte, wireLen int, h *Header) (int, error) {
	if wireLen < reliableLeast {
		return 0, errReliableShort
	}
	if len(b) < 1 {
		return 0, wire.ErrSnapped
	}
	prefix := b[0]
	n := reliableLen(prefix)
	if wireLen < n {
		return 0, errReliableAck
	}
	if len(b) < n {
		return 0, wire.ErrSnapped
	}
	sequence := binary.LittleEndian.Uint16(b[1:])
	h.Sequence = uint32(sequence)
	i := 4
	if prefix&prefixNear != 0 {
		h.Ack = uint32(sequence - uint16(b[3]))
	} else {
		h.Ack = uint32(binary.LittleEndian.Uint16(b[3:]))
		i = 5
	}
	ackBits := ^uint32(0)
	for k := 0; k < 4; k++ {
		if prefix>>k&prefixAckBits != 0 {
			ackBits ^= uint32(^b[i]) << (8 * k)
			i++
		}
	}
	h.AckBits = uint64(ackBits)
	return n, nil
}

// InFragmentHeader reports whether an error of Parse is about the header inside fragment 0.
// It is the header of another packet, or reliable does not write it in this form.
func InFragmentHeader(err error) bool {
	return err == errInnerSequence || err == errInnerForm || err == errInnerPrefix
}

// canonical reports whether reliable writes a header of these values with this prefix
// byte.
func canonical(prefix byte, h Header) bool { return prefix == CanonicalPrefix(h) }

// CanonicalPrefix returns the prefix byte that reliable writes before a regular header.
func CanonicalPrefix(h Header) byte {
	var prefix byte
	for k := 0; k < 4; k++ {
		if byte(h.AckBits>>(8*k)) != 0xff {
			prefix |= prefixAckBits << k
		}
	}
	if uint16(h.Sequence-h.Ack) <= 255 {
		prefix |= prefixNear
	}
	return prefix
}

// appendReliable appends a header as reliable writes it.
func appendReliable(to []byte, h Header) []byte {
	prefix := CanonicalPrefix(h)
	to = append(to, prefix, byte(h.Sequence), byte(h.Sequence>>8))
	if prefix&prefixNear != 0 {
		to = append(to, byte(h.Sequence-h.Ack))
	} else {
		to = append(to, byte(h.Ack), byte(h.Ack>>8))
	}
	for k := 0; k < 4; k++ {
		if prefix>>k&prefixAckBits != 0 {
			to = append(to, byte(h.AckBits>>(8*k)))
		}
	}
	return to
}

// Canonical reports whether a datagram's header is written as its library writes it.
// Only reliable's header has other forms. Its receiver accepts regular headers in any
// form, so there this is a finding. In fragment 0 it is an error of Parse.
func (p *Profile) Canonical(b []byte, pk *Packet) bool {
	if p.Form != FormReliable || !pk.HasHeader || pk.HeaderOffset >= len(b) {
		return true
	}
	return canonical(b[pk.HeaderOffset], pk.Header)
}
