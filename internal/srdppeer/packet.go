package srdppeer

import (
	"fmt"
	"net/netip"
)

// packet is the content of one datagram.
type packet struct {
	id      uint16         // 15 bits
	ack     bool           // the top bit of the id on the wire
	flags   byte           // of a data packet
	from    netip.AddrPort // proxied form only
	to      netip.AddrPort // proxied form only
	payload []byte         // of a data packet
}

// write appends the packet's bytes to b.
func (s *Settings) write(b []byte, p *packet) []byte {
	command, mark := s.DataCommand, uint16(0)
	if p.ack {
		command, mark = s.AckCommand, ackMark
	}
	b = append(b, command, 0, 0)
	s.order().PutUint16(b[len(b)-2:], p.id|mark)
	if s.Form == Proxied {
		b = s.writeAddress(b, p.from)
		b = s.writeAddress(b, p.to)
	}
	if p.ack {
		return b
	}
	return append(append(b, p.flags), p.payload...)
}

func (s *Settings) writeAddress(b []byte, a netip.AddrPort) []byte {
	host := a.Addr().As4()
	b = append(append(b, host[:]...), 0, 0)
	s.order().PutUint16(b[len(b)-2:], a.Port())
	return b
}

func (s *Settings) readAddress(b []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), s.order().Uint16(b[4:]))
}

// read parses a datagram. ours is false if its first byte is of another
// protocol on the same port. The packet shares the datagram's bytes.
func (s *Settings) read(b []byte) (p packet, ours bool, err error) {
	if len(b) == 0 || (b[0] != s.DataCommand && b[0] != s.AckCommand) {
		return p, false, nil
	}
	if len(b) < 3 {
		return p, true, fmt.Errorf("packet of %d bytes: expected a command and an id of 2 bytes", len(b))
	}
	id := s.order().Uint16(b[1:])
	p.id, p.ack = id&idMask, id&ackMark != 0
	rest := b[3:]
	if s.Form == Proxied {
		if len(rest) < addresses {
			return p, true, fmt.Errorf("packet of %d bytes: expected %d bytes of addresses behind the id", len(b), addresses)
		}
		p.from, p.to, rest = s.readAddress(rest), s.readAddress(rest[addresses/2:]), rest[addresses:]
	}
	switch {
	case p.ack && len(rest) > 0:
		return p, true, fmt.Errorf("acknowledgement of id %d: %d bytes behind its end", p.id, len(rest))
	case p.ack:
		return p, true, nil
	case len(rest) == 0:
		return p, true, fmt.Errorf("data packet of id %d: expected its flags, found the end", p.id)
	}
	p.flags, p.payload = rest[0], rest[1:]
	return p, true, nil
}
