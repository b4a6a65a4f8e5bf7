package gaffer

import (
	"errors"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Info appends a packet's one-line description for lists.
func Info(ctx dissect.Context, dg *machine.Datagram, to []byte) []byte {
	if s := securedBy(ctx); s != nil {
		return s.info(ctx, dg, to)
	}
	p := settings(ctx)
	if p == nil {
		return to
	}
	var pk wire.Packet
	if err := p.Parse(dg.Bytes, dg.Length, &pk); err != nil {
		if errors.Is(err, common.ErrSnapped) {
			return append(to, "cut by the capture's snap length before the end of its header"...)
		}
		to = append(to, "malformed: "...)
		return append(to, err.Error()...)
	}
	number := func(name string, v uint64) {
		to = append(append(to, name...), ' ')
		to = strconv.AppendUint(to, v, 10)
	}
	switch pk.Kind {
	case wire.KindFragment:
		number("seq", uint64(pk.Sequence))
		number(", fragment", uint64(pk.FragmentID))
		number(" of", uint64(pk.FragmentCount))
	case wire.KindSlice:
		number("block", uint64(pk.Chunk))
		number(", slice", uint64(pk.SliceID))
		number(" of", uint64(pk.SliceCount))
	case wire.KindSliceAck:
		number("block", uint64(pk.Chunk))
		to = append(to, ", received "...)
		for i := range pk.SliceCount {
			if pk.SliceCame(i) {
				to = append(to, '1')
			} else {
				to = append(to, '0')
			}
		}
		return to
	case wire.KindHandshake:
		to = append(append(to, "connection "...), pk.Handshake.String()...)
		to = append(to, ", client salt 0x"...)
		return strconv.AppendUint(to, pk.ClientSalt, 16)
	case wire.KindEncrypted:
		to = append(append(to, "encrypted "...), wire.NetcodeWord(pk.NetcodeType)...)
		if pk.NetcodeType != 0 {
			number(", counter", pk.NetcodeSequence)
		}
	default:
		if p.SequenceBits() != 0 {
			number("seq", uint64(pk.Sequence))
		}
		if p.PacketTypes > 1 {
			number(" type", uint64(pk.Type))
		}
	}
	if pk.HasHeader {
		number(" ack", uint64(pk.Header.Ack))
		to = append(to, " ack_bits 0x"...)
		digits := strconv.AppendUint(make([]byte, 0, 16), pk.Header.AckBits, 16)
		for i := len(digits); i < p.AckBitsWidth()/4; i++ {
			to = append(to, '0')
		}
		to = append(to, digits...)
	}
	to = append(to, ", "...)
	to = strconv.AppendInt(to, int64(pk.PayloadLen), 10)
	return append(to, " bytes"...)
}
