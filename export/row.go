package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
)

// rowVersion is the first byte of an encoded row. It changes with the encoding.
const rowVersion = 1

// How a cell is stored: its first byte.
const (
	cellSet      = 1 << iota
	cellNull     // not set, and null in JSON too
	cellPlain    // a text without escapes
	cellScaled   // a number stored as an integer
	cellNegative // a scaled number that is -0
	cellUnknown  // this bit and those above are 0
)

// errRow is returned for bytes that AppendRow did not return.
var errRow = errors.New("not a row of this table")

// Fingerprint identifies the columns of a table: their names, types, absences and digits. Rows that
// were encoded with one fingerprint cannot be read with another.
func (s *Schema) Fingerprint() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q", s.Name)
	for i := range s.Columns {
		c := &s.Columns[i]
		fmt.Fprintf(h, " %q %d %d %d", c.Name, c.Type, c.Absent, c.Digits)
	}
	return h.Sum32()
}

// AppendRow appends the cells of a row as bytes, which ReadRow reads back. So a row can be carried
// elsewhere, and be encoded there in any format.
func (s *Schema) AppendRow(b []byte, cells []Cell) []byte {
	b = binary.BigEndian.AppendUint32(append(b, rowVersion), s.Fingerprint())
	for i := range cells {
		b = cells[i].appendBytes(b, s.Columns[i].Type)
	}
	return b
}

func (c *Cell) appendBytes(b []byte, as Type) []byte {
	if !c.Set {
		if c.null {
			return append(b, cellNull)
		}
		return append(b, 0)
	}
	flags := byte(cellSet)
	if as == Text && c.plain {
		flags |= cellPlain
	}
	if as == Float && c.exact {
		flags |= cellScaled
		if c.scaled == 0 && math.Signbit(c.Float) {
			flags |= cellNegative
		}
	}
	b = append(b, flags)
	switch as {
	case Uint, Bool:
		return binary.AppendUvarint(b, c.Uint)
	case Int, Time:
		return binary.AppendVarint(b, c.Int)
	case Float:
		if c.exact {
			return binary.AppendVarint(b, c.scaled)
		}
		return binary.BigEndian.AppendUint64(b, math.Float64bits(c.Float))
	case Text, JSON:
		return append(binary.AppendUvarint(b, uint64(len(c.Bytes))), c.Bytes...)
	case Uints:
		b = binary.AppendUvarint(b, uint64(len(c.Uints)))
		for _, v := range c.Uints {
			b = binary.AppendUvarint(b, v)
		}
	case Floats:
		b = binary.AppendUvarint(b, uint64(len(c.Reals)))
		for _, v := range c.Reals {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
		}
	case Texts:
		b = binary.AppendUvarint(b, uint64(len(c.Ends)))
		for i := range c.Ends {
			one := c.one(i)
			b = append(binary.AppendUvarint(b, uint64(len(one))), one...)
		}
	}
	return b
}

// ReadRow sets the cells to a row that AppendRow encoded. They encode to the same bytes in every
// format. It refuses other bytes, in memory in proportion to them.
func (s *Schema) ReadRow(b []byte, cells []Cell) error {
	if len(b) < 5 || b[0] != rowVersion {
		return fmt.Errorf("%w: expected version %d", errRow, rowVersion)
	}
	if binary.BigEndian.Uint32(b[1:]) != s.Fingerprint() {
		return fmt.Errorf("%w: it has other columns than %s here", errRow, s.Name)
	}
	r := rowReader{left: b[5:]}
	for i := range s.Columns {
		cells[i].reset()
		if r.cell(&cells[i], &s.Columns[i]); r.bad {
			return fmt.Errorf("%w: column %s", errRow, s.Columns[i].Name)
		}
	}
	if len(r.left) > 0 {
		return fmt.Errorf("%w: %d bytes are left", errRow, len(r.left))
	}
	return nil
}

// rowReader reads the bytes of a row.
type rowReader struct {
	left []byte
	bad  bool
}

// require marks the row as bad unless ok.
func (r *rowReader) require(ok bool) { r.bad = r.bad || !ok }

// take returns the next n bytes, or nil.
func (r *rowReader) take(n uint64) []byte {
	if r.require(n <= uint64(len(r.left))); r.bad {
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *rowReader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *rowReader) uint() uint64 {
	v, n := binary.Uvarint(r.left)
	r.take(uint64(max(n, 0)))
	r.require(n > 0)
	return v
}

func (r *rowReader) int() int64 {
	v, n := binary.Varint(r.left)
	r.take(uint64(max(n, 0)))
	r.require(n > 0)
	return v
}

func (r *rowReader) bits() float64 {
	if b := r.take(8); len(b) == 8 {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

// count reads the length of a list whose items take at least so many bytes each.
func (r *rowReader) count(least uint64) int {
	n := r.uint()
	if r.require(n <= uint64(len(r.left))/least); r.bad {
		return 0
	}
	return int(n)
}

// cell reads a cell that is reset.
func (r *rowReader) cell(c *Cell, as *Column) {
	flags := r.byte()
	r.require(flags < cellUnknown)
	if flags&cellSet == 0 {
		r.require(flags&^cellNull == 0)
		c.null = flags&cellNull != 0
		return
	}
	r.require(flags&cellNull == 0 && (flags&cellPlain == 0 || as.Type == Text) &&
		(flags&(cellScaled|cellNegative) == 0 || as.Type == Float))
	c.Set, c.plain = true, flags&cellPlain != 0
	switch as.Type {
	case Uint:
		c.Uint = r.uint()
	case Bool:
		c.Uint = r.uint()
		r.require(c.Uint <= 1)
	case Int, Time:
		c.Int = r.int()
	case Float:
		r.float(c, as.Digits, flags)
	case Text:
		c.Bytes = append(c.Bytes, r.take(r.uint())...)
		r.require(!c.plain || !slices.ContainsFunc(c.Bytes, func(b byte) bool { return !plain[b] || b == ',' }))
	case JSON:
		c.Bytes = append(c.Bytes, r.take(r.uint())...)
		r.require(json.Valid(c.Bytes) && !bytes.ContainsAny(c.Bytes, "\r\n"))
	case Uints:
		for range r.count(1) {
			c.Uints = append(c.Uints, r.uint())
		}
	case Floats:
		for range r.count(8) {
			c.Reals = append(c.Reals, r.bits())
		}
	case Texts:
		for range r.count(1) {
			c.Bytes = append(c.Bytes, r.take(r.uint())...)
			c.Ends = append(c.Ends, len(c.Bytes))
		}
	}
}

// float reads a number as Cell.float sets it.
func (r *rowReader) float(c *Cell, digits int, flags byte) {
	if c.exact = flags&cellScaled != 0; !c.exact {
		c.Float = r.bits()
		r.require(!math.IsNaN(c.Float) && !math.IsInf(c.Float, 0))
		return
	}
	c.scaled = r.int()
	const most = 1 << 53 // as in Cell.float
	r.require(c.scaled > -most && c.scaled < most)
	c.Float = float64(c.scaled) / math.Pow10(digits)
	if flags&cellNegative != 0 {
		r.require(c.scaled == 0)
		c.Float = math.Copysign(0, -1)
	}
}
