package unit

import "errors"

// MarshalBinary encodes the aggregates. Equal aggregates give equal bytes.
func (a *Aggregates) MarshalBinary() ([]byte, error) { return a.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns.
func (a *Aggregates) AppendBinary(b []byte) ([]byte, error) { return b, errors.New("not there yet") }

// UnmarshalBinary replaces the aggregates by those that were encoded. It refuses bytes that
// MarshalBinary did not return, in memory in proportion to them.
func (a *Aggregates) UnmarshalBinary([]byte) error { return errors.New("not there yet") }
