package srdp

import wire "github.com/ackscope/ackscope/wire/srdp"

// Pair holds the two addresses in a data packet.
type Pair struct{ Source, Destination wire.Address }

// TopByte returns the index of the byte that holds the top bit of the id field.
func TopByte(p *wire.Profile) int {
	if p.LittleEndian {
		return 2
	}
	return 1
}

// Config says how to read a flow.
type Config struct {
	Profile    wire.Profile
	MaxPayload int   // most data bytes allowed; the tracker reports packets with more
	Rules      Rules // what receivers are assumed to remember
	// Stream is set when the packets come over TCP to a proxy that does the
	// repeating. The stream then carries no repeats, and its clients give
	// nothing up. A packet is acknowledged once its receiver behind the proxy
	// has acknowledged it.
	Stream bool
}
