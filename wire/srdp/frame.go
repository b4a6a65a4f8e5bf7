package srdp

import (
	"encoding/binary"
	"fmt"

	"github.com/ackscope/ackscope/wire"
)

// MaxFrame is the longest packet that is believed on a stream: what a prefix of
// two bytes can say. The document's limits are smaller; a packet that breaks them
// is still one.
const MaxFrame = 1<<16 - 1

// AppendFrame writes the length of a packet of n bytes, as it stands before each
// on a stream, behind dst. The error, a *wire.ParseError, is of a length that no
// packet has.
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

// NextFrame splits the first packet off a stream, of at most most bytes. ok is
// false where b does not hold all of it yet. The error, a *wire.ParseError, says
// that the stream cannot be framed so: where the next packet begins is then
// unknown.
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
	return &wire.ParseError{Field: "length", Err: wire.ErrRange, Expected: fmt.Sprint("at most ", most),
		Found: fmt.Sprint(n)}
}
