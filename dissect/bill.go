package dissect

// Bill says what the bits of one datagram are for. The caller owns it and reuses
// it. What it does not name is header: the protocol's own overhead.
type Bill struct {
	// Type is what the datagram is, in the protocol's words: "Ack", "Reliable 300".
	Type string
	// Acks counts bits that tell what was received.
	Acks uint64
	// Bodies are what the application sent: one of the datagram's own type, or
	// the messages within it.
	Bodies []Charge
}

// Charge is what one message of the application takes.
type Charge struct {
	Type string // of the message; empty for the datagram's
	Bits uint64
	// Key is the same for every copy of the message that its sender sends; 0 where
	// the protocol sends it once, or another packet's event tells that it is a copy.
	Key uint64
}

// Reset empties b and keeps its memory.
func (b *Bill) Reset() { b.Type, b.Acks, b.Bodies = "", 0, b.Bodies[:0] }

// Charge adds a message.
func (b *Bill) Charge(kind string, bits, key uint64) {
	if bits > 0 {
		b.Bodies = append(b.Bodies, Charge{kind, bits, key})
	}
}

// Fit cuts what is more than the datagram has, which a malformed one may seem to
// hold, and gives the bits that are left for the header.
func (b *Bill) Fit(total uint64) (header uint64) {
	b.Acks = min(b.Acks, total)
	left := total - b.Acks
	for i := range b.Bodies {
		c := &b.Bodies[i]
		c.Bits = min(c.Bits, left)
		left -= c.Bits
	}
	return left
}
