package riptide

import (
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/wire"
)

// Append appends a message to dst: the header from m, then the first bodyBits bits of body. The low
// bit of a byte comes first. In the byte-aligned forms bodyBits must be a multiple of 8. Optional
// fields are written where m says that it has them. Append does not read m.Value, m.BodyBit and
// m.BodyBits. Unused bits of the last byte are zero. The error, a *wire.ParseError, names the field
// of m that the dialect cannot write.
func (c Codec) Append(dst []byte, m *Message, body []byte, bodyBits int) ([]byte, error) {
	word, width, err := c.header(m)
	if err != nil {
		return dst, err
	}
	if c.Dialect.Form == ByteAligned && bodyBits%8 != 0 {
		return dst, &wire.ParseError{
			Field: "body", Bit: width, Err: wire.ErrRange, Expected: "whole bytes",
			Found: fmt.Sprint(bodyBits, " bits"),
		}
	}
	if bodyBits > len(body)*8 {
		return dst, &wire.ParseError{
			Field: "body", Bit: width, Err: wire.ErrShort, Expected: fmt.Sprint(bodyBits, " bits"),
			Found: fmt.Sprint(len(body) * 8),
		}
	}
	for ; width >= 8; width -= 8 {
		dst = append(dst, byte(word))
		word >>= 8
	}
	if width == 0 {
		dst = append(dst, body[:(bodyBits+7)/8]...)
		if bodyBits%8 != 0 {
			dst[len(dst)-1] &= 1<<(bodyBits%8) - 1
		}
		return dst, nil
	}
	// word holds the width bits of the header that do not fill a byte.
	for i := 0; bodyBits > 0; i++ {
		n := min(bodyBits, 8)
		word |= uint64(body[i]&(1<<n-1)) << width
		width += n
		bodyBits -= n
		if width >= 8 {
			dst = append(dst, byte(word))
			word >>= 8
			width -= 8
		}
	}
	if width > 0 {
		dst = append(dst, byte(word))
	}
	return dst, nil
}

// header returns the header as one little-endian number, and its width in bits.
func (c Codec) header(m *Message) (word uint64, width int, err error) {
	value, ok := c.Dialect.Value(m.Type)
	if !ok {
		return 0, 0, &wire.ParseError{
			Field: "type", Err: wire.ErrRange, Expected: "a type of dialect " + c.Dialect.Name,
			Found: m.Type.String(),
		}
	}
	l := c.Dialect.layouts[m.Type]
	if m.Type == Notify && c.NotifyHeader && c.Dialect.BareNotify() {
		l = bytesNotify
	}
	word, width = uint64(value), c.Dialect.Form.typeBits()
	for _, s := range l.Slots {
		if s.Presence == IfRoom && !m.has(s.Field) {
			break
		}
		v := m.get(s.Field)
		n := int(s.Bits)
		if n == 0 {
			group, used := appendID(v)
			word |= group << width
			width += used
			continue
		}
		if n < 16 && v>>n != 0 {
			return 0, 0,
				&wire.ParseError{
					Field: s.Field.String(), Bit: width, Err: wire.ErrRange, Expected: fmt.Sprint(n, " bits"),
					Found: fmt.Sprint(v),
				}
		}
		if c.BigEndian && n == 16 && c.Dialect.Form == ByteAligned {
			v = bits.ReverseBytes16(v)
		}
		word |= uint64(v) << width
		width += n
	}
	return word, width, nil
}

// appendID returns a message id as a varint in the low bits of a number.
func appendID(id uint16) (groups uint64, used int) {
	v := uint64(id)
	for v >= 128 {
		groups |= (v&127 | 128) << used
		v >>= 7
		used += 8
	}
	return groups | v<<used, used + 8
}

// AppendFrame appends the length prefix of a message of n bytes to dst. Over TCP it stands before
// each message. size is 2 or 4 bytes.
func (c Codec) AppendFrame(dst []byte, size, n int) ([]byte, error) {
	if size != 2 && size != 4 || n < 0 || size == 2 && n > 0xffff || n > 1<<31-1 {
		return dst, &wire.ParseError{
			Field: "length", Err: wire.ErrRange,
			Expected: fmt.Sprint("a length that fits in ", size, " bytes"), Found: fmt.Sprint(n),
		}
	}
	for i := range size {
		shift := 8 * i
		if c.BigEndian {
			shift = 8 * (size - 1 - i)
		}
		dst = append(dst, byte(n>>shift))
	}
	return dst, nil
}
