package srdp

import wire "github.com/ackscope/ackscope/wire/srdp"

// Pair is the addresses in a packet of data.
type Pair struct{ Source, Destination wire.Address }

// TopByte returns where the top bit of the id field is.
func TopByte(p *wire.Profile) int {
	if p.LittleEndian {
		return 2
	}
	return 1
}

// Config says how the flow is read.
type Config struct {
	Profile    wire.Profile
	MaxPayload int   // most bytes of data that are allowed; more are reported
	Rules      Rules // what receivers are taken to remember
	// Stream is set where the packets come over TCP to a proxy, which does the
	// repeats: nothing is sent again or given up on the stream, and a packet is
	// acknowledged once its receiver behind the proxy has done so.
	Stream bool
}
