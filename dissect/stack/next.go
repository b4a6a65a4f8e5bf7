package stack

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/capture"
)

// firstDecoder returns the decoder of a link type; nil if none is known.
func firstDecoder(link uint32) gopacket.Decoder {
	switch link {
	case capture.LinkEthernet:
		return layers.LayerTypeEthernet
	case capture.LinkSLL:
		return own{"LinuxSLL", decodeCooked}
	case capture.LinkSLL2:
		return own{"LinuxSLL2", decodeCooked2}
	case capture.LinkNull, capture.LinkLoop:
		return own{"Loopback", decodeLoopback}
	case capture.LinkRaw, capture.LinkRaw12, capture.LinkRaw14:
		return own{"IP", decodeRawIP}
	case capture.LinkIPv4:
		return own{"IPv4", decodeIPv4}
	case capture.LinkIPv6:
		return own{"IPv6", decodeIPv6}
	}
	return nil
}

// own is a decoder of this package, with the name of its layer.
type own struct {
	name string
	gopacket.DecodeFunc
}

// nameOf returns the name of the layer that a decoder decodes.
func nameOf(d gopacket.Decoder) string {
	switch d := d.(type) {
	case own:
		return d.name
	case gopacket.LayerType:
		return d.String()
	}
	return "Payload"
}

// after decides what decodes the payload of last. gopacket suggests next.
func (r *run) after(last gopacket.Layer, next gopacket.Decoder) gopacket.Decoder {
	switch l := last.(type) {
	case *layers.Ethernet:
		return etherType(l.EthernetType, true)
	case *layers.Dot1Q:
		return etherType(l.Type, true)
	case *layers.SNAP:
		if oui := [3]byte(l.OrganizationalCode); oui != [3]byte{} && oui != [3]byte{0, 0, 0xf8} {
			return gopacket.DecodePayload
		}
		return etherType(l.Type, false)
	case *layers.IPv6Fragment:
		if l.FragmentOffset == 0 && !l.MoreFragments { // atomic: whole (RFC 6946)
			return r.transport(known(l.NextHeader))
		}
	case *layers.UDP:
		return r.datagrams(l)
	case *layers.TCP:
		return gopacket.DecodePayload
	case *layers.ICMPv4:
		if quotes4(l) {
			return own{"quoted packet", r.quote(0, decodeIPv4)}
		}
	case *layers.ICMPv6:
		if quotes6(l) { // after the four bytes that each error of ICMPv6 has
			return own{"quoted packet", r.quote(4, decodeIPv6)}
		}
	case *layers.GRE, *layers.VXLAN, *layers.Geneve, *layers.GTPv1U, *layers.MPLS, *layers.EtherIP:
		r.inner = true
	case *layers.IPv4, *layers.IPv6:
		if name := nameOf(next); name == "IPv4" || name == "IPv6" {
			r.inner = true
		}
	}
	return r.transport(known(next))
}

// transport puts this package's decoders in the place of gopacket's.
func (r *run) transport(next gopacket.Decoder) gopacket.Decoder {
	switch t, _ := next.(gopacket.LayerType); t {
	case layers.LayerTypeUDP:
		return own{"UDP", decodeUDP}
	case layers.LayerTypeTCP:
		return own{"TCP", r.decodeTCP}
	}
	return next
}

// datagrams decides what decodes the payload of a UDP datagram: what detection
// found, else what gopacket has for the port.
func (r *run) datagrams(l *layers.UDP) gopacket.Decoder {
	if r.chosen.Protocol != nil && !r.inner {
		return own{r.chosen.Protocol.Name, r.datagram}
	}
	t := l.NextLayerType()
	if t == gopacket.LayerTypePayload || t == gopacket.LayerTypeZero {
		return gopacket.DecodePayload
	}
	r.byPort = true
	if t == layers.LayerTypeGTPv1U {
		return own{"GTPv1U", decodeGTP}
	}
	return t
}

// Ends reports whether gopacket knows no layer by these ports of UDP. Decode then
// takes the payload for bytes, unless detection finds a protocol.
func Ends(src, dst uint16) bool {
	udp := layers.UDP{SrcPort: layers.UDPPort(src), DstPort: layers.UDPPort(dst)}
	t := udp.NextLayerType()
	return t == gopacket.LayerTypePayload || t == gopacket.LayerTypeZero
}

// etherType returns the decoder of what an EtherType names. A value below
// 0x0600 is a length; LLC follows it, but not after a SNAP header.
func etherType(t layers.EthernetType, lengths bool) gopacket.Decoder {
	switch {
	case t < 0x0600 && lengths:
		return layers.LayerTypeLLC
	case t < 0x0600:
		return gopacket.DecodePayload
	case t == etherQinQ9:
		return layers.LayerTypeDot1Q
	}
	return known(t)
}

// etherQinQ9 is the tag of stacked VLANs before IEEE 802.1ad. gopacket 1.1.19
// does not know it.
const etherQinQ9 layers.EthernetType = 0x9100

// known returns the decoder of a number: this package's own, or gopacket's. For
// a number that gopacket does not know, which is no error of the frame, it
// returns a decoder that keeps the bytes.
func known(next gopacket.Decoder) gopacket.Decoder {
	var meta layers.EnumMetadata
	switch n := next.(type) {
	case layers.EthernetType:
		meta = layers.EthernetTypeMetadata[n]
	case layers.IPProtocol:
		meta = layers.IPProtocolMetadata[n]
	case layers.PPPType:
		switch n {
		case layers.PPPTypeIPv4:
			return own{"IPv4", decodeIPv4}
		case layers.PPPTypeIPv6:
			return own{"IPv6", decodeIPv6}
		}
		meta = layers.PPPTypeMetadata[n]
	case layers.LinkType:
		meta = layers.LinkTypeMetadata[n]
		if n == layers.LinkTypeEthernet {
			return layers.LayerTypeEthernet
		}
	case layers.SCTPChunkType:
		meta = layers.SCTPChunkTypeMetadata[n]
	case gopacket.LayerType:
		return replaced(n)
	default:
		return next
	}
	if _, unknown := meta.DecodeWith.(error); unknown || meta.DecodeWith == nil {
		return gopacket.DecodePayload
	}
	if meta.LayerType != gopacket.LayerTypeZero {
		return replaced(meta.LayerType)
	}
	return meta.DecodeWith
}

// replaced returns the decoder of a layer: this package's own, or gopacket's.
func replaced(t gopacket.LayerType) gopacket.Decoder {
	switch t {
	case gopacket.LayerTypeZero:
		return gopacket.DecodePayload
	case layers.LayerTypeIPv4:
		return own{"IPv4", decodeIPv4}
	case layers.LayerTypeIPv6:
		return own{"IPv6", decodeIPv6}
	case layers.LayerTypeIPv6HopByHop:
		return own{"IPv6HopByHop", decodeHopByHop}
	case layers.LayerTypeIPv6Destination:
		return own{"IPv6Destination", decodeDestination}
	case layers.LayerTypeIPv6Routing:
		return own{"IPv6Routing", decodeRouting}
	case layers.LayerTypeIPSecAH:
		return own{"IPSecAH", decodeAH}
	case layers.LayerTypePPPoE:
		return own{"PPPoE", decodePPPoE}
	}
	return t
}
