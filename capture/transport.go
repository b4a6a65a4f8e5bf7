package capture

import (
	"encoding/binary"
	"net/netip"
)

// transport decodes the UDP or TCP header at the cursor. b is the captured part
// of the IP payload, length its length on the wire.
func (d *Decoder) transport(c *cursor, protocol uint8, b []byte, length int) {
	switch protocol {
	case protocolUDP:
		d.udp(c, b, length)
	case protocolTCP:
		d.tcp(c, b, length)
	default:
		c.p.Src = netip.AddrPortFrom(c.src, 0)
		c.p.Dst = netip.AddrPortFrom(c.dst, 0)
		if protocol == protocolICMP && c.src.Is4() || protocol == protocolICMPv6 {
			d.icmp(c, protocol, b)
		}
	}
}

// ports sets the addresses. The ports are 0 if they were not captured.
func (c *cursor) ports(b []byte) (ports uint32) {
	if len(b) >= 4 {
		ports = binary.BigEndian.Uint32(b)
	}
	c.p.Src = netip.AddrPortFrom(c.src, uint16(ports>>16))
	c.p.Dst = netip.AddrPortFrom(c.dst, uint16(ports))
	return ports
}

func (d *Decoder) udp(c *cursor, b []byte, length int) {
	p := c.p
	ports := c.ports(b)
	if len(b) < 8 {
		d.short(c, LayerUDP, "captured bytes", 8, len(b))
		if len(b) >= 4 && length >= 8 { // cut by a snap length: the flow and the length are known
			p.Transport, p.Length = UDP, length-8
		}
		return
	}
	// A length of 0 means all of the IP payload: a jumbogram, or a segmenting
	// network card.
	switch claimed := int(binary.BigEndian.Uint16(b[4:])); {
	case claimed > length:
		d.wrong(c, LayerUDP, "length", "no more than the IP payload holds", claimed)
	case claimed >= 8:
		length = claimed
	case claimed != 0:
		d.short(c, LayerUDP, "length", 8, claimed)
		return
	}
	b = b[:min(length, len(b))]
	p.Transport = UDP
	p.Length = length - 8
	p.Payload, p.Checksum = b[8:], binary.BigEndian.Uint16(b[6:])
	if d.verify && len(b) == length && !udpChecksumHolds(c, b) {
		p.BadChecksum = true
	}
	c.layer(LayerUDP, 8)
	c.payloadSpans()
	if c.spans == nil { // the fragments of a reassembled one were compared already
		d.duplicates.check(p, c.route(), mix(c.mix, udpIdentity(ports, length)), p.Payload)
	}
}

// udpIdentity combines the fields that distinguish one UDP datagram from
// another.
func udpIdentity(ports uint32, length int) uint64 { return uint64(ports)<<16 | uint64(length) }

func (d *Decoder) tcp(c *cursor, b []byte, length int) {
	p := c.p
	ports := c.ports(b)
	if len(b) < 20 {
		d.short(c, LayerTCP, "captured bytes", 20, len(b))
		if len(b) >= 4 && length >= 20 {
			p.Transport = TCP
		}
		return
	}
	head := int(b[12]>>4) * 4
	if head < 20 {
		d.short(c, LayerTCP, "header length", 20, head)
		return
	}
	if head > length {
		d.wrong(c, LayerTCP, "header length", "no more than the IP payload holds", head)
		return
	}
	p.Transport = TCP
	p.TCPSeq, p.TCPAck = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	p.TCPFlags = b[13]
	p.Length = length - head
	if head > len(b) {
		d.short(c, LayerTCP, "captured bytes", head, len(b))
		return
	}
	p.Payload = b[head:]
	c.layer(LayerTCP, head)
	c.payloadSpans()
	if c.spans == nil {
		numbers := uint64(p.TCPSeq)<<32 | uint64(p.TCPAck)
		identity := mix(numbers, uint64(ports)<<24|uint64(p.TCPFlags)<<16|uint64(length))
		d.duplicates.check(p, c.route(), mix(c.mix, identity), p.Payload)
	}
}

// payloadSpans records the places of the payload's bytes, which begin at the
// cursor.
func (c *cursor) payloadSpans() {
	p := c.p
	if c.spans == nil {
		p.Spans = append(p.Spans, Span{Ref: p.Ref, Offset: c.at, Length: len(p.Payload)})
		return
	}
	skip, left := c.at, len(p.Payload)
	for _, s := range c.spans {
		if skip >= s.Length {
			skip -= s.Length
			continue
		}
		s.Offset, s.Length = s.Offset+skip, min(s.Length-skip, left)
		skip, left = 0, left-s.Length
		if s.Length > 0 {
			p.Spans = append(p.Spans, s)
		}
	}
}

// onesComplement adds up b as the Internet checksum does (RFC 1071).
func onesComplement(sum uint32, b []byte) uint16 {
	s := uint64(sum)
	for ; len(b) >= 4; b = b[4:] {
		s += uint64(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// pseudoHeader adds up the fields of the IP header that UDP and TCP checksums
// cover.
func pseudoHeader(src, dst netip.Addr, protocol uint8, length int) uint32 {
	sum := uint32(protocol) + uint32(length>>16) + uint32(length&0xffff)
	if src.Is4() && dst.Is4() {
		s, t := src.As4(), dst.As4()
		return sum + uint32(onesComplement(0, s[:])) + uint32(onesComplement(0, t[:]))
	}
	s, t := src.As16(), dst.As16()
	return sum + uint32(onesComplement(0, s[:])) + uint32(onesComplement(0, t[:]))
}

// udpChecksumHolds checks the checksum of a whole UDP datagram. Over IPv4 a
// checksum of 0 means that there is none.
func udpChecksumHolds(c *cursor, b []byte) bool {
	if b[6] == 0 && b[7] == 0 {
		return c.src.Is4()
	}
	return onesComplement(pseudoHeader(c.src, c.dst, protocolUDP, len(b)), b) == 0xffff
}

// Unfilled reports whether the checksum of a UDP datagram is not computed yet: the field
// holds the sum of the pseudo-header alone. The network card, or a virtual one's host, is to
// do the rest. So the capturing machine sent the datagram, or another machine inside it.
func (p *Packet) Unfilled() bool {
	return p.Transport == UDP && p.Fragments <= 1 && p.Checksum != 0 &&
		onesComplement(pseudoHeader(p.Src.Addr(), p.Dst.Addr(), protocolUDP, p.Length+8), nil) == p.Checksum
}
