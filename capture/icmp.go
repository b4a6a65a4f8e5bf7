package capture

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Quote is what an error of ICMP or ICMPv6 says of the packet that caused it. For example, a
// host without a socket on port 7777 answers a datagram to that port with a quote of it:
//
//	byte 0  type: 3 unreachable, 11 time exceeded (ICMPv6: 1 unreachable, 2 too big, 3 time exceeded)
//	byte 1  code
//	byte 2  checksum
//	byte 4  unused; the MTU is in bytes 6 and 7 of ICMP, and in bytes 4 to 7 of ICMPv6
//	byte 8  the IP header of the packet, and the bytes after it: 8 at least
//
// Source: RFC 792, RFC 1191, RFC 1812 (5.2.7) and RFC 4443.
type Quote struct {
	Reason   Reason
	Src, Dst netip.AddrPort // of the quoted packet
	Protocol Transport      // UDP or TCP
	MTU      int            // of the next link, if Reason is ReasonSize; 0 if the error does not say
	Size     int            // of the quoted IP packet in bytes
	IPID     uint32         // its identification; 0 if there is none
	Length   int            // of its UDP payload, from the UDP header; -1 if that is unknown
	Checksum uint16         // of UDP, as quoted
	Payload  []byte         // the first bytes of the UDP payload, often none; as valid as Packet.Payload
}

// Reason is what an ICMP error says happened to a packet.
type Reason uint8

// The reasons of ICMP errors.
const (
	ReasonOther      Reason = iota // unreachable for a reason that no other one names
	ReasonPort                     // no socket is open on the port
	ReasonHost                     // the host does not answer on its network
	ReasonNet                      // there is no route
	ReasonAdmin                    // a firewall or a policy refuses the packet
	ReasonProtocol                 // the host has no such protocol
	ReasonSize                     // the packet is larger than the next link carries
	ReasonHops                     // the packet passed as many routers as its TTL allows
	ReasonReassembly               // fragments of the packet did not all arrive
)

var reasonWords = [...]string{
	"destination unreachable", "port unreachable", "host unreachable", "network unreachable",
	"administratively prohibited", "protocol unreachable", "packet too big", "time to live exceeded",
	"fragment reassembly time exceeded",
}

// String returns the words that output uses: "port unreachable".
func (r Reason) String() string {
	if int(r) < len(reasonWords) {
		return reasonWords[r]
	}
	return "unknown"
}

// Reasons returns the words of all reasons.
func Reasons() []string { return slices.Clone(reasonWords[:]) }

const (
	protocolICMP   = 1
	protocolICMPv6 = 58

	icmpHeader = 8
)

// unreachable4 and unreachable6 hold the reasons by code.
// Source: the registry "ICMP Parameters" of IANA, and RFC 4443 (3.1)
var (
	unreachable4 = [...]Reason{
		ReasonNet, ReasonHost, ReasonProtocol, ReasonPort, ReasonSize, ReasonOther, ReasonNet, ReasonHost, ReasonHost,
		ReasonAdmin, ReasonAdmin, ReasonNet, ReasonHost, ReasonAdmin, ReasonAdmin, ReasonAdmin,
	}
	unreachable6 = [...]Reason{
		ReasonNet, ReasonAdmin, ReasonOther, ReasonHost, ReasonPort, ReasonAdmin, ReasonAdmin,
	}
)

// icmp sets the quote of an ICMP or ICMPv6 error whose captured part is b. It leaves other
// messages, and quotes without ports, alone.
func (d *Decoder) icmp(c *cursor, protocol uint8, b []byte) {
	if len(b) < icmpHeader {
		return
	}
	q := &d.quote
	*q = Quote{Length: -1}
	if protocol == protocolICMP {
		switch b[0] {
		case 3:
			q.Reason = reasonOf(unreachable4[:], b[1])
		case 11:
			q.Reason = exceeded(b[1])
		default:
			return
		}
		if q.Reason == ReasonSize {
			q.MTU = int(binary.BigEndian.Uint16(b[6:]))
		}
	} else {
		switch b[0] {
		case 1:
			q.Reason = reasonOf(unreachable6[:], b[1])
		case 2:
			// A link carries 65,535 bytes at most, but for jumbograms. The bound keeps sums small.
			q.Reason, q.MTU = ReasonSize, int(min(binary.BigEndian.Uint32(b[4:]), 1<<30))
		case 3:
			q.Reason = exceeded(b[1])
		default:
			return
		}
	}
	if !q.read(b[icmpHeader:]) {
		return
	}
	c.p.Quote = q
	if c.spans == nil {
		d.duplicates.check(c.p, c.route(), mix(c.mix, binary.LittleEndian.Uint64(b)), b[icmpHeader:])
	}
}

func reasonOf(codes []Reason, code uint8) Reason {
	if int(code) < len(codes) {
		return codes[code]
	}
	return ReasonOther
}

// exceeded returns the reason of a time exceeded message.
func exceeded(code uint8) Reason {
	switch code {
	case 0:
		return ReasonHops
	case 1:
		return ReasonReassembly
	}
	return ReasonOther
}

// read reads the quoted packet. It returns false unless the ports are there.
func (q *Quote) read(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	var src, dst netip.Addr
	var protocol uint8
	switch b[0] >> 4 {
	case 4:
		if len(b) < ipv4Header {
			return false
		}
		head := int(b[0]&15) * 4
		if head < ipv4Header || head > len(b) || binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
			return false // a later fragment begins without ports
		}
		q.Size, q.IPID = int(binary.BigEndian.Uint16(b[2:])), uint32(binary.BigEndian.Uint16(b[4:]))
		src, dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
		protocol, b = b[9], b[head:]
	case 6:
		if len(b) < ipv6Header {
			return false
		}
		q.Size = ipv6Header + int(binary.BigEndian.Uint16(b[4:]))
		src, dst = netip.AddrFrom16([16]byte(b[8:24])).Unmap(), netip.AddrFrom16([16]byte(b[24:40])).Unmap()
		var ok bool
		if protocol, b, ok = q.skipExtensions(b[6], b[ipv6Header:]); !ok {
			return false
		}
	default:
		return false
	}
	if len(b) < 4 {
		return false
	}
	q.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	q.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	switch protocol {
	case protocolUDP:
		q.Protocol = UDP
		if len(b) < udpHeader {
			return true
		}
		if length := int(binary.BigEndian.Uint16(b[4:])); length >= udpHeader {
			q.Length = length - udpHeader
			q.Payload = b[udpHeader:min(len(b), length)]
		}
		q.Checksum = binary.BigEndian.Uint16(b[6:])
	case protocolTCP:
		q.Protocol = TCP
	default:
		return false
	}
	return true
}

// skipExtensions moves past the extension headers of a quoted IPv6 packet. It returns false
// for a later fragment, and where the headers are cut.
func (q *Quote) skipExtensions(next uint8, b []byte) (protocol uint8, rest []byte, ok bool) {
	for range maxHeaders {
		switch next {
		case protocolHopByHop, protocolRouting, protocolDestinations, protocolAH, protocolFragment:
		default:
			return next, b, true
		}
		if len(b) < 8 {
			return 0, nil, false
		}
		n := (int(b[1]) + 1) * 8
		switch next {
		case protocolAH:
			n = (int(b[1]) + 2) * 4
		case protocolFragment:
			n = 8
			if binary.BigEndian.Uint16(b[2:])&^7 != 0 {
				return 0, nil, false
			}
			q.IPID = binary.BigEndian.Uint32(b[4:])
		}
		if n > len(b) {
			return 0, nil, false
		}
		next, b = b[0], b[n:]
	}
	return 0, nil, false
}

// Unfilled reports whether the checksum of the quoted datagram, as the tap saw it when it was
// sent, was not computed yet: see [Packet.Unfilled].
func (q *Quote) Unfilled(checksum uint16) bool {
	return q.Length >= 0 && onesComplement(
		pseudoHeader(q.Src.Addr(), q.Dst.Addr(), protocolUDP, q.Length+udpHeader), nil) == checksum
}
