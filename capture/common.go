package capture

import (
	"encoding/binary"
	"net/netip"
)

// decodeCommon takes apart what nearly all frames of game traffic are: Ethernet
// without tags, IPv4 without options or fragments, a whole UDP datagram. It is
// false, and p untouched, for every other shape. Its result is that of
// decodeAny, at half the cost.
func (d *Decoder) decodeCommon(f *Frame, p *Packet) bool {
	const (
		ip      = 14
		udp     = ip + ipv4Header
		payload = udp + udpHeader
	)
	b := f.Data
	if len(b) < payload || f.LinkType != LinkEthernet || len(f.Options) != 0 || d.verify {
		return false
	}
	const least = 0x45 // version 4, five words of header
	if binary.BigEndian.Uint16(b[12:]) != etherIPv4 || b[ip] != least || b[ip+9] != protocolUDP || binary.BigEndian.Uint16(b[ip+6:])&0x3fff != 0 {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[udp+4:]))
	if length < udpHeader || length > int(binary.BigEndian.Uint16(b[ip+2:]))-ipv4Header || udp+length > len(b) {
		return false
	}
	id := binary.BigEndian.Uint16(b[ip+4:])
	ports := binary.BigEndian.Uint32(b[udp:])
	p.Ref, p.At = f.Ref, f.At
	p.Transport = UDP
	p.Src = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[ip+12:ip+16])), uint16(ports>>16))
	p.Dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[ip+16:ip+20])), uint16(ports))
	p.Payload, p.Length = b[payload:udp+length], length-udpHeader
	p.TTL, p.IPID, p.Fragments = b[ip+8], uint32(id), 0
	p.Spans = append(p.Spans[:0], Span{Ref: f.Ref, Offset: payload, Length: length - udpHeader})
	p.Layers = append(p.Layers[:0],
		Layer{Kind: LayerEthernet, Offset: 0, Length: ip},
		Layer{Kind: LayerIPv4, Offset: ip, Length: ipv4Header},
		Layer{Kind: LayerUDP, Offset: udp, Length: udpHeader})
	p.Direction, p.Overlap, p.Duplicate, p.BadChecksum = NoDirection, false, false, false
	p.TCPSeq, p.TCPAck, p.TCPFlags = 0, 0, 0
	p.Problem = nil
	c := cursor{f: f, p: p}
	d.duplicates.check(p, c.route(), mix(ipv4Identity(b[ip:], id, protocolUDP), udpIdentity(ports, length)), p.Payload)
	return true
}
