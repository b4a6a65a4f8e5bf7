package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Bounds of a table that is read.
// Source: bound, memory of reading a hostile file
const (
	mostReadColumns = 64
	mostReadGroup   = 1 << 30 // bytes of a row group, unpacked
	mostReadValue   = 64 << 10
)

// ReadTexts reads a flat table, each value as text; what is missing is "". It passes the names of
// the columns first, and then each row with its number from 1. Rows are read in batches, so memory
// does not grow with their number. The cells are valid until row returns.
func ReadTexts(from io.ReaderAt, size int64, columns func(names []string) error,
	row func(n int64, cells []string) error,
) (err error) {
	defer func() {
		// The library panics for some files that are damaged.
		if fault := recover(); fault != nil {
			err = fmt.Errorf("is no table of Parquet that can be read: %v", fault)
		}
	}()
	file, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("is no table of Parquet that can be read: %w", err)
	}
	var names []string
	for _, f := range file.Schema().Fields() {
		if !f.Leaf() || f.Repeated() {
			return fmt.Errorf("column %q: expected plain values, found a list or a group", f.Name())
		}
		names = append(names, f.Name())
	}
	if len(names) > mostReadColumns {
		return fmt.Errorf("has %d columns: expected %d at most", len(names), mostReadColumns)
	}
	for i := range file.Metadata().RowGroups {
		if n := file.Metadata().RowGroups[i].TotalByteSize; n < 0 || n > mostReadGroup {
			return fmt.Errorf("row group %d has %d bytes: expected %d at most", i, n, mostReadGroup)
		}
	}
	if err := columns(names); err != nil {
		return err
	}
	n := int64(0)
	for _, group := range file.RowGroups() {
		if err := readGroup(group, len(names), func(cells []string) error { n++; return row(n, cells) }); err != nil {
			return err
		}
	}
	return nil
}

func readGroup(group parquet.RowGroup, columns int, row func(cells []string) error) error {
	from := group.Rows()
	defer func() { _ = from.Close() }() // it was only read
	batch, cells := make([]parquet.Row, batchRows), make([]string, columns)
	for {
		n, err := from.ReadRows(batch)
		for _, values := range batch[:n] {
			clear(cells)
			for _, v := range values {
				if v.IsNull() || v.Column() >= columns {
					continue
				}
				text := textOf(v)
				if len(text) > mostReadValue {
					return fmt.Errorf("a value has %d bytes: expected %d at most", len(text), mostReadValue)
				}
				cells[v.Column()] = text
			}
			if err := row(cells); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrNoProgress
		}
	}
}

func textOf(v parquet.Value) string {
	switch v.Kind() {
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return string(v.ByteArray())
	case parquet.Int96:
		return v.Int96().String()
	default:
		return v.String()
	}
}
