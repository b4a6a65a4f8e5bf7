// Package bits reads, writes and measures fields of any width in bits. The
// first field occupies the lowest bits of the first byte. Words are
// little-endian, so that 32-bit and 64-bit words produce the same bytes.
//
//	fields a (3 bits), b (7 bits), c (6 bits)
//	byte 0: b4 b3 b2 b1 b0 a2 a1 a0     byte 1: c5 c4 c3 c2 c1 c0 b6 b5
//	        bit 7              bit 0
//
// Sources: the articles "Reading and Writing Packets" and "Serialization
// Strategies" by Glenn Fiedler, and the serialize library 1.6.0.
package bits

import (
	"encoding/binary"
	mathbits "math/bits"
)

// Required returns how many bits an integer in [least, most] needs. It returns
// 0 when the range holds a single value.
func Required(least, most uint64) int { return mathbits.Len64(most - least) }

// Bytes returns how many bytes hold n bits.
func Bytes(n int) int { return (n + 7) / 8 }

// Reader reads fields off a slice. It never panics. When a read fails, it reads
// nothing and keeps its position.
type Reader struct {
	data []byte
	pos  int // in bits
}

// NewReader returns a reader at the first bit of b.
func NewReader(b []byte) Reader { return Reader{data: b} }

// Reset makes r read b, starting at bit pos.
func (r *Reader) Reset(b []byte, pos int) { r.data, r.pos = b, max(pos, 0) }

// Pos returns the position in bits from the start of the slice.
func (r *Reader) Pos() int { return r.pos }

// Left returns how many bits remain.
func (r *Reader) Left() int { return max(len(r.data)*8-r.pos, 0) }

// Bits reads n bits, 0 to 64. It returns false when fewer bits remain.
func (r *Reader) Bits(n int) (uint64, bool) {
	if n < 0 || n > 64 || n > r.Left() {
		return 0, false
	}
	if n == 0 {
		return 0, true
	}
	i, shift := r.pos>>3, r.pos&7
	r.pos += n
	mask := ^uint64(0) >> (64 - n)
	if i+8 <= len(r.data) {
		v := binary.LittleEndian.Uint64(r.data[i:]) >> shift
		if shift+n > 64 {
			v |= uint64(r.data[i+8]) << (64 - shift)
		}
		return v & mask, true
	}
	var v uint64
	for k := 0; k < shift+n; k += 8 {
		b := uint64(r.data[i+k/8])
		if k >= shift {
			v |= b << (k - shift)
		} else {
			v |= b >> shift
		}
	}
	return v & mask, true
}

// Align moves to the next byte boundary. It reports whether the skipped bits
// were all zero.
func (r *Reader) Align() (zero bool) {
	n := -r.pos & 7
	v, ok := r.Bits(n)
	return ok && v == 0
}

// Bytes returns the next n bytes, which alias the slice. It returns false when
// fewer bytes remain, or when the position is not on a byte boundary.
func (r *Reader) Bytes(n int) ([]byte, bool) {
	if r.pos&7 != 0 || n < 0 || n > r.Left()/8 {
		return nil, false
	}
	i := r.pos / 8
	r.pos += n * 8
	return r.data[i : i+n : i+n], true
}

// Writer appends fields to a slice.
type Writer struct {
	data []byte
	used int // bits written to the last byte; 0 when it is full
}

// NewWriter returns a writer that appends to b, starting at a byte boundary.
func NewWriter(b []byte) Writer { return Writer{data: b} }

// Data returns the slice with what was written. Unused bits of the last byte
// are zero.
func (w *Writer) Data() []byte { return w.data }

// Pos returns the position in bits from the start of the slice.
func (w *Writer) Pos() int { return len(w.data)*8 - (-w.used & 7) }

// Bits writes the low n bits of v. n is 0 to 64.
func (w *Writer) Bits(v uint64, n int) {
	if n < 64 {
		v &= 1<<max(n, 0) - 1
	}
	for n > 0 {
		if w.used == 0 {
			w.data = append(w.data, 0)
		}
		w.data[len(w.data)-1] |= byte(v << w.used)
		took := min(8-w.used, n)
		v >>= took
		n -= took
		w.used = (w.used + took) & 7
	}
}

// Align writes zero bits up to the next byte boundary.
func (w *Writer) Align() { w.used = 0 }

// Bytes aligns and then writes b.
func (w *Writer) Bytes(b []byte) {
	w.Align()
	w.data = append(w.data, b...)
}
