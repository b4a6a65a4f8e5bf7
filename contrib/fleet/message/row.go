package message

import (
	"encoding/hex"
	"fmt"

	"github.com/ackscope/ackscope/export"
)

// Append appends the body of a stored message: a row of Schema(kind), as core encodes it.
func Append(to []byte, kind Kind, cells []export.Cell) []byte {
	return schemas[kind].AppendRow(to, cells)
}

// Version is how a body begins: the version of core's encoding, and a fingerprint of the columns.
type Version [5]byte

// String returns the version in hexadecimal digits.
func (v Version) String() string { return hex.EncodeToString(v[:]) }

// VersionOf returns the version that a body claims. ok is false if the body is too short to be a row of any version.
func VersionOf(body []byte) (v Version, ok bool) { return v, copy(v[:], body) == len(v) }

// Decoder reads the bodies of stored messages of one kind. It is not safe for concurrent use.
type Decoder struct {
	schema *export.Schema
	own    Version
}

// NewDecoder returns a decoder of rows of a schema, as Schema returns it.
func NewDecoder(s *export.Schema) *Decoder {
	d := &Decoder{schema: s}
	d.own, _ = VersionOf(s.AppendRow(nil, s.Cells()))
	return d
}

// Own returns the version of the rows that the decoder reads.
func (d *Decoder) Own() Version { return d.own }

// Other returns the version of a body if that is another one. The decoder cannot tell whether such a body is a row.
func (d *Decoder) Other(body []byte) (v Version, other bool) {
	v, ok := VersionOf(body)
	return v, ok && v != d.own
}

// Decode reads a body into cells, one for each column of the schema. The error says what is wrong with the body.
func (d *Decoder) Decode(body []byte, cells []export.Cell) error {
	if len(body) > MostBody {
		return fmt.Errorf("row: expected at most %d bytes, found %d", MostBody, len(body))
	}
	if err := d.schema.ReadRow(body, cells); err != nil {
		return fmt.Errorf("row: %w", err)
	}
	for i := range cells {
		if column := &d.schema.Columns[i]; !cells[i].Set && column.Absent == export.Never {
			return fmt.Errorf("row: expected a value of %s, found none", column.Name)
		}
	}
	return nil
}
