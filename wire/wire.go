// Package wire defines the errors that the codecs of ackscope's protocols
// share. An error says which field of a packet is bad, and where:
//
//	packet_id at byte 1: packet ends before the field does: expected at least 3 bytes, found 2
//
// Each protocol's codec is a package below wire. Codecs use the standard
// library only: no clock, no state, no gopacket, no logging.
package wire

import (
	"errors"
	"fmt"
)

// A ParseError wraps one of these errors.
var (
	ErrShort        = errors.New("packet ends before the field does")
	ErrRange        = errors.New("value out of range")
	ErrNotCanonical = errors.New("not in canonical form")
	ErrPadding      = errors.New("padding bits are not zero")
	ErrChecksum     = errors.New("checksum does not match")
	ErrTrailing     = errors.New("bytes are left after the last field")
)

// ErrSnapped means that the packet is not at fault: the capture's snap length
// cut it before the requested field.
var ErrSnapped = errors.New("cut by the capture's snap length")

// ParseError describes a field that could not be read. It holds where the field
// is, what was expected and what was found.
type ParseError struct {
	Field    string // as in the protocol's field list: "ack_bits", "fragment_id"
	Bit      int    // where the field begins, in bits from the start of the packet
	Expected string // "at least 4 bytes", "0x9908ace2"; empty when Err is enough
	Found    string
	Err      error // one of the errors above
}

func (e *ParseError) Error() string {
	s := fmt.Sprintf("%s at byte %d", e.Field, e.Bit/8)
	if e.Bit%8 != 0 {
		s += fmt.Sprintf(" bit %d", e.Bit%8)
	}
	s += ": " + e.Err.Error()
	if e.Expected != "" {
		s += ": expected " + e.Expected
		if e.Found != "" {
			s += ", found " + e.Found
		}
	}
	return s
}

// Unwrap returns one of the errors above, for errors.Is.
func (e *ParseError) Unwrap() error { return e.Err }
