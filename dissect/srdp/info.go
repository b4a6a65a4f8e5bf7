package srdp

import (
	"errors"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Info appends one line for lists: "data id 5 order, 12 bytes", "ack id 5",
// "foreign, 48 bytes".
func Info(ctx dissect.Context, dg *machine.Datagram, to []byte) []byte {
	s := settingsOf(ctx.Config)
	length := max(dg.Length, len(dg.Bytes))
	if foreign(&s.Wire, dg.Bytes) {
		return appendBytes(append(to, "foreign"...), length)
	}
	var pk wire.Packet
	if !s.Wire.Fits(dg.Bytes, length, &pk) {
		err := s.Wire.Parse(dg.Bytes, length, &pk)
		if errors.Is(err, common.ErrSnapped) {
			return append(to, "cut by the capture's snap length before the end of its header"...)
		}
		to = append(to, "malformed: "...)
		return append(to, err.Error()...)
	}
	if pk.Ack {
		to = append(to, "ack id "...)
	} else {
		to = append(to, "data id "...)
	}
	to = strconv.AppendUint(to, uint64(pk.ID), 10)
	if s.Wire.Form == wire.Proxied {
		to = append(pk.Source.AddrPort().AppendTo(append(to, ' ')), "→"...)
		to = pk.Destination.AddrPort().AppendTo(to)
	}
	if s.Wire.Contradicts(&pk) {
		to = append(to, " command 0x"...)
		to = append(to, "0123456789abcdef"[pk.Command>>4], "0123456789abcdef"[pk.Command&15])
	}
	if pk.Ack {
		return to
	}
	return appendBytes(appendFlags(&s.Wire, pk.Flags, to), pk.PayloadLen)
}

// appendFlags appends the words for the flags that are set.
func appendFlags(p *wire.Profile, flags uint8, to []byte) []byte {
	if flags&p.Order != 0 {
		to = append(to, " order"...)
	}
	if flags&p.DontDuplicate != 0 {
		to = append(to, " dont-duplicate"...)
	}
	if rest := p.UnknownFlags(flags); rest != 0 {
		to = append(to, " flags 0x"...)
		to = strconv.AppendUint(to, uint64(rest), 16)
	}
	return to
}

func appendBytes(to []byte, n int) []byte {
	to = strconv.AppendInt(append(to, ", "...), int64(n), 10)
	return append(to, " bytes"...)
}
