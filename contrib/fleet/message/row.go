package message

import (
	"encoding/json"
	"fmt"

	"github.com/ackscope/ackscope/export"
)

// Append appends the body of a stored message: a row of Schema(kind), as core encodes it.
func Append(to []byte, kind Kind, cells []export.Cell) []byte {
	return appendRow(schemas[kind], to, cells)
}

// Decoder reads the bodies of stored messages of one kind. It is not safe for concurrent use.
type Decoder struct{ schema *export.Schema }

// NewDecoder returns a decoder.
func NewDecoder(kind Kind) *Decoder { return &Decoder{schemas[kind]} }

// Decode reads a body into cells, one for each column of Schema. The error says what is wrong with the body.
func (d *Decoder) Decode(body []byte, cells []export.Cell) error {
	if len(body) > MostBody {
		return fmt.Errorf("row: expected at most %d bytes, found %d", MostBody, len(body))
	}
	if err := readRow(d.schema, body, cells); err != nil {
		return err
	}
	for i := range cells {
		c, column := &cells[i], &d.schema.Columns[i]
		if !c.Set && column.Absent == export.Never {
			return fmt.Errorf("row: expected a value of %s, found none", column.Name)
		}
		if c.Set && column.Type == export.JSON && !json.Valid(c.Bytes) {
			return fmt.Errorf("row: expected JSON in %s, found %s", column.Name, Quoted(string(c.Bytes)))
		}
	}
	return nil
}
