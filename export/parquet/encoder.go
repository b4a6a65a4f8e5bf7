// Package parquet writes tables as Apache Parquet, through
// github.com/parquet-go/parquet-go.
//
//	"PAR1" | row group | row group | … | footer: schema, places, statistics | "PAR1"
//
// Columns keep the order of their declaration. Texts have the logical type
// UTF-8, and objects JSON. Instants are timestamps in nanoseconds (UTC), and
// lists are LISTs. The footer holds the meaning of each column as key and
// value: "ackscope.events.rtt_ms" -> "ms: …".
//
// A row group ends after a fixed number of rows or bytes. So memory stays flat
// however long the table is. The footer grows by about 5 kB per row group.
package parquet

import (
	"io"
	"math"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/ackscope/ackscope/export"
)

const (
	groupRows  = 1 << 16
	groupBytes = 16 << 20 // of texts and lists, before encoding
	batchRows  = 64
	// dictionaryBytes is the size at which a column of texts stops using a
	// dictionary.
	dictionaryBytes = 128 << 10
)

// Encoder writes one table. It implements export.Encoder.
type Encoder struct {
	w       *parquet.GenericWriter[any]
	columns []export.Column
	rows    []parquet.Row
	used    int    // used rows
	bytes   []byte // the buffer that the rows' texts point into
	group   struct{ rows, bytes int }
}

// New starts a table on w.
func New(w io.Writer, s *export.Schema) *Encoder {
	e := &Encoder{columns: s.Columns, rows: make([]parquet.Row, batchRows)}
	root := &ordered{Group: parquet.Group{}}
	o := []parquet.WriterOption{
		parquet.CreatedBy("ackscope", "", ""),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.MaxRowsPerRowGroup(math.MaxInt64),
		parquet.PageBufferSize(64 << 10),
		parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.KeyValueMetadata("ackscope."+s.Name, s.Doc),
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		node := nodeOf(c)
		root.Group[c.Name] = node
		root.fields = append(root.fields, field{node, c.Name})
		doc := c.Doc
		if c.Unit != "" {
			doc = c.Unit + ": " + doc
		}
		o = append(o, parquet.KeyValueMetadata("ackscope."+s.Name+"."+c.Name, doc))
		if c.Type == export.JSON {
			o = append(o, parquet.SkipPageBounds(c.Name))
		}
	}
	e.w = parquet.NewGenericWriter[any](w, append(o, parquet.NewSchema(s.Name, root))...)
	return e
}

// ordered is a group whose fields keep their order. parquet.Group sorts them.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (g *ordered) Fields() []parquet.Field { return g.fields }

type field struct {
	parquet.Node
	name string
}

func (f field) Name() string                           { return f.name }
func (f field) Value(base reflect.Value) reflect.Value { return base.MapIndex(reflect.ValueOf(f.name)) }

// nodeOf returns the column's node in the Parquet schema.
func nodeOf(c *export.Column) parquet.Node {
	var n parquet.Node
	switch c.Type {
	case export.Uint:
		n = parquet.Encoded(parquet.Uint(64), &parquet.DeltaBinaryPacked)
	case export.Int:
		n = parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
	case export.Time:
		n = parquet.Encoded(parquet.Timestamp(parquet.Nanosecond), &parquet.DeltaBinaryPacked)
	case export.Float:
		n = parquet.Leaf(parquet.DoubleType)
	case export.Bool:
		n = parquet.Leaf(parquet.BooleanType)
	case export.Text:
		n = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	case export.JSON:
		n = parquet.JSON()
	case export.Uints:
		n = parquet.List(parquet.Uint(64))
	case export.Floats:
		n = parquet.List(parquet.Leaf(parquet.DoubleType))
	case export.Texts:
		n = parquet.List(parquet.String())
	}
	if c.Absent != export.Never {
		n = parquet.Optional(n)
	}
	return n
}

// Encode implements export.Encoder.
func (e *Encoder) Encode(cells []export.Cell) error {
	row, before := e.rows[e.used][:0], len(e.bytes)
	for i := range cells {
		row = e.append(row, i, &cells[i])
	}
	e.rows[e.used] = row
	e.group.rows++
	e.group.bytes += len(e.bytes) - before + 16*len(row)
	if e.used++; e.used < batchRows && len(e.bytes) < 1<<20 && e.group.bytes < groupBytes && e.group.rows < groupRows {
		return nil
	}
	return e.write()
}

// write writes the batch, and ends the row group if it is full.
func (e *Encoder) write() error {
	if _, err := e.w.WriteRows(e.rows[:e.used]); err != nil {
		return err
	}
	e.used, e.bytes = 0, e.bytes[:0]
	if e.group.rows < groupRows && e.group.bytes < groupBytes {
		return nil
	}
	e.group.rows, e.group.bytes = 0, 0
	return e.w.Flush()
}

// Close writes the footer.
func (e *Encoder) Close() error {
	if err := e.write(); err != nil {
		return err
	}
	return e.w.Close()
}

// append appends the values of a cell.
func (e *Encoder) append(row parquet.Row, i int, c *export.Cell) parquet.Row {
	as, level := &e.columns[i], 0
	if as.Absent != export.Never {
		if !c.Set {
			return append(row, parquet.NullValue().Level(0, 0, i))
		}
		level = 1
	}
	switch as.Type {
	case export.Uint:
		return append(row, parquet.Int64Value(int64(c.Uint)).Level(0, level, i))
	case export.Int, export.Time:
		return append(row, parquet.Int64Value(c.Int).Level(0, level, i))
	case export.Float:
		return append(row, parquet.DoubleValue(c.Float).Level(0, level, i))
	case export.Bool:
		return append(row, parquet.BooleanValue(c.Uint != 0).Level(0, level, i))
	case export.Text, export.JSON:
		return append(row, e.text(c.Bytes).Level(0, level, i))
	case export.Uints:
		return list(row, i, level, len(c.Uints), func(k int) parquet.Value { return parquet.Int64Value(int64(c.Uints[k])) })
	case export.Floats:
		return list(row, i, level, len(c.Reals), func(k int) parquet.Value { return parquet.DoubleValue(c.Reals[k]) })
	default:
		return list(row, i, level, len(c.Ends), func(k int) parquet.Value { return e.text(c.One(k)) })
	}
}

// text copies a text to a buffer that lives until the batch is written. It
// replaces bytes that are not UTF-8.
func (e *Encoder) text(b []byte) parquet.Value {
	from := len(e.bytes)
	e.bytes = export.AppendValid(e.bytes, b)
	return parquet.ByteArrayValue(e.bytes[from:len(e.bytes):len(e.bytes)])
}

// list appends a list's elements. The first element starts the list; the others
// continue it.
func list(row parquet.Row, column, level, n int, at func(k int) parquet.Value) parquet.Row {
	if n == 0 {
		return append(row, parquet.NullValue().Level(0, level, column))
	}
	for k := range n {
		row = append(row, at(k).Level(min(k, 1), level+1, column))
	}
	return row
}
