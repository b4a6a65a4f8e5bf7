package riptide

import (
	mathbits "math/bits"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// Coding is how a codec's messages hold their values, for schemas: what Reader
// and Writer do value by value, for a walk over a description of them.
type Coding struct {
	Codec
	EmptyShortArrays bool // as in Build
	LostBoolArrays   bool // as in Build
}

// CodingOf returns the coding of a sender that can be any of some builds: with
// the faults that all of them have.
func CodingOf(c Codec, builds BuildSet) Coding {
	return Coding{
		Codec:            c,
		EmptyShortArrays: builds.All(func(b *Build) bool { return b.EmptyShortArrays }),
		LostBoolArrays:   builds.All(func(b *Build) bool { return b.LostBoolArrays }),
	}
}

// Lost tells of arrays that the builds do not write whole.
func (k Coding) Lost(item string) (items, count bool) {
	switch item {
	case "int16", "uint16":
		return k.EmptyShortArrays, false
	case "bool":
		return k.LostBoolArrays, k.LostBoolArrays
	}
	return false, false
}

// Word codes a number of n bits: little-endian, or big-endian where the build is
// and the number is of whole bytes.
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

// BoolItem codes bool i of an array of n: packed, in the byte-aligned forms
// filled up to whole bytes.
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

// Count codes a length, which takes the same bits whatever its bounds are.
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

// varint codes a VarLong, whose value stands in v as two's complement.
func varint(c bits.Cursor, v *uint64) error {
	zigzag := *v<<1 ^ uint64(int64(*v)>>63)
	if err := varuint(c, &zigzag); err != nil {
		return err
	}
	*v = zigzag>>1 ^ -(zigzag & 1)
	return nil
}

// Bytes codes n bytes, at whatever bit they begin.
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
	// Grown as they come: a length that lies must not cost memory.
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

// Text codes a text behind its length.
func (k Coding) Text(c bits.Cursor, v *[]byte, most int) error {
	n := uint64(len(*v))
	if err := k.Count(c, &n, 0, uint64(most)); err != nil {
		return err
	}
	return k.Bytes(c, v, int(n))
}

// Number knows the numbers of variable width: varlong and varulong.
func (k Coding) Number(kind string) (code func(c bits.Cursor, v *uint64) error, signed, ok bool) {
	switch kind {
	case "varlong":
		return varint, true, true
	case "varulong":
		return varuint, false, true
	}
	return nil, false, false
}

// aliases are the library's names of types that schemas know by their width,
// and those of the Unity package, which are numbers one after the other.
var aliases = map[string]struct {
	is    string
	times int
}{
	"byte": {"uint8", 1}, "sbyte": {"int8", 1}, "short": {"int16", 1}, "ushort": {"uint16", 1},
	"int": {"int32", 1}, "uint": {"uint32", 1}, "long": {"int64", 1}, "ulong": {"uint64", 1},
	"vec2": {"float", 2}, "vec3": {"float", 3}, "quat": {"float", 4},
}

// Alias returns what the library's name of a type stands for.
func (k Coding) Alias(kind string) (is string, times int) {
	a := aliases[kind]
	return a.is, a.times
}
