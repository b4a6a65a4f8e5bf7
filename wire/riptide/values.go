package riptide

import (
	"fmt"
	"math"
	mathbits "math/bits"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// Reader reads the values of a message's body one after the other, as the application that wrote
// them would. Nothing on the wire says what they are. If a value cannot be read, the position does
// not change. The error is wire.ErrShort where the message ends, and wire.ErrSnapped where the
// capture cut it.
type Reader struct {
	codec Codec
	data  []byte
	bits  bits.Reader
	end   int // first bit after the body on the wire
}

// Values returns a reader of m's body; b is the message that m was parsed from.
func (c Codec) Values(b []byte, m *Message) Reader {
	r := Reader{codec: c, end: m.BodyBit + m.BodyBits}
	if len(b)*8 > r.end {
		b = b[:(r.end+7)/8]
	}
	r.data = b
	r.bits.Reset(b, m.BodyBit)
	return r
}

// Pos returns the position in bits from the first bit of the message.
func (r *Reader) Pos() int { return r.bits.Pos() }

// Left returns the number of bits to the end of the body on the wire. In the bit-packed form up to
// 7 of them are padding.
func (r *Reader) Left() int { return r.end - r.bits.Pos() }

// Whole reports whether everything has been read. In the bit-packed form zeros of padding may be
// left.
func (r *Reader) Whole() bool {
	left := r.Left()
	if left >= 8 || r.codec.Dialect.Form == ByteAligned && left > 0 {
		return false
	}
	peek := r.bits
	v, ok := peek.Bits(left)
	return ok && v == 0
}

// Seek moves to a position that Pos returned.
func (r *Reader) Seek(pos int) { r.bits.Reset(r.data, pos) }

// short returns the error for a value that is missing.
func (r *Reader) short(what string, need int) error {
	e := &wire.ParseError{Field: what, Bit: r.Pos(), Err: missing(r.Pos()+need, r.end)}
	if need > 0 && e.Err == wire.ErrShort {
		e.Expected = fmt.Sprintf("%d bits", need)
		e.Found = fmt.Sprint(max(r.Left(), 0))
	}
	return e
}

// Uint reads an unsigned number of 8, 16, 32 or 64 bits.
func (r *Reader) Uint(width int) (uint64, error) {
	v, ok := r.bits.Bits(width)
	if !ok {
		return 0, r.short("value", width)
	}
	return r.codec.order(v, width), nil
}

// order reverses the bytes of a number where the build is big-endian.
func (c Codec) order(v uint64, width int) uint64 {
	if c.BigEndian && c.Dialect.Form == ByteAligned {
		return mathbits.ReverseBytes64(v) >> (64 - width)
	}
	return v
}

// Int reads a two's complement number of 8, 16, 32 or 64 bits.
func (r *Reader) Int(width int) (int64, error) {
	v, err := r.Uint(width)
	return int64(v<<(64-width)) >> (64 - width), err
}

// Float reads an IEEE 754 number of 32 or 64 bits.
func (r *Reader) Float(width int) (float64, error) {
	v, err := r.Uint(width)
	if width == 32 {
		return float64(math.Float32frombits(uint32(v))), err
	}
	return math.Float64frombits(v), err
}

// Bool reads a bool: one bit, or a byte of which only 1 is true. The result canonical is false for
// a byte that is neither 0 nor 1.
func (r *Reader) Bool() (value, canonical bool, err error) {
	width := r.codec.boolBits()
	v, ok := r.bits.Bits(width)
	if !ok {
		return false, false, r.short("bool", width)
	}
	return v == 1, v <= 1, nil
}

func (c Codec) boolBits() int {
	if c.Dialect.Form == BitPacked {
		return 1
	}
	return 8
}

// Bools reads n bools without their length, and appends them to dst. They take n bits; in the
// byte-aligned forms they fill whole bytes.
func (r *Reader) Bools(dst []bool, n int) ([]bool, error) {
	width := r.codec.boolsBits(n)
	if n < 0 || width > r.bits.Left() {
		return dst, r.short("bool[]", width)
	}
	for range n {
		v, _ := r.bits.Bits(1)
		dst = append(dst, v == 1)
	}
	_, _ = r.bits.Bits(width - n)
	return dst, nil
}

// boolsBits returns the bits that n bools take without their length.
func (c Codec) boolsBits(n int) int {
	if c.Dialect.Form == BitPacked {
		return n
	}
	return (n + 7) / 8 * 8
}

// MaxLength is the largest length that the byte-aligned forms can write.
const MaxLength = 1<<15 - 1

// Length reads the length before an array or a text. In the bit-packed form it is a varint.
// Otherwise it is one byte, or two where the first has its top bit set.
func (r *Reader) Length() (int, error) {
	if r.Packed() {
		start := r.bits
		v, err := r.VarUint()
		if err == nil && v > math.MaxInt32 {
			r.bits = start
			return 0, &wire.ParseError{
				Field: "length", Bit: r.Pos(), Err: wire.ErrRange, Expected: "at most 2147483647",
				Found: fmt.Sprint(v),
			}
		}
		return int(v), err
	}
	n, ok := r.TryLength()
	if !ok {
		return 0, r.short("length", min(r.bits.Left(), 8)+8)
	}
	return n, nil
}

// Raw reads n bits, 1 to 64, as one number. The library writes them with AddBits.
func (r *Reader) Raw(n int) (uint64, error) {
	v, ok := r.bits.Bits(n)
	if !ok {
		return 0, r.short("bits", n)
	}
	return v, nil
}

// Bytes reads n bytes from any bit on, and appends them to dst.
func (r *Reader) Bytes(dst []byte, n int) ([]byte, error) {
	if n < 0 || n > r.bits.Left()/8 {
		return dst, r.short("bytes", n*8)
	}
	if b, ok := r.bits.Bytes(n); ok {
		return append(dst, b...), nil
	}
	for ; n >= 8; n -= 8 {
		v, _ := r.bits.Bits(64)
		dst = append(dst, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
	}
	for ; n > 0; n-- {
		v, _ := r.bits.Bits(8)
		dst = append(dst, byte(v))
	}
	return dst, nil
}

// Text reads a text after its length, and appends it to dst. It is UTF-8, which is not checked.
func (r *Reader) Text(dst []byte) ([]byte, error) {
	start := r.bits
	n, err := r.Length()
	if err == nil {
		if dst, err = r.Bytes(dst, n); err == nil {
			return dst, nil
		}
	}
	r.bits = start
	return dst, err
}

// maxGroups is the number of groups that a 64-bit varint takes.
const maxGroups = 10

// VarUint reads a VarULong: groups of 7 bits, the low group first. The top bit of a group is set
// where more follow.
func (r *Reader) VarUint() (uint64, error) {
	v, ok := r.TryVarUint()
	if ok {
		return v, nil
	}
	if left := r.bits.Left() / 8; left < maxGroups {
		return 0, r.short("varint", 8*(left+1))
	}
	return 0, &wire.ParseError{Field: "varint", Bit: r.Pos(), Err: wire.ErrRange, Expected: "64 bits in at most 10 groups"}
}

// VarInt reads a VarLong: zigzag (0, -1, 1, -2, ...) in a VarULong. The library itself reads
// magnitudes of 2^62 and more wrongly, although the bytes are right.
func (r *Reader) VarInt() (int64, error) {
	v, err := r.VarUint()
	return int64(v>>1) ^ -int64(v&1), err
}

// Packed reports whether values begin at any bit.
func (r *Reader) Packed() bool { return r.codec.Dialect.Form == BitPacked }

// The Try and Skip methods only report whether they could read. They serve a search, which fails
// more often than not.

// Skip skips n bits.
func (r *Reader) Skip(n int) bool {
	if n < 0 || n > r.bits.Left() {
		return false
	}
	r.bits.Reset(r.data, r.bits.Pos()+n)
	return true
}

// BoolsBits returns the bits that n bools take without their length.
func (r *Reader) BoolsBits(n int) int { return r.codec.boolsBits(n) }

// TryRaw reads n bits.
func (r *Reader) TryRaw(n int) (uint64, bool) { return r.bits.Bits(n) }

// TryVarUint reads a VarULong.
func (r *Reader) TryVarUint() (v uint64, ok bool) {
	start := r.bits
	for i := range maxGroups {
		group, ok := r.bits.Bits(8)
		if !ok || i == maxGroups-1 && group > 1 {
			break
		}
		v |= group & 127 << (7 * i)
		if group < 128 {
			return v, true
		}
	}
	r.bits = start
	return 0, false
}

// TryLength reads the length before an array or a text.
func (r *Reader) TryLength() (n int, ok bool) {
	if r.Packed() {
		v, ok := r.TryVarUint()
		return int(v), ok && v <= math.MaxInt32
	}
	start := r.bits
	high, ok := r.bits.Bits(8)
	if !ok || high < 128 {
		return int(high), ok
	}
	low, ok := r.bits.Bits(8)
	if !ok {
		r.bits = start
	}
	return int(high&127)<<8 | int(low), ok
}

// Writer writes the values of a body. Codec.Append takes its Body and Bits.
type Writer struct {
	codec Codec
	bits  bits.Writer
	fault error
}

// Writer returns an empty writer. It overwrites the memory of to.
func (c Codec) Writer(to []byte) Writer { return Writer{codec: c, bits: bits.NewWriter(to[:0])} }

// Body returns what was written. The low bit of a byte comes first.
func (w *Writer) Body() []byte { return w.bits.Data() }

// Bits returns how much was written, in bits.
func (w *Writer) Bits() int { return w.bits.Pos() }

// Err returns the error of the first value that the form cannot hold. That value was left out.
func (w *Writer) Err() error { return w.fault }

func (w *Writer) fail(what, expected string, found any) {
	if w.fault == nil {
		w.fault = &wire.ParseError{
			Field: what, Bit: w.Bits(), Err: wire.ErrRange, Expected: expected,
			Found: fmt.Sprint(found),
		}
	}
}

// Uint writes an unsigned number of 8, 16, 32 or 64 bits.
func (w *Writer) Uint(v uint64, width int) {
	if width < 64 {
		v &= 1<<width - 1
	}
	w.bits.Bits(w.codec.order(v, width), width)
}

// Int writes a two's complement number of 8, 16, 32 or 64 bits.
func (w *Writer) Int(v int64, width int) { w.Uint(uint64(v), width) }

// Float writes an IEEE 754 number of 32 or 64 bits.
func (w *Writer) Float(v float64, width int) {
	if width == 32 {
		w.Uint(uint64(math.Float32bits(float32(v))), 32)
		return
	}
	w.Uint(math.Float64bits(v), 64)
}

// Bool writes a bool.
func (w *Writer) Bool(v bool) { w.bits.Bits(oneIf(v), w.codec.boolBits()) }

func oneIf(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// Bools writes bools without their length.
func (w *Writer) Bools(v []bool) {
	for _, b := range v {
		w.bits.Bits(oneIf(b), 1)
	}
	w.bits.Bits(0, w.codec.boolsBits(len(v))-len(v))
}

// Length writes the length before an array or a text.
func (w *Writer) Length(n int) {
	switch {
	case n < 0:
		w.fail("length", "a length", n)
	case w.codec.Dialect.Form == BitPacked:
		w.VarUint(uint64(n))
	case n > MaxLength:
		w.fail("length", fmt.Sprint("at most ", MaxLength), n)
	case n > 127:
		w.bits.Bits(uint64(n)>>8|128, 8)
		w.bits.Bits(uint64(n), 8)
	default:
		w.bits.Bits(uint64(n), 8)
	}
}

// Raw writes the low n bits of v, 1 to 64, as AddBits does. The byte-aligned forms have no such
// value.
func (w *Writer) Raw(v uint64, n int) {
	if w.codec.Dialect.Form == ByteAligned {
		w.fail("bits", "a value of whole bytes", fmt.Sprint(n, " bits"))
		return
	}
	w.bits.Bits(v, n)
}

// Bytes writes bytes without their length, from any bit on.
func (w *Writer) Bytes(b []byte) {
	for _, v := range b {
		w.bits.Bits(uint64(v), 8)
	}
}

// Text writes a text after its length.
func (w *Writer) Text(s string) {
	w.Length(len(s))
	for i := range len(s) {
		w.bits.Bits(uint64(s[i]), 8)
	}
}

// VarUint writes a VarULong.
func (w *Writer) VarUint(v uint64) {
	for v >= 128 {
		w.bits.Bits(v&127|128, 8)
		v >>= 7
	}
	w.bits.Bits(v, 8)
}

// VarInt writes a VarLong.
func (w *Writer) VarInt(v int64) { w.VarUint(uint64(v)<<1 ^ uint64(v>>63)) }
