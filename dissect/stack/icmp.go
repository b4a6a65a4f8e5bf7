package stack

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// LayerTypeQuote is the number of Quote.
var LayerTypeQuote = gopacket.RegisterLayerType(1306,
	gopacket.LayerTypeMetadata{Name: "Quote", Decoder: gopacket.DecodePayload})

// Quote is the body of an ICMP error: the beginning of the packet that the
// error is about. Layer.Quoted has that packet, decoded as a packet within.
type Quote struct{ layers.BaseLayer }

// LayerType returns LayerTypeQuote.
func (*Quote) LayerType() gopacket.LayerType { return LayerTypeQuote }

// quotes4 reports whether an ICMP message quotes the packet that it is about.
func quotes4(l *layers.ICMPv4) bool {
	switch l.TypeCode.Type() {
	case layers.ICMPv4TypeDestinationUnreachable, layers.ICMPv4TypeSourceQuench, layers.ICMPv4TypeRedirect,
		layers.ICMPv4TypeTimeExceeded, layers.ICMPv4TypeParameterProblem:
		return true
	}
	return false
}

// quotes6 is quotes4 for ICMPv6.
func quotes6(l *layers.ICMPv6) bool {
	switch l.TypeCode.Type() {
	case layers.ICMPv6TypeDestinationUnreachable, layers.ICMPv6TypePacketTooBig, layers.ICMPv6TypeTimeExceeded,
		layers.ICMPv6TypeParameterProblem:
		return true
	}
	return false
}

// quote returns a decoder of a body that quotes a packet from byte skip on.
func (r *run) quote(skip int, first gopacket.DecodeFunc) gopacket.DecodeFunc {
	return func(data []byte, p gopacket.PacketBuilder) error {
		if len(data) < skip {
			p.SetTruncated()
			return short("ICMPv6", skip, len(data))
		}
		p.AddLayer(&Quote{BaseLayer: layers.BaseLayer{Contents: data}})
		last := &r.out.Layers[len(r.out.Layers)-1]
		if len(data) > skip {
			last.Quoted = decode(data[skip:], first, &run{depth: r.depth, base: last.Offset + skip, quoted: true})
		}
		return nil
	}
}
