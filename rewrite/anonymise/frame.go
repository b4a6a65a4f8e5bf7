package anonymise

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/capture"
)

// framer rewrites frames.
type framer struct{ names *names }

const (
	// experimental is the EtherType of a frame of which only the length may stay:
	// IEEE 802 Local Experimental EtherType 1.
	experimental = 0x88b5
	etherLeast   = 0x0600 // the smallest EtherType; a smaller value is a length (IEEE 802.3)
)

// rewriting is one frame during its rewriting. The new frame starts as zeros,
// and only bytes of a known meaning are written to it. So an unexpected header
// leaves nothing.
type rewriting struct {
	names  *names
	from   []byte // as captured
	to     []byte
	packet *capture.Packet
	length int            // length of the frame on the wire
	ip     *capture.Layer // the IP header; nil if there is none
	upper  *capture.Layer // the UDP or TCP header in this frame; nil if there is none
	route  route          // of IPv6
	at     int            // end of the last known header
}

// rewrite changes f to other addresses and another payload. The argument
// payload is the whole payload if it lies in this frame. Otherwise patches are
// its parts in this frame. The result is false for a frame of which only the
// length is left.
func (w *framer) rewrite(f *capture.Frame, p *capture.Packet, payload []byte, patches []patch) bool {
	r := rewriting{names: w.names, from: f.Data, to: make([]byte, len(f.Data)), packet: p, length: f.Length}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Offset < r.at || l.Offset+l.Length > len(r.from) {
			break
		}
		r.at = l.Offset + l.Length
		var next *capture.Layer
		if i+1 < len(p.Layers) {
			next = &p.Layers[i+1]
		}
		r.header(l, next)
	}
	kept := r.ip != nil
	switch {
	case r.upper != nil:
		if len(p.Spans) > 0 && p.Spans[0].Ref == f.Ref && p.Spans[0].Offset <= len(r.to) {
			span := p.Spans[0]
			copy(r.to[span.Offset:min(span.Offset+span.Length, len(r.to))], payload)
		}
	case r.fragmented():
		r.firstFragment()
	case r.known():
		r.cutHeader()
	default:
		kept = false
	}
	for _, x := range patches {
		if x.at >= 0 && x.at < len(r.to) {
			copy(r.to[x.at:], x.bytes)
		}
	}
	r.checksums()
	f.Data = r.to
	return kept
}

// header writes the header l. next is the header after it, or nil if no known
// header follows.
func (r *rewriting) header(l, next *capture.Layer) {
	from, to := r.from[l.Offset:r.at], r.to[l.Offset:r.at]
	switch l.Kind {
	case capture.LayerEthernet:
		r.names.mac(to, from)
		r.names.mac(to[6:], from[6:])
		r.etherType(to[12:], from[12:], next)
	case capture.LayerVLAN:
		binary.BigEndian.PutUint16(to, r.names.vlan(binary.BigEndian.Uint16(from)))
		r.etherType(to[2:], from[2:], next)
	case capture.LayerSNAP:
		copy(to[:6], from[:6]) // the decoder accepts only two values of them
		r.etherType(to[6:], from[6:], next)
	case capture.LayerSLL:
		binary.BigEndian.PutUint16(to, packetType(binary.BigEndian.Uint16(from)))
		binary.BigEndian.PutUint16(to[2:], hardwareType(binary.BigEndian.Uint16(from[2:])))
		r.hardware(to[4:14], from[4:14], binary.BigEndian.Uint16(from[4:]), 2)
		r.etherType(to[14:], from[14:], next)
	case capture.LayerSLL2:
		r.etherType(to, from, next)
		binary.BigEndian.PutUint32(to[4:], r.names.devices.of(binary.BigEndian.Uint32(from[4:])))
		binary.BigEndian.PutUint16(to[8:], hardwareType(binary.BigEndian.Uint16(from[8:])))
		to[10] = byte(packetType(uint16(from[10])))
		r.hardware(to[11:20], from[11:20], uint16(from[11]), 1)
	case capture.LayerNull:
		if next != nil { // the family is then one of a few known numbers
			copy(to, from)
		}
	case capture.LayerPPPoE:
		r.pppoe(to, from, next)
	case capture.LayerIPv4:
		r.ip = l
		r.ipv4(to, from)
	case capture.LayerIPv6:
		r.ip = l
		r.ipv6(to, from, next)
	case capture.LayerIPv6Extension:
		r.extension(to, from, next)
	case capture.LayerUDP, capture.LayerTCP:
		r.upper = l
		r.transport(to, from)
	}
}

// etherType writes the type of what follows a link header. It keeps the type of
// a known header. For an unknown one it writes a type for experiments.
func (r *rewriting) etherType(to, from []byte, next *capture.Layer) {
	kind := binary.BigEndian.Uint16(from)
	switch {
	case next == nil:
		kind = experimental
	case kind < etherLeast: // a length, before LLC
		kind = min(kind, uint16(min(len(r.from)-r.at, etherLeast-1)))
	}
	binary.BigEndian.PutUint16(to, kind)
}

// hardware writes the length and the address of a cooked header. The length
// takes width bytes. Addresses other than Ethernet's become zeros.
func (r *rewriting) hardware(to, from []byte, length uint16, width int) {
	const ethernet = 6
	to[width-1] = byte(min(length, 8)) // the address field has room for 8 bytes
	if length == ethernet {
		r.names.mac(to[width:], from[width:])
	}
}

// packetType returns the packet type of a cooked header: one of Linux' PACKET_
// values (linux/if_packet.h), or 0.
func packetType(t uint16) uint16 {
	const last = 7 // PACKET_KERNEL
	if t > last {
		return 0
	}
	return t
}

// hardwareTypes are the hardware types of Linux (ARPHRD_ in linux/if_arp.h)
// that occur in captures of IP traffic. For 770, 778, 803 and 824, no EtherType
// follows.
var hardwareTypes = map[uint16]bool{
	1: true, 32: true, 512: true, 519: true, 768: true, 769: true, 770: true, 772: true, 776: true, 778: true,
	801: true, 802: true, 803: true, 823: true, 824: true, 65534: true,
}

// hardwareType returns the hardware type of a cooked header. It returns
// ARPHRD_VOID for a type that is not in the table.
func hardwareType(t uint16) uint16 {
	const void = 0xffff
	if !hardwareTypes[t] {
		return void
	}
	return t
}

// pppoe writes the header of a PPPoE session and the protocol field of PPP.
func (r *rewriting) pppoe(to, from []byte, next *capture.Layer) {
	to[0] = 0x11 // version 1, type 1 (RFC 2516)
	binary.BigEndian.PutUint16(to[2:], uint16(r.names.sessions.of(uint32(binary.BigEndian.Uint16(from[2:])))))
	const protocol = 2 // size of the protocol field, which the length includes
	length := int(binary.BigEndian.Uint16(from[4:]))
	binary.BigEndian.PutUint16(to[4:], uint16(min(length, max(r.length, len(r.from))-r.at+protocol)))
	if next != nil {
		copy(to[6:8], from[6:8])
	}
}
