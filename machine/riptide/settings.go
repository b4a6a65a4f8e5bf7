package riptide

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Config is how a flow is read.
type Config struct {
	Senders [2]Speaker
	// Stream is set where the messages come over TCP. Everything that passes the tap then reaches the
	// other end, in this order.
	Stream bool
	// OneHost is set where both ends have the same address. Then the tap is at both ends, unless one
	// of them is a relay.
	OneHost bool
	// Values returns the faults that the values of a message show. b is the captured part of the
	// message. Values is nil without a schema.
	Values func(from machine.Side, m *wire.Message, b []byte) ValueFaults
	// Narrow narrows down the builds of Senders as the flow goes on. It is nil where nothing can.
	Narrow Narrower
}

// Narrower finds out which builds the ends of a flow can be. It takes the messages of the flow in order.
type Narrower interface {
	Observe(d *machine.Datagram)
	// Builds returns the builds that each side can be by what it has sent so far.
	Builds() [2]wire.BuildSet
	Clone() Narrower
}

// Speaker is what one end speaks.
type Speaker struct {
	Codec  wire.Codec
	Builds wire.BuildSet // the implementations that it can be
}

// ValueFaults is a set of faults that show only in a message's values, which a schema reads.
type ValueFaults uint8

// Faults of values.
const (
	ShortArrayLost ValueFaults = 1 << iota // a short[] or ushort[] of which only the length is there
	BoolArrayLost                          // a bool[] that is not there
	VarLongWrong                           // a VarLong that receivers read as another number
	ValuesMissing                          // no values at all, where the schema has some
	BytesThenMore                          // a value after whole bytes at a byte boundary
)
