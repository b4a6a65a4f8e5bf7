package anonymise

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/capture"
)

// Numbers of protocols in IP headers (IANA, Protocol Numbers).
const (
	protocolHopByHop     = 0
	protocolTCP          = 6
	protocolUDP          = 17
	protocolRouting      = 43
	protocolFragment     = 44
	protocolAH           = 51
	protocolDestinations = 60
	// protocolExperimental is for experiments (RFC 3692). It replaces every
	// protocol of which nothing may stay.
	protocolExperimental = 253
)

const optionNOP = 1 // of IPv4 and of TCP: one byte without a meaning

// route is what the headers of an IPv6 packet say of its route.
type route struct {
	kind  byte     // of the next extension header
	named int      // offset of the byte that names the next header
	final [16]byte // the last destination in a routing header
	given bool     // final is set
}

// carried returns the protocol that an IP header may name: UDP or TCP if
// something of it is kept, otherwise the protocol for experiments.
func (r *rewriting) carried(protocol byte, fragment bool) byte {
	if (protocol == protocolUDP || protocol == protocolTCP) &&
		(fragment || r.packet.Transport == capture.UDP || r.packet.Transport == capture.TCP) {
		return protocol
	}
	return protocolExperimental
}

// ipv4 writes an IPv4 header. Every option becomes bytes without a meaning,
// because record route, source routes and time stamps contain addresses.
func (r *rewriting) ipv4(to, from []byte) {
	const reserved = 0x80
	to[0], to[1] = from[0], from[1] // version, header length, traffic class
	r.size(to[2:], from[2:], len(r.from)-r.at+len(to))
	source := [16]byte{}
	copy(source[:], from[12:16])
	binary.BigEndian.PutUint16(to[4:], uint16(r.names.id(source, uint32(binary.BigEndian.Uint16(from[4:])), 1<<16-1)))
	to[6], to[7] = from[6]&^reserved, from[7]
	to[8] = from[8]
	to[9] = r.carried(from[9], binary.BigEndian.Uint16(from[6:])&0x3fff != 0)
	r.names.addr(to[12:16], from[12:16])
	r.names.addr(to[16:20], from[16:20])
	for i := 20; i < len(to); i++ {
		to[i] = optionNOP
	}
}

// size writes a length of an IP header: at most the length on the wire.
// captured is how many of the counted bytes were captured.
func (r *rewriting) size(to, from []byte, captured int) {
	onWire := captured + max(r.length-len(r.from), 0)
	binary.BigEndian.PutUint16(to, uint16(min(int(binary.BigEndian.Uint16(from)), onWire)))
}

// ipv6 writes the fixed header of IPv6, without its flow label.
func (r *rewriting) ipv6(to, from []byte, next *capture.Layer) {
	to[0], to[1] = from[0], from[1]&0xf0 // version, traffic class
	r.size(to[4:], from[4:], len(r.from)-r.at)
	to[7] = from[7] // hop limit
	r.names.addr(to[8:24], from[8:24])
	r.names.addr(to[24:40], from[24:40])
	r.route.named = r.at - 40 + 6
	r.following(from[6], next)
}

// following writes the byte that names the next header.
func (r *rewriting) following(kind byte, next *capture.Layer) {
	r.route.kind = kind
	if next == nil || next.Kind != capture.LayerIPv6Extension {
		kind = r.carried(kind, r.packet.Transport == capture.Fragment || r.packet.Fragments > 1)
	}
	r.to[r.route.named] = kind
}

// extension writes an extension header of IPv6. Options become padding.
// Addresses of routing headers are replaced.
func (r *rewriting) extension(to, from []byte, next *capture.Layer) {
	kind := r.route.kind
	r.route.named = r.at - len(to)
	r.following(from[0], next)
	switch kind {
	case protocolHopByHop, protocolDestinations:
		to[1] = from[1]
		const padN = 1 // RFC 8200, "Options"
		pad(to[2:], padN)
	case protocolRouting:
		to[1] = from[1]
		r.routing(to, from)
	case protocolFragment:
		binary.BigEndian.PutUint16(to[2:], binary.BigEndian.Uint16(from[2:])&^6) // without two reserved bits
		source := [16]byte(r.from[r.ip.Offset+8:])
		binary.BigEndian.PutUint32(to[4:], r.names.id(source, binary.BigEndian.Uint32(from[4:]), 1<<32-1))
	case protocolAH:
		to[1] = from[1] // SPI, sequence number and authentication data become zeros
	}
}

// pad fills b with options without a meaning: a code, a length, and zeros.
func pad(b []byte, code byte) {
	const longest = 255
	for len(b) > 1 {
		n := min(len(b)-2, longest)
		if len(b)-2-n == 1 {
			n-- // no such option fills a single byte
		}
		b[0], b[1] = code, byte(n)
		b = b[2+n:]
	}
}

// Kinds of routing headers (IANA, IPv6 Parameters).
const (
	routingSource  = 0 // RFC 2460; deprecated by RFC 5095
	routingHome    = 2 // RFC 6275
	routingSegment = 4 // RFC 8754
	// routingExperimental is for experiments (RFC 4727).
	routingExperimental = 253
)

// routing writes a routing header. It replaces the addresses. Everything after
// them becomes zeros. Of an unknown kind only the length is kept.
func (r *rewriting) routing(to, from []byte) {
	const head, size = 8, 16
	kind, left, count := from[2], from[3], (len(from)-head)/size
	last := count - 1 // the final destination
	switch kind {
	case routingSource:
	case routingHome:
		count = min(count, 1)
		last = count - 1
	case routingSegment:
		count = min(count, int(from[4])+1)
		last = 0 // segments are listed in reverse order
		to[4] = byte(max(count-1, 0))
	default:
		to[2] = routingExperimental
		return
	}
	to[2], to[3] = kind, byte(min(int(left), count))
	for i := range count {
		at := head + i*size
		r.names.addr(to[at:at+size], from[at:at+size])
	}
	if to[3] > 0 && count > 0 {
		r.route.final, r.route.given = [16]byte(to[head+last*size:]), true
	}
	if kind == routingSegment {
		const padN = 4 // RFC 8754, "PadN"
		pad(to[head+count*size:], padN)
	}
}

// fragmented reports whether the frame is a fragment of an IP datagram.
func (r *rewriting) fragmented() bool {
	if r.ip == nil {
		return false
	}
	if r.ip.Kind == capture.LayerIPv4 {
		return binary.BigEndian.Uint16(r.from[r.ip.Offset+6:])&0x3fff != 0
	}
	return r.packet.Transport == capture.Fragment || r.packet.Fragments > 1
}

// firstFragment writes the UDP or TCP header at the start of a fragmented
// datagram. Known parts of the rest come as patches.
func (r *rewriting) firstFragment() {
	var offset uint16
	var protocol byte
	if r.ip.Kind == capture.LayerIPv4 {
		offset, protocol = binary.BigEndian.Uint16(r.from[r.ip.Offset+6:])&0x1fff, r.from[r.ip.Offset+9]
	} else {
		at := r.route.named // the last known header: that of the fragment
		if at+4 > len(r.from) {
			return
		}
		offset, protocol = binary.BigEndian.Uint16(r.from[at+2:])&0xfff8, r.from[at]
	}
	from := r.from[r.at:]
	switch {
	case offset != 0:
	case protocol == protocolUDP && len(from) >= 8:
		r.udp(r.to[r.at:], from)
	case protocol == protocolTCP && len(from) >= 20:
		if head := int(from[12]>>4) * 4; head >= 20 && head <= len(from) {
			r.tcp(r.to[r.at:r.at+head], from[:head])
		}
	}
}
