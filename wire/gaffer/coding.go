package gaffer

import (
	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// Coding is how the article series' serializer writes values, for schemas:
//
//   - Numbers are written low bit first, and a bool takes one bit.
//   - A count is written as its distance from the least, in as few bits as the range
//     needs.
//   - Bytes begin at a whole byte.
type Coding struct{}

// Word codes the low n bits of v.
func (Coding) Word(c bits.Cursor, v *uint64, n int) error { return c.Bits(v, n) }

// Bool codes one bit.
func (Coding) Bool(c bits.Cursor, v *uint64) error { return c.Bits(v, 1) }

// BoolItem codes one bit, like Bool.
func (Coding) BoolItem(c bits.Cursor, v *uint64, _, _ int) error { return c.Bits(v, 1) }

// MostCount returns 0: the width of a count depends on its bounds.
func (Coding) MostCount() int64 { return 0 }

// Alias returns no alias.
func (Coding) Alias(string) (is string, times int) { return "", 0 }

// Lost reports no fault of this kind.
func (Coding) Lost(string) (items, count bool) { return false, false }

// Count codes a number from least to most.
func (Coding) Count(c bits.Cursor, v *uint64, least, most uint64) error {
	offset := *v - least
	if err := c.Bits(&offset, bits.Required(least, most)); err != nil {
		return err
	}
	if offset > most-least {
		return wire.ErrRange
	}
	*v = least + offset
	return nil
}

// Bytes codes n bytes.
func (Coding) Bytes(c bits.Cursor, v *[]byte, n int) error {
	if err := c.Align(); err != nil {
		return err
	}
	return c.Bytes(v, n)
}

// Text codes a string of at most most bytes without a terminator.
func (k Coding) Text(c bits.Cursor, v *[]byte, most int) error {
	n := uint64(len(*v))
	if err := k.Count(c, &n, 0, uint64(most)); err != nil {
		return err
	}
	return k.Bytes(c, v, int(n))
}

// Number returns ok false: all numbers have fixed widths.
func (Coding) Number(string) (code func(c bits.Cursor, v *uint64) error, signed, ok bool) {
	return nil, false, false
}
