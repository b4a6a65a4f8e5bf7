package message

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/ackscope/ackscope/export"
)

func appendRow(s *export.Schema, b []byte, cells []export.Cell) []byte {
	for i := range cells {
		c := &cells[i]
		if !c.Set {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		switch s.Columns[i].Type {
		case export.Uint, export.Bool:
			b = binary.AppendUvarint(b, c.Uint)
		case export.Int, export.Time:
			b = binary.AppendVarint(b, c.Int)
		case export.Float:
			b = binary.AppendUvarint(b, math.Float64bits(c.Float))
		case export.Text, export.JSON:
			b = append(binary.AppendUvarint(b, uint64(len(c.Bytes))), c.Bytes...)
		case export.Uints:
			b = binary.AppendUvarint(b, uint64(len(c.Uints)))
			for _, v := range c.Uints {
				b = binary.AppendUvarint(b, v)
			}
		case export.Floats:
			b = binary.AppendUvarint(b, uint64(len(c.Reals)))
			for _, v := range c.Reals {
				b = binary.AppendUvarint(b, math.Float64bits(v))
			}
		}
	}
	return b
}

var errRow = errors.New("row: expected cells, found other bytes")

func readRow(s *export.Schema, b []byte, cells []export.Cell) (err error) {
	uint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, b = errRow, nil
			return 0
		}
		b = b[n:]
		return v
	}
	for i := range cells {
		c := &cells[i]
		c.Set, c.Bytes, c.Uints, c.Reals, c.Ends = false, c.Bytes[:0], c.Uints[:0], c.Reals[:0], c.Ends[:0]
		if len(b) == 0 {
			return errRow
		}
		c.Set, b = b[0] == 1, b[1:]
		if !c.Set {
			continue
		}
		switch s.Columns[i].Type {
		case export.Uint, export.Bool:
			c.Uint = uint()
		case export.Int, export.Time:
			v, n := binary.Varint(b)
			if n <= 0 {
				return errRow
			}
			c.Int, b = v, b[n:]
		case export.Float:
			c.Float = math.Float64frombits(uint())
		case export.Text, export.JSON:
			n := uint()
			if n > uint64(len(b)) {
				return errRow
			}
			c.Bytes, b = append(c.Bytes, b[:n]...), b[n:]
		case export.Uints:
			for n := uint(); n > 0 && err == nil; n-- {
				c.Uints = append(c.Uints, uint())
			}
		case export.Floats:
			for n := uint(); n > 0 && err == nil; n-- {
				c.Reals = append(c.Reals, math.Float64frombits(uint()))
			}
		}
		if err != nil {
			return err
		}
	}
	if len(b) > 0 {
		return errRow
	}
	return nil
}
