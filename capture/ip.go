package capture

import (
	"encoding/binary"
	"net/netip"
)

const (
	protocolHopByHop     = 0
	protocolTCP          = 6
	protocolUDP          = 17
	protocolRouting      = 43
	protocolFragment     = 44
	protocolAH           = 51
	protocolDestinations = 60
)

func (d *Decoder) ipv4(c *cursor) {
	b := c.data[c.at:]
	if len(b) < 20 {
		d.short(c, LayerIPv4, "captured bytes", 20, len(b))
		return
	}
	if b[0]>>4 != 4 {
		d.wrong(c, LayerIPv4, "version", "4", int(b[0]>>4))
		return
	}
	head := int(b[0]&15) * 4
	if head < 20 {
		d.short(c, LayerIPv4, "header length", 20, head)
		return
	}
	if head > len(b) {
		d.short(c, LayerIPv4, "captured bytes", head, len(b))
		return
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 {
		// A segmenting network card fills the length in later: the frame's own length
		// is all there is.
		total = max(c.length-c.at, len(b))
	}
	if total < head {
		d.short(c, LayerIPv4, "total length", head, total)
		return
	}
	p := c.p
	p.TTL = b[8]
	id := binary.BigEndian.Uint16(b[4:])
	p.IPID = uint32(id)
	c.src = netip.AddrFrom4([4]byte(b[12:16]))
	c.dst = netip.AddrFrom4([4]byte(b[16:20]))
	protocol := b[9]
	c.mix = ipv4Identity(b, id, protocol)
	if d.verify && onesComplement(0, b[:head]) != 0xffff {
		p.BadChecksum = true
	}
	fragment := binary.BigEndian.Uint16(b[6:]) & 0x3fff // more fragments, offset
	c.layer(LayerIPv4, head)
	b = b[head:min(total, len(b))]
	length := total - head
	if fragment != 0 {
		key := fragmentKey{src: c.src, dst: c.dst, id: uint32(id), protocol: protocol, file: p.Ref.File()}
		if !d.fragment(c, key, protocol, int(fragment&0x1fff)*8, fragment&0x2000 != 0, b, length) {
			return
		}
		b, length, protocol = c.data, c.length, c.protocol
	}
	d.transport(c, protocol, b, length)
}

// ipv4Identity hashes the fields that distinguish one IPv4 packet with header b
// from another.
func ipv4Identity(b []byte, id uint16, protocol uint8) uint64 {
	return mix(binary.LittleEndian.Uint64(b[12:20]), uint64(id)<<32|uint64(protocol)<<24)
}

func (d *Decoder) ipv6(c *cursor) {
	b := c.data[c.at:]
	if len(b) < 40 {
		d.short(c, LayerIPv6, "captured bytes", 40, len(b))
		return
	}
	if b[0]>>4 != 6 {
		d.wrong(c, LayerIPv6, "version", "6", int(b[0]>>4))
		return
	}
	p := c.p
	length := int(binary.BigEndian.Uint16(b[4:]))
	next := b[6]
	p.TTL = b[7]
	c.src = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	c.dst = netip.AddrFrom16([16]byte(b[24:40])).Unmap()
	c.mix = mix(mix(binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])),
		mix(binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:]))+1)
	if length == 0 {
		length = max(c.length-c.at, len(b)) - 40 // a jumbogram, or a length that a segmenting network card fills in later
	}
	c.layer(LayerIPv6, 40)
	b = b[40:min(40+length, len(b))]
	for headers := 0; ; headers++ {
		kind, n := next, 0
		switch kind {
		case protocolHopByHop, protocolRouting, protocolDestinations:
			if len(b) >= 2 {
				n = (int(b[1]) + 1) * 8
			}
		case protocolAH:
			if len(b) >= 2 {
				n = (int(b[1]) + 2) * 4
			}
		case protocolFragment:
			n = 8
		default:
			d.transport(c, next, b, length)
			return
		}
		if headers == maxHeaders {
			d.wrong(c, LayerIPv6Extension, "extension headers", "at most 16", headers+1)
			return
		}
		if n == 0 || n > len(b) {
			d.short(c, LayerIPv6Extension, "captured bytes", max(n, 8), len(b))
			return
		}
		h := b[:n]
		next = h[0]
		c.layer(LayerIPv6Extension, n)
		b, length = b[n:], length-n
		if kind != protocolFragment {
			continue
		}
		offset := binary.BigEndian.Uint16(h[2:]) // bytes in the upper 13 bits; bit 0: more fragments follow
		p.IPID = binary.BigEndian.Uint32(h[4:])
		c.mix = mix(c.mix, uint64(p.IPID)<<16)
		if offset&0xfff9 == 0 {
			continue // atomic: whole (RFC 6946)
		}
		if c.spans != nil {
			d.wrong(c, LayerIPv6Extension, "fragment headers", "one", 2)
			return
		}
		key := fragmentKey{src: c.src, dst: c.dst, id: p.IPID, file: p.Ref.File()}
		if !d.fragment(c, key, next, int(offset&^7), offset&1 != 0, b, length) {
			return
		}
		b, length, next = c.data, c.length, c.protocol
	}
}
