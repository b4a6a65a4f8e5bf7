package riptide

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Config says how the flow is read.
type Config struct {
	Senders [2]Speaker
	// Stream is set where the messages come over TCP: what passes the tap then
	// reaches the other end, in this order.
	Stream bool
	// OneHost is set where both ends have the same address: the tap is at both
	// then, unless one of them is a relay.
	OneHost bool
	// Values tells what the values of a message show, of which b was captured; nil
	// where nothing is known of values.
	Values func(from machine.Side, m *wire.Message, b []byte) ValueFaults
}

// Speaker is what one end speaks.
type Speaker struct {
	Codec  wire.Codec
	Builds wire.BuildSet // the implementations that it can be
}

// ValueFaults are those that only the values of a message show, which a schema
// reads.
type ValueFaults uint8

// What the values of a message can show.
const (
	ShortArrayLost ValueFaults = 1 << iota // a short[] or ushort[] of which only the length is there
	BoolArrayLost                          // a bool[] that is not there
	VarLongWrong                           // a VarLong that receivers read as another number
	ValuesMissing                          // no values at all, where the schema has some
	BytesThenMore                          // a value behind whole bytes at a byte boundary
)
