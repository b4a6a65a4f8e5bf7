package srdp

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/wire/seq"
)

// IDs is the space of packet ids: 15 bits. The 16th bit marks an
// acknowledgement.
const IDs seq.Space = seq.Bits15

// AckMark is the bit of the packet id field that marks an acknowledgement.
const AckMark = 1 << 15

// Limits of a data packet's payload in bytes, all from the document.
const (
	// MaxCall is the limit of the call's size parameter: 576-20-8.
	MaxCall = 548
	// MaxDirect is what remains of MaxCall after the 4 bytes of the direct
	// header.
	MaxDirect = MaxCall - 4
	// MaxProxied is what remains of MaxCall after the 16 bytes of the proxied
	// header: the 532 of the document's packet size section.
	MaxProxied = MaxCall - 16
)

// Form is one of the two layouts of a packet.
type Form uint8

const (
	Direct  Form = iota // without addresses: straight to the peer
	Proxied             // with both addresses, for a proxy to route by
)

var formWords = [...]string{"direct", "proxied"}

// String returns the word that profiles use.
func (f Form) String() string {
	if int(f) < len(formWords) {
		return formWords[f]
	}
	return "unknown"
}

// ParseForm returns the form that a profile's word names. It returns false when
// there is none.
func ParseForm(word string) (Form, bool) {
	for i, w := range formWords {
		if w == word {
			return Form(i), true
		}
	}
	return 0, false
}

// Profile is what the document leaves open about the bytes of a packet.
type Profile struct {
	Form Form

	// DataCommand and AckCommand are the values of the command byte, for which
	// the document says "TBD". They may be equal, since the top bit of the id
	// decides.
	DataCommand, AckCommand uint8

	// LittleEndian is the byte order of packet ids and ports. The four bytes of
	// an address are always in the order in which it is written, as in a
	// sockaddr_in.
	LittleEndian bool

	// DontDuplicate and Order are the bits of the flags SRDP_DONTDUPLICATE and SRDP_ORDER.
	DontDuplicate, Order uint8

	// FramePrefix is the size in bytes of the length before each packet on a
	// stream: 2 or 4. It does not count itself. FrameLittleEndian is its byte order.
	FramePrefix       int
	FrameLittleEndian bool
}

// Default returns the profile with the default for each open question.
func Default() Profile {
	return Profile{DataCommand: 0x53, AckCommand: 0x41, DontDuplicate: 0x01, Order: 0x02, FramePrefix: 2}
}

// In returns the profile in another form.
func (p Profile) In(f Form) Profile {
	p.Form = f
	return p
}

// Validate returns an error when a field of the profile has an impossible
// value.
func (p *Profile) Validate() error {
	if p.Form > Proxied {
		return fmt.Errorf("form: expected %v or %v, found %d", Direct, Proxied, uint8(p.Form))
	}
	for _, f := range []struct {
		name  string
		value uint8
	}{{"dont_duplicate", p.DontDuplicate}, {"order", p.Order}} {
		if bits.OnesCount8(f.value) != 1 {
			return fmt.Errorf("%s: expected a single bit of the flags, found %#02x", f.name, f.value)
		}
	}
	if p.DontDuplicate == p.Order {
		return errors.New("order: expected another bit than that of dont_duplicate")
	}
	if p.FramePrefix != 2 && p.FramePrefix != 4 {
		return fmt.Errorf("frame_prefix: expected 2 or 4 bytes, found %d", p.FramePrefix)
	}
	return nil
}

// HeaderLen returns the length of a data packet's header in bytes: 4 or 16.
func (p *Profile) HeaderLen() int { return p.AckLen() + 1 }

// AckLen returns the length of an acknowledgement in bytes: 3 or 15.
func (p *Profile) AckLen() int {
	if p.Form == Proxied {
		return 15
	}
	return 3
}

// MaxPayload returns the most data bytes that the document allows in a packet
// of the form: 544 or 532.
func (p *Profile) MaxPayload() int {
	if p.Form == Proxied {
		return MaxProxied
	}
	return MaxDirect
}

// UnknownFlags returns the bits of flags that the document does not define.
func (p *Profile) UnknownFlags(flags uint8) uint8 { return flags &^ (p.DontDuplicate | p.Order) }

// Contradicts reports whether a packet's command byte disagrees with the top
// bit of its id, which decides.
func (p *Profile) Contradicts(pk *Packet) bool {
	if pk.Ack {
		return pk.Command != p.AckCommand
	}
	return pk.Command != p.DataCommand
}
