package batch

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/ackscope/ackscope/unit"
)

// exactName is a name of a file for JSON, which replaces bytes that are not UTF-8. File systems have
// such names. So they are an object with their bytes.
type exactName string

type nameBytes struct{ Bytes []byte }

// MarshalJSON implements json.Marshaler.
func (n exactName) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal(nameBytes{[]byte(n)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *exactName) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var x nameBytes
		err := json.Unmarshal(b, &x)
		*n = exactName(x.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

// exactFile and exactCapture are a File and a Capture for JSON.
type (
	exactFile    struct{ Name, Path exactName }
	exactCapture struct {
		Name   exactName
		Files  []File
		Labels []unit.Label
	}
)

// MarshalJSON implements json.Marshaler. It keeps each byte of the names.
func (f File) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactFile{exactName(f.Name), exactName(f.Path)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *File) UnmarshalJSON(b []byte) error {
	var x exactFile
	err := json.Unmarshal(b, &x)
	f.Name, f.Path = string(x.Name), string(x.Path)
	return err
}

// MarshalJSON implements json.Marshaler. It keeps each byte of the names.
func (c Capture) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactCapture{exactName(c.Name), c.Files, c.Labels})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Capture) UnmarshalJSON(b []byte) error {
	var x exactCapture
	err := json.Unmarshal(b, &x)
	c.Name, c.Files, c.Labels = string(x.Name), x.Files, x.Labels
	return err
}
