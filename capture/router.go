package capture

import (
	"encoding/binary"
	"net/netip"
)

// Router tells which frames concern the same two hosts, so that several goroutines can share the
// frames of a capture. All pieces of a fragmented datagram concern the hosts of their IP header.
// It is not safe for concurrent use.
type Router struct {
	decoder *Decoder
	packet  Packet
}

// NewRouter returns a router.
func NewRouter(o DecodeOptions) *Router { return &Router{decoder: NewDecoder(o)} }

// Route returns a number that is the same for all frames between two hosts, in either direction.
// It is 0 for a frame without an IP header. An ICMP error concerns the hosts that
// it quotes: then quotes is true.
func (r *Router) Route(f *Frame) (pair uint64, quotes bool) {
	b := f.Data
	kind := uint16(etherIPv4)
	switch f.LinkType {
	case LinkEthernet:
		if len(b) < 14 {
			return 0, false
		}
		kind, b = binary.BigEndian.Uint16(b[12:]), b[14:]
	case LinkRaw, LinkIPv4:
	default:
		return r.route(f)
	}
	if kind == etherIPv4 && len(b) >= ipv4Header && b[0]>>4 == 4 && (b[9] == protocolUDP || b[9] == protocolTCP) {
		src, dst := binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:])
		return hostHash(0, uint64(src)) + hostHash(0, uint64(dst)), false
	}
	return r.route(f)
}

// route decodes a frame of any shape to find its hosts.
func (r *Router) route(f *Frame) (pair uint64, quotes bool) {
	var c cursor
	r.decoder.walk(&c, f, &r.packet)
	if !c.src.IsValid() || !c.dst.IsValid() {
		return 0, false
	}
	return hashOf(c.src) + hashOf(c.dst), r.packet.Quote != nil
}

func hashOf(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return hostHash(0, uint64(binary.BigEndian.Uint32(b[:])))
	}
	b := a.As16()
	return hostHash(binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]))
}

// hostHash hashes an address. Two pairs with one hash only share a goroutine.
func hostHash(hi, lo uint64) uint64 { return mix(hi+1, lo+1) }
