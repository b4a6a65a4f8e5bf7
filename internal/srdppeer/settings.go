package srdppeer

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Form is the layout of a packet's header.
type Form int

const (
	Direct  Form = iota // command 1, id 2; data packets also flags 1
	Proxied             // the same with the addresses of both ends behind the id
)

// Settings are the decisions that the document leaves open. The zero value has
// the default of each.
type Settings struct {
	Form Form
	// DataCommand and AckCommand are the first byte of a packet. The document
	// says "TBD". 0 means 0x53 and 0x41.
	DataCommand, AckCommand byte
	// LittleEndian is the byte order of the id, and of the ports in the proxied
	// form.
	LittleEndian bool
	// DontDuplicate and Order are the bits of the two flags. 0 means 0x01 and
	// 0x02.
	DontDuplicate, Order byte
	// Counter is the packet id before the first one. The first packet has the
	// id behind it.
	Counter uint16
	// NumberLate gives a packet of the ordered queue its id when it is first
	// sent. Otherwise it has an id from the call of Send, so that ids pass out
	// of order.
	NumberLate bool
	// StartTimeout is the time between copies for a host that has not yet
	// acknowledged anything, where the caller gives no timeout. 0 means 300 ms.
	StartTimeout time.Duration
	// LeastTimeout is the shortest time between copies that the endpoint chooses
	// itself. 0 means 10 ms.
	LeastTimeout time.Duration
	// Remembered is how many ids of a source are kept to find duplicates. 0
	// means 512.
	Remembered int
	// Proxy receives all datagrams of the proxied form. If it is not valid, they
	// go to the host that their header names.
	Proxy netip.AddrPort
}

// The sizes of the document: 576 bytes of the smallest datagram that every host
// accepts, less the headers of IP and UDP.
const (
	maxDatagram   = 576 - 20 - 8
	directHeader  = 1 + 2 + 1
	addresses     = 2 * (4 + 2)
	proxiedHeader = directHeader + addresses
	ackMark       = 1 << 15
	idMask        = ackMark - 1
)

func (s Settings) withDefaults() Settings {
	setDefault(&s.DataCommand, 0x53)
	setDefault(&s.AckCommand, 0x41)
	setDefault(&s.DontDuplicate, 0x01)
	setDefault(&s.Order, 0x02)
	setDefault(&s.StartTimeout, 300*time.Millisecond)
	setDefault(&s.LeastTimeout, 10*time.Millisecond)
	setDefault(&s.Remembered, 512)
	return s
}

func setDefault[T comparable](setting *T, value T) {
	var zero T
	if *setting == zero {
		*setting = value
	}
}

func (s *Settings) order() binary.ByteOrder {
	if s.LittleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// headerSize is the number of bytes in front of a data packet's payload.
func (s *Settings) headerSize() int {
	if s.Form == Proxied {
		return proxiedHeader
	}
	return directHeader
}

// Limit is the largest payload of a data packet in bytes: 544 in the direct
// form, 532 in the proxied one.
func (s *Settings) Limit() int { return maxDatagram - s.headerSize() }
