package srdp

import (
	"encoding/binary"
	"fmt"

	"github.com/ackscope/ackscope/wire"
)

// MaxFrame is the longest packet accepted on a stream: the largest value of a
// 2-byte prefix. The document's limits are smaller, but a packet that breaks
// them is still a packet.
const MaxFrame = 1<<16 - 1

// AppendFrame appends the length of a packet of n bytes to dst, as it precedes
// the packet on a stream. It returns a *wire.ParseError when no packet can have
// that length.
func (p *Profile) AppendFrame(dst []byte, n int) ([]byte, error) {
	if n < 0 || n > MaxFrame {
		return dst, badLength(n, MaxFrame)
	}
	order := p.frameOrder()
	if p.FramePrefix == 4 {
		return order.AppendUint32(dst, uint32(n)), nil
	}
	return order.AppendUint16(dst, uint16(n)), nil
}

// NextFrame splits the first packet off a stream. It accepts a length of at
// most most bytes. ok is false while b does not hold the whole packet. The
// error, a *wire.ParseError, means that the stream cannot be framed: the start
// of the next packet is unknown.
func (p *Profile) NextFrame(b []byte, most int) (packet, rest []byte, ok bool, err error) {
	if len(b) < p.FramePrefix {
		return nil, b, false, nil
	}
	var n int
	if p.FramePrefix == 4 {
		n = int(p.frameOrder().Uint32(b))
	} else {
		n = int(p.frameOrder().Uint16(b))
	}
	if n > most {
		return nil, b, false, badLength(n, most)
	}
	if len(b) < p.FramePrefix+n {
		return nil, b, false, nil
	}
	b = b[p.FramePrefix:]
	return b[:n:n], b[n:], true, nil
}

type frameOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (p *Profile) frameOrder() frameOrder {
	if p.FrameLittleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

func badLength(n, most int) error {
	return &wire.ParseError{
		Field: "length", Err: wire.ErrRange, Expected: fmt.Sprint("at most ", most),
		Found: fmt.Sprint(n),
	}
}
