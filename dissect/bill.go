package dissect

import "strconv"

// Bill says what the bits of one datagram are for. Bits that it does not list
// are header: the protocol's own overhead. The caller owns it and reuses it.
type Bill struct {
	// Type is the kind of datagram, in the protocol's words: "Ack", "Reliable
	// 300".
	Type string
	// Acks counts bits that acknowledge packets.
	Acks uint64
	// Bodies are what the application sent: a body of the datagram's own type,
	// or the messages within it.
	Bodies []Charge

	names [billNames]billName
}

// billNames is how many names with numbers are kept: a power of two, since a place is found by a
// mask. The ledger has a row for each of 1,024 types of a side, and a number has up to four kinds.
const billNames = 4 * 1024

// billName is a name with a number, as Name returns it.
type billName struct {
	kind   string
	number uint64
	text   string
}

// Charge is the bits of one message of the application.
type Charge struct {
	Type string // of the message; empty for the datagram's type
	Bits uint64
	// Key is the same for all copies of a message from its sender. It is 0 when
	// the protocol sends the message once, or when an event reports its copies.
	Key uint64
}

// Reset empties b and keeps its memory for reuse.
func (b *Bill) Reset() { b.Type, b.Acks, b.Bodies = "", 0, b.Bodies[:0] }

// Name returns a name with a number, such as "Reliable 300". It keeps texts, so that the copies of
// a name cost no memory.
func (b *Bill) Name(kind string, number uint64) string {
	x := &b.names[(number*4+uint64(len(kind)))%billNames] // kinds of one number differ in length
	if x.kind != kind || x.number != number || x.text == "" {
		*x = billName{kind, number, kind + " " + strconv.FormatUint(number, 10)}
	}
	return x.text
}

// Charge adds a message. It ignores a message without bits.
func (b *Bill) Charge(kind string, bits, key uint64) {
	if bits > 0 {
		b.Bodies = append(b.Bodies, Charge{kind, bits, key})
	}
}

// Fit reduces the bits to those that the datagram has, since a malformed
// datagram may seem to hold more. It returns the bits that remain for the
// header.
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
