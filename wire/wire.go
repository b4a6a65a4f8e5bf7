// Package wire holds what the codecs of ackscope's protocols share: the error
// that tells which field of a packet is bad, and where.
//
// It is ring 0 of the house: std only; no clock, no state, no gopacket, no
// logging. Each protocol's codec is a package below it.
package wire

import (
	"errors"
	"fmt"
)

// What can be wrong with a field; a ParseError wraps one of them.
var (
	ErrShort        = errors.New("packet ends before the field does")
	ErrRange        = errors.New("value out of range")
	ErrNotCanonical = errors.New("not in canonical form")
	ErrPadding      = errors.New("padding bits are not zero")
	ErrChecksum     = errors.New("checksum does not match")
	ErrTrailing     = errors.New("bytes are left after the last field")
)

// ErrSnapped says that nothing is wrong with a packet, but the capture's snap
// length cut it before the field that was asked for.
var ErrSnapped = errors.New("cut by the capture's snap length")

// ParseError says which field could not be read, at which bit of the packet,
// what was expected and what was found.
type ParseError struct {
	Field    string // as in the protocol's field list: "ack_bits", "fragment_id"
	Bit      int    // where the field begins, in bits from the first of the packet
	Expected string // "at least 4 bytes", "0x9908ace2"; empty where Err says all
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

// Unwrap returns the kind of fault, for errors.Is.
func (e *ParseError) Unwrap() error { return e.Err }
