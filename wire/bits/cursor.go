package bits

import "errors"

// Errors of a cursor.
var (
	ErrShort   = errors.New("the data ends before the field does")
	ErrPadding = errors.New("padding bits are not zero")
)

// Cursor is the common interface of reading, writing and measuring. Code that
// walks a structure is therefore written once. Reading sets the values that the
// pointers refer to, writing uses them, and measuring only counts.
type Cursor interface {
	// Bits reads or writes n bits, 0 to 64.
	Bits(v *uint64, n int) error
	// Align moves to the next byte boundary, over zero bits.
	Align() error
	// Bytes reads or writes n bytes from a byte boundary on. When it reads, *v
	// aliases the data.
	Bytes(v *[]byte, n int) error
	// Pos returns the position in bits.
	Pos() int
	// Reading reports whether values come from the data.
	Reading() bool
}

// Reading is a Cursor that reads from a Reader.
type Reading struct{ From *Reader }

// Writing is a Cursor that writes to a Writer.
type Writing struct{ To *Writer }

// Measuring is a Cursor that counts bits: At is the position.
type Measuring struct{ At int }

// Bits reads n bits. It returns ErrShort when fewer remain.
func (c Reading) Bits(v *uint64, n int) error {
	got, ok := c.From.Bits(n)
	if !ok {
		return ErrShort
	}
	*v = got
	return nil
}

// Align skips the rest of a byte. It returns ErrPadding when the rest is not
// zero.
func (c Reading) Align() error {
	if !c.From.Align() {
		return ErrPadding
	}
	return nil
}

// Bytes reads n bytes. It returns ErrShort when fewer remain.
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

// Reading returns true.
func (c Reading) Reading() bool { return true }

// Bits writes n bits.
func (c Writing) Bits(v *uint64, n int) error { c.To.Bits(*v, n); return nil }

// Align writes zero bits.
func (c Writing) Align() error { c.To.Align(); return nil }

// Bytes writes n bytes.
func (c Writing) Bytes(v *[]byte, n int) error { c.To.Bytes((*v)[:n]); return nil }

// Pos returns the writer's position.
func (c Writing) Pos() int { return c.To.Pos() }

// Reading returns false.
func (c Writing) Reading() bool { return false }

// Bits counts n bits.
func (c *Measuring) Bits(_ *uint64, n int) error { c.At += n; return nil }

// Align counts the rest of a byte.
func (c *Measuring) Align() error { c.At += -c.At & 7; return nil }

// Bytes counts n bytes.
func (c *Measuring) Bytes(_ *[]byte, n int) error { c.At += 8 * n; return nil }

// Pos returns the number of bits counted.
func (c *Measuring) Pos() int { return c.At }

// Reading returns false.
func (c *Measuring) Reading() bool { return false }
