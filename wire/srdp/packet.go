package srdp

import (
	"fmt"
	"net/netip"

	"github.com/ackscope/ackscope/wire"
)

// Address is the address of a sender or a receiver, as the proxied form carries
// it. The document defines IPv4 only.
type Address struct {
	IP   [4]byte
	Port uint16
}

// AddressOf converts an address to the proxied form's. It returns false when
// the address is not IPv4. It accepts an IPv4 address that is mapped into IPv6.
func AddressOf(a netip.AddrPort) (Address, bool) {
	ip := a.Addr().Unmap()
	if !ip.Is4() {
		return Address{}, false
	}
	return Address{ip.As4(), a.Port()}, true
}

// AddrPort returns the address as a netip.AddrPort.
func (a Address) AddrPort() netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4(a.IP), a.Port) }

// String returns "192.0.2.1:7777".
func (a Address) String() string { return a.AddrPort().String() }

// Packet is the header of one packet, and the place of its payload.
type Packet struct {
	Command uint8
	Ack     bool   // the top bit of the id field: it acknowledges ID
	ID      uint16 // without that bit
	Flags   uint8  // of data

	// The proxied form only carries Source and Destination.
	Source, Destination Address

	// The application's data is PayloadLen bytes at PayloadOffset, as on the
	// wire. A capture may hold fewer of them. Acknowledgements have none.
	PayloadOffset, PayloadLen int
}

// Field names a field of the header.
type Field uint8

const (
	FieldCommand Field = iota
	FieldID            // with the bit that marks acknowledgements
	FieldSourceAddress
	FieldSourcePort
	FieldDestinationAddress
	FieldDestinationPort
	FieldFlags
)

var fieldNames = [...]string{
	"command", "packet_id", "source.addr", "source.port", "destination.addr",
	"destination.port", "flags",
}

// String returns the name that a ParseError uses.
func (f Field) String() string { return fieldNames[f] }

// fault says which field cannot be read, and why. It is a plain value, not an
// error: foreign traffic on a shared port must not allocate an error for each
// packet.
type fault struct {
	err   error
	field Field
	at    int // byte offset of the field
	value int // what was found, when it helps
}

// Parse reads a packet. b is the captured part, and length is its length on the
// wire. On an error, a *wire.ParseError, pk holds the fields before the bad
// one. The error wraps
//
//   - wire.ErrRange when the command byte is of neither kind: the datagram is
//     foreign;
//   - wire.ErrTrailing when bytes follow an acknowledgement: pk holds all
//     fields;
//   - wire.ErrSnapped when a snap length cut the packet within its header;
//   - wire.ErrShort when the packet is too short.
func (p *Profile) Parse(b []byte, length int, pk *Packet) error {
	if f := p.parse(b, length, pk); f.err != nil {
		return f.error(p, length)
	}
	return nil
}

// Fits reports whether Parse would succeed, and fills pk in the same way. It
// builds no error.
func (p *Profile) Fits(b []byte, length int, pk *Packet) bool {
	return p.parse(b, length, pk).err == nil
}

func (p *Profile) parse(b []byte, length int, pk *Packet) fault {
	*pk = Packet{}
	if len(b) < 1 {
		return fault{missing(1, length), FieldCommand, 0, 0}
	}
	pk.Command = b[0]
	if pk.Command != p.DataCommand && pk.Command != p.AckCommand {
		return fault{wire.ErrRange, FieldCommand, 0, int(pk.Command)}
	}
	if len(b) < 3 {
		return fault{missing(3, length), FieldID, 1, 0}
	}
	id := p.number(b[1:])
	pk.Ack, pk.ID = id&AckMark != 0, id&^AckMark
	at := 3
	if p.Form == Proxied {
		for i, a := range [...]*Address{&pk.Source, &pk.Destination} {
			if len(b) < at+4 {
				return fault{missing(at+4, length), FieldSourceAddress + 2*Field(i), at, 0}
			}
			a.IP = [4]byte(b[at:])
			if len(b) < at+6 {
				return fault{missing(at+6, length), FieldSourcePort + 2*Field(i), at + 4, 0}
			}
			a.Port = p.number(b[at+4:])
			at += 6
		}
	}
	if pk.Ack {
		if length > at {
			return fault{wire.ErrTrailing, FieldID, at, length - at}
		}
		return fault{}
	}
	if len(b) < at+1 {
		return fault{missing(at+1, length), FieldFlags, at, 0}
	}
	pk.Flags = b[at]
	pk.PayloadOffset, pk.PayloadLen = at+1, max(length-at-1, 0)
	return fault{}
}

// number reads a 2-byte number.
func (p *Profile) number(b []byte) uint16 {
	if p.LittleEndian {
		return uint16(b[0]) | uint16(b[1])<<8
	}
	return uint16(b[1]) | uint16(b[0])<<8
}

// missing returns why the bytes up to upTo are missing: the packet ends before
// them, or the capture cut it.
func missing(upTo, length int) error {
	if upTo <= length {
		return wire.ErrSnapped
	}
	return wire.ErrShort
}

func (f fault) error(p *Profile, length int) error {
	e := &wire.ParseError{Field: f.field.String(), Bit: f.at * 8, Err: f.err}
	switch f.err {
	case wire.ErrRange:
		e.Expected, e.Found = fmt.Sprintf("%#02x or %#02x", p.DataCommand, p.AckCommand), fmt.Sprintf("%#02x", f.value)
	case wire.ErrTrailing:
		e.Expected, e.Found = fmt.Sprint(f.at, " bytes"), fmt.Sprint(length)
	case wire.ErrShort:
		least := p.AckLen()
		if f.field == FieldFlags {
			least = p.HeaderLen()
		}
		e.Expected, e.Found = fmt.Sprint("at least ", least, " bytes"), fmt.Sprint(length)
	}
	return e
}

// Append appends a packet to dst: the header from pk, and payload if pk is
// data. It ignores PayloadOffset, PayloadLen and the top bit of ID; pk.Ack sets
// that bit.
func (p *Profile) Append(dst []byte, pk *Packet, payload []byte) []byte {
	id := pk.ID &^ AckMark
	if pk.Ack {
		id |= AckMark
	}
	dst = p.appendNumber(append(dst, pk.Command), id)
	if p.Form == Proxied {
		dst = p.appendNumber(append(dst, pk.Source.IP[:]...), pk.Source.Port)
		dst = p.appendNumber(append(dst, pk.Destination.IP[:]...), pk.Destination.Port)
	}
	if pk.Ack {
		return dst
	}
	return append(append(dst, pk.Flags), payload...)
}

func (p *Profile) appendNumber(dst []byte, v uint16) []byte {
	if p.LittleEndian {
		return append(dst, byte(v), byte(v>>8))
	}
	return append(dst, byte(v>>8), byte(v))
}

// AckOf returns the acknowledgement of a data packet, as its receiver sends it:
// the same id, with source and destination exchanged.
func (p *Profile) AckOf(data *Packet) Packet {
	return Packet{Command: p.AckCommand, Ack: true, ID: data.ID, Source: data.Destination, Destination: data.Source}
}

// Walk calls visit for each header field on the wire, in order. It passes the
// place in bytes, and the value as a number (of an address, the first byte is
// highest). When Parse fails, Walk stops before the bad field.
func (p *Profile) Walk(b []byte, length int, visit func(f Field, at, size int, value uint64)) {
	var pk Packet
	bad := p.parse(b, length, &pk)
	end := len(b)
	switch bad.err {
	case nil:
	case wire.ErrRange:
		end = bad.at + 1 // show a foreign command
	default:
		end = bad.at
	}
	at := 0
	show := func(f Field, size int, value uint64) {
		if at+size <= end {
			visit(f, at, size, value)
		}
		at += size
	}
	id := uint64(pk.ID)
	if pk.Ack {
		id |= AckMark
	}
	show(FieldCommand, 1, uint64(pk.Command))
	show(FieldID, 2, id)
	if p.Form == Proxied {
		for i, a := range [...]Address{pk.Source, pk.Destination} {
			show(FieldSourceAddress+2*Field(i), 4, uint64(a.IP[0])<<24|uint64(a.IP[1])<<16|uint64(a.IP[2])<<8|uint64(a.IP[3]))
			show(FieldSourcePort+2*Field(i), 2, uint64(a.Port))
		}
	}
	if !pk.Ack {
		show(FieldFlags, 1, uint64(pk.Flags))
	}
}
