package riptide

import (
	mathbits "math/bits"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// Coding is how a codec's messages hold their values. It does for a schema what Reader and Writer
// do value by value.
type Coding struct {
	Codec
	EmptyShortArrays bool // as in Build
	LostBoolArrays   bool // as in Build
}

// CodingOf returns the coding of a sender that can be any of some builds. It has the faults that
// all of them have.
func CodingOf(c Codec, builds BuildSet) Coding {
	return Coding{
		Codec:            c,
		EmptyShortArrays: builds.All(func(b *Build) bool { return b.EmptyShortArrays }),
		LostBoolArrays:   builds.All(func(b *Build) bool { return b.LostBoolArrays }),
	}
}

// Lost reports what the builds leave off the wire in an array of a type: its items, its count.
func (k Coding) Lost(item string) (items, count bool) {
	switch item {
	case "int16", "uint16":
		return k.EmptyShortArrays, false
	case "bool":
		return k.LostBoolArrays, k.LostBoolArrays
	}
	return false, false
}

// Word codes a number of n bits. It is little-endian, or big-endian where the build is and the
// number has whole bytes.
func (k Coding) Word(c bits.Cursor, v *uint64, n int) error {
	turned := k.BigEndian && k.Dialect.Form == ByteAligned && n > 8 && n%8 == 0
	if turned && !c.Reading() {
		turn := mathbits.ReverseBytes64(*v) >> (64 - n)
		return c.Bits(&turn, n)
	}
	if err := c.Bits(v, n); err != nil || !turned {
		return err
	}
	*v = mathbits.ReverseBytes64(*v) >> (64 - n)
	return nil
}

// Bool codes a bool: a bit, or a byte of which only 1 reads as true.
func (k Coding) Bool(c bits.Cursor, v *uint64) error {
	if err := c.Bits(v, k.boolBits()); err != nil {
		return err
	}
	if *v != 1 {
		*v = 0
	}
	return nil
}

// BoolItem codes bool i of an array of n. Bools are packed. In the byte-aligned forms they are
// padded to whole bytes.
func (k Coding) BoolItem(c bits.Cursor, v *uint64, i, n int) error {
	if err := c.Bits(v, 1); err != nil {
		return err
	}
	if fill := k.boolsBits(n) - n; i == n-1 && fill > 0 {
		var zero uint64
		return c.Bits(&zero, fill)
	}
	return nil
}

// Count codes a length. Its width does not depend on the bounds.
func (k Coding) Count(c bits.Cursor, v *uint64, least, most uint64) error {
	n := *v
	if err := k.length(c, &n); err != nil {
		return err
	}
	if n < least || n > most {
		return wire.ErrRange
	}
	*v = n
	return nil
}

// MostCount is the largest length that schemas need not bound.
func (k Coding) MostCount() int64 { return MaxLength }

func (k Coding) length(c bits.Cursor, v *uint64) error {
	if k.Dialect.Form == BitPacked {
		return varuint(c, v)
	}
	if !c.Reading() {
		if *v > MaxLength {
			return wire.ErrRange
		}
		if *v <= 127 {
			return c.Bits(v, 8)
		}
	}
	high := *v>>8 | 128
	if err := c.Bits(&high, 8); err != nil {
		return err
	}
	if c.Reading() && high < 128 {
		*v = high
		return nil
	}
	low := *v & 255
	if err := c.Bits(&low, 8); err != nil {
		return err
	}
	*v = high&127<<8 | low
	return nil
}

// varuint codes a VarULong.
func varuint(c bits.Cursor, v *uint64) error {
	left, got := *v, uint64(0)
	for i := range maxGroups {
		group := left & 127
		if left >>= 7; left > 0 {
			group |= 128
		}
		if err := c.Bits(&group, 8); err != nil {
			return err
		}
		got |= group & 127 << (7 * i)
		if group < 128 {
			if i == maxGroups-1 && group > 1 {
				break
			}
			*v = got
			return nil
		}
	}
	return wire.ErrRange
}

// varint codes a VarLong, which v holds as two's complement.
func varint(c bits.Cursor, v *uint64) error {
	zigzag := *v<<1 ^ uint64(int64(*v)>>63)
	if err := varuint(c, &zigzag); err != nil {
		return err
	}
	*v = zigzag>>1 ^ -(zigzag & 1)
	return nil
}

// Bytes codes n bytes. They can begin at any bit.
func (k Coding) Bytes(c bits.Cursor, v *[]byte, n int) error {
	if c.Pos()%8 == 0 {
		return c.Bytes(v, n)
	}
	if !c.Reading() {
		for _, b := range *v {
			word := uint64(b)
			if err := c.Bits(&word, 8); err != nil {
				return err
			}
		}
		return nil
	}
	// The slice grows with the data: a false length must not cost memory.
	out := make([]byte, 0, min(n, 256))
	for range n {
		var word uint64
		if err := c.Bits(&word, 8); err != nil {
			return err
		}
		out = append(out, byte(word))
	}
	*v = out
	return nil
}

// Text codes a text after its length.
func (k Coding) Text(c bits.Cursor, v *[]byte, most int) error {
	n := uint64(len(*v))
	if err := k.Count(c, &n, 0, uint64(most)); err != nil {
		return err
	}
	return k.Bytes(c, v, int(n))
}

// Number returns the code of a number of variable width: varlong and varulong.
func (k Coding) Number(kind string) (code func(c bits.Cursor, v *uint64) error, signed, ok bool) {
	switch kind {
	case "varlong":
		return varint, true, true
	case "varulong":
		return varuint, false, true
	}
	return nil, false, false
}

// aliases maps the library's names of types to those of schemas, which have a width. Types of the
// Unity package are several numbers in a row.
var aliases = map[string]struct {
	is    string
	times int
}{
	"byte": {"uint8", 1}, "sbyte": {"int8", 1}, "short": {"int16", 1}, "ushort": {"uint16", 1},
	"int": {"int32", 1}, "uint": {"uint32", 1}, "long": {"int64", 1}, "ulong": {"uint64", 1},
	"vec2": {"float", 2}, "vec3": {"float", 3}, "quat": {"float", 4},
}

// Alias returns the type that the library's name means, and how many of it.
func (k Coding) Alias(kind string) (is string, times int) {
	a := aliases[kind]
	return a.is, a.times
}
