package export

import (
	"bytes"
	"io"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// CSV writes a table as RFC 4180 specifies. The first line has the names of the
// columns, and lines end in CR LF. A missing value is empty; an empty text is
// "". Lists and objects are JSON.
type CSV struct {
	w       io.Writer
	columns []Column
	buf     []byte
	value   []byte
	clock   Clock
}

// NewCSV starts a table on w.
func NewCSV(w io.Writer, s *Schema) (*CSV, error) {
	c := &CSV{w: w, columns: s.Columns}
	for i := range s.Columns {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = append(c.buf, s.Columns[i].Name...)
	}
	_, err := w.Write(append(c.buf, '\r', '\n'))
	return c, err
}

// Encode implements Encoder.
func (w *CSV) Encode(cells []Cell) error {
	b := w.buf[:0]
	for i := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		if !cells[i].Set {
			continue
		}
		c, as := &cells[i], &w.columns[i]
		switch as.Type {
		case Text:
			if c.plain {
				b = append(b, c.Bytes...)
				continue
			}
			w.value = printable.Append(w.value[:0], c.Bytes)
			b = appendQuoted(b, w.value)
		case Time:
			b = w.clock.Append(b, machine.Instant(c.Int))
		case Uint, Int, Float, Bool:
			b = c.appendJSON(b, as, &w.clock)
		default:
			w.value = c.appendJSON(w.value[:0], as, &w.clock)
			b = appendQuoted(b, w.value)
		}
	}
	w.buf = append(b, '\r', '\n')
	_, err := w.w.Write(w.buf)
	return err
}

// Close implements Encoder.
func (w *CSV) Close() error { return nil }

// appendQuoted appends a value, in quotes if it needs them.
func appendQuoted(to, v []byte) []byte {
	if len(v) > 0 && !bytes.ContainsAny(v, "\",\r\n") && v[0] != ' ' && v[len(v)-1] != ' ' {
		return append(to, v...)
	}
	to = append(to, '"')
	for {
		i := bytes.IndexByte(v, '"') + 1
		if i == 0 {
			return append(append(to, v...), '"')
		}
		to = append(append(to, v[:i]...), '"')
		v = v[i:]
	}
}
