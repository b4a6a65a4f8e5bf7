package bits

import "errors"

// What a cursor can meet.
var (
	ErrShort   = errors.New("the data ends before the field does")
	ErrPadding = errors.New("padding bits are not zero")
)

// Cursor is reading, writing and measuring behind one face, so that the walk
// over a structure is written once: reading sets what is pointed at, writing
// takes it, measuring only moves on.
type Cursor interface {
	// Bits codes n bits, 0 to 64.
	Bits(v *uint64, n int) error
	// Align moves to the next whole byte over zero bits.
	Align() error
	// Bytes codes n bytes from a whole byte on. What reading sets aliases the data.
	Bytes(v *[]byte, n int) error
	// Pos returns the position in bits.
	Pos() int
	// Reading reports whether values come from the data.
	Reading() bool
}

// Reading is a Cursor over a Reader.
type Reading struct{ From *Reader }

// Writing is a Cursor over a Writer.
type Writing struct{ To *Writer }

// Measuring is a Cursor that counts: At is the position in bits.
type Measuring struct{ At int }

// Bits reads n bits.
func (c Reading) Bits(v *uint64, n int) error {
	got, ok := c.From.Bits(n)
	if !ok {
		return ErrShort
	}
	*v = got
	return nil
}

// Align passes over the rest of a byte, which must be zero.
func (c Reading) Align() error {
	if !c.From.Align() {
		return ErrPadding
	}
	return nil
}

// Bytes reads n bytes.
func (c Reading) Bytes(v *[]byte, n int) error {
	got, ok := c.From.Bytes(n)
	if !ok {
		return ErrShort
	}
	*v = got
	return nil
}

// Pos returns the reader's position.
func (c Reading) Pos() int { return c.From.Pos() }

// Reading is true.
func (c Reading) Reading() bool { return true }

// Bits writes n bits.
func (c Writing) Bits(v *uint64, n int) error { c.To.Bits(*v, n); return nil }

// Align writes zero bits.
func (c Writing) Align() error { c.To.Align(); return nil }

// Bytes writes the n bytes.
func (c Writing) Bytes(v *[]byte, n int) error { c.To.Bytes((*v)[:n]); return nil }

// Pos returns the writer's position.
func (c Writing) Pos() int { return c.To.Pos() }

// Reading is false.
func (c Writing) Reading() bool { return false }

// Bits counts n bits.
func (c *Measuring) Bits(_ *uint64, n int) error { c.At += n; return nil }

// Align counts the rest of a byte.
func (c *Measuring) Align() error { c.At += -c.At & 7; return nil }

// Bytes counts n bytes.
func (c *Measuring) Bytes(_ *[]byte, n int) error { c.At += 8 * n; return nil }

// Pos returns what was counted.
func (c *Measuring) Pos() int { return c.At }

// Reading is false.
func (c *Measuring) Reading() bool { return false }
