package export

import (
	"io"
	"strconv"

	"github.com/ackscope/ackscope/machine"
)

// Lines writes a table as JSON Lines: one object per row, with its keys in the
// order of the columns.
type Lines struct {
	w       io.Writer
	columns []Column
	heads   []string // `"name":` of each column
	buf     []byte
	clock   Clock
}

// NewLines starts a table on w.
func NewLines(w io.Writer, s *Schema) *Lines {
	l := &Lines{w: w, columns: s.Columns}
	for i := range s.Columns {
		l.heads = append(l.heads, `"`+s.Columns[i].Name+`":`)
	}
	return l
}

// Encode implements Encoder.
func (l *Lines) Encode(cells []Cell) error {
	l.buf = append(l.buf[:0], '{')
	for i := range cells {
		l.value(i, &cells[i])
	}
	return l.end()
}

// value appends the value of a column, unless it is left out.
func (l *Lines) value(i int, c *Cell) {
	if !c.Set {
		if l.columns[i].Absent < Omitted || c.null {
			l.buf = append(append(l.buf, l.heads[i]...), "null,"...)
		}
		return
	}
	l.buf = append(c.appendJSON(append(l.buf, l.heads[i]...), &l.columns[i], &l.clock), ',')
}

// end writes the line. Each value has a comma behind it: the last one becomes the end of the object.
func (l *Lines) end() error {
	if last := len(l.buf) - 1; last > 0 {
		l.buf[last] = '}'
	} else {
		l.buf = append(l.buf, '}')
	}
	l.buf = append(l.buf, '\n')
	_, err := l.w.Write(l.buf)
	return err
}

// Close implements Encoder.
func (l *Lines) Close() error { return nil }

// appendJSON appends a value that is set.
func (c *Cell) appendJSON(b []byte, as *Column, clock *Clock) []byte {
	switch as.Type {
	case Uint:
		return strconv.AppendUint(b, c.Uint, 10)
	case Int:
		return strconv.AppendInt(b, c.Int, 10)
	case Bool:
		return strconv.AppendBool(b, c.Uint != 0)
	case Float:
		return c.appendFloat(b, as.Digits)
	case Text:
		return c.appendText(b)
	case Time:
		b = append(b, '"')
		return append(clock.Append(b, machine.Instant(c.Int)), '"')
	case JSON:
		return append(b, c.Bytes...)
	case Uints:
		return appendList(b, len(c.Uints), func(b []byte, i int) []byte { return strconv.AppendUint(b, c.Uints[i], 10) })
	case Floats:
		return appendList(b,
			len(c.Reals), func(b []byte, i int) []byte { return strconv.AppendFloat(b, c.Reals[i], 'f', -1, 64) })
	default:
		return appendList(b, len(c.Ends), func(b []byte, i int) []byte { return AppendString(b, c.one(i)) })
	}
}

func (c *Cell) appendText(b []byte) []byte {
	switch {
	case c.plain: // str or Bytes is empty
		return append(append(append(append(b, '"'), c.str...), c.Bytes...), '"')
	case c.str != "":
		return AppendString(b, c.str)
	default:
		return AppendString(b, c.Bytes)
	}
}

func (c *Cell) appendFloat(b []byte, digits int) []byte {
	if c.exact {
		return AppendDecimal(b, c.scaled, digits)
	}
	return strconv.AppendFloat(b, c.Float, 'f', -1, 64)
}

// one returns a text of Texts.
func (c *Cell) one(i int) []byte {
	from := 0
	if i > 0 {
		from = c.Ends[i-1]
	}
	return c.Bytes[from:c.Ends[i]]
}

// One returns the i-th of the len(c.Ends) texts of a Texts.
func (c *Cell) One(i int) []byte { return c.one(i) }

func appendList(b []byte, n int, item func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(b, i)
	}
	return append(b, ']')
}
