package stack

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// LayerTypeIPv6SegmentRouting is the number of IPv6SegmentRouting.
var LayerTypeIPv6SegmentRouting = gopacket.RegisterLayerType(1304,
	gopacket.LayerTypeMetadata{Name: "IPv6SegmentRouting", Decoder: gopacket.DecodeFunc(decodeRouting)})

// IPv6SegmentRouting is an IPv6 routing header of any type but 0. gopacket
// 1.1.19 decodes type 0 only, and refuses the packet for all others.
type IPv6SegmentRouting struct {
	layers.BaseLayer
	NextHeader   layers.IPProtocol
	RoutingType  uint8 // 4 is segment routing (RFC 8754)
	SegmentsLeft uint8
	// The rest is set for segment routing only.
	LastEntry uint8
	Flags     uint8
	Tag       uint16
	Segments  []net.IP // the last segment first
}

// LayerType returns LayerTypeIPv6SegmentRouting.
func (*IPv6SegmentRouting) LayerType() gopacket.LayerType { return LayerTypeIPv6SegmentRouting }

func decodeRawIP(data []byte, p gopacket.PacketBuilder) error {
	if len(data) == 0 {
		p.SetTruncated()
		return short("IP", 1, 0)
	}
	if data[0]>>4 == 6 {
		return decodeIPv6(data, p)
	}
	return decodeIPv4(data, p)
}

// decodeIPv4 decodes an IPv4 header as gopacket does. It goes on where only the
// options are wrong, since they say nothing of what follows.
func decodeIPv4(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 20 {
		p.SetTruncated()
		return short("IPv4", 20, len(data))
	}
	if version := data[0] >> 4; version != 4 {
		return fmt.Errorf("expected version 4, found %d", version)
	}
	l := &layers.IPv4{}
	err := l.DecodeFromBytes(data, p)
	if l.Payload == nil { // gopacket sets it before it reads the options
		return err
	}
	if claimed := int(binary.BigEndian.Uint16(data[2:])); claimed == 0 && len(data) > 0xffff {
		l.Payload = data[len(l.Contents):] // gopacket keeps the length in 16 bits
	}
	p.AddLayer(l)
	p.SetNetworkLayer(l)
	if l.Flags&layers.IPv4MoreFragments != 0 || l.FragOffset != 0 {
		return p.NextDecoder(gopacket.DecodeFragment)
	}
	return p.NextDecoder(ipPayload(l.Protocol))
}

// decodeIPv6 decodes an IPv6 header alone. gopacket takes the hop-by-hop
// options for a part of it and reads them beyond the packet's end. It also
// refuses a length of 0, which network cards leave to be filled in.
func decodeIPv6(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 40 {
		p.SetTruncated()
		return short("IPv6", 40, len(data))
	}
	if version := data[0] >> 4; version != 6 {
		return fmt.Errorf("expected version 6, found %d", version)
	}
	word := binary.BigEndian.Uint32(data)
	l := &layers.IPv6{
		BaseLayer: layers.BaseLayer{Contents: data[:40], Payload: data[40:]},
		Version:   6, TrafficClass: uint8(word >> 20), FlowLabel: word & 0xfffff,
		Length: binary.BigEndian.Uint16(data[4:]), NextHeader: layers.IPProtocol(data[6]), HopLimit: data[7],
		SrcIP: net.IP(data[8:24]), DstIP: net.IP(data[24:40]),
	}
	switch n := int(l.Length); {
	case n > len(l.Payload):
		p.SetTruncated()
	case n > 0:
		l.Payload = l.Payload[:n]
	}
	p.AddLayer(l)
	p.SetNetworkLayer(l)
	return p.NextDecoder(known(l.NextHeader))
}

// ipPayload returns the decoder of what an IPv4 packet carries. IPv6's
// extension headers belong to IPv6 alone.
func ipPayload(protocol layers.IPProtocol) gopacket.Decoder {
	switch protocol {
	case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Fragment,
		layers.IPProtocolIPv6Destination:
		return gopacket.DecodePayload
	}
	return known(protocol)
}

// extension returns an extension header's bytes and what follows it.
func extension(name string, data []byte, p gopacket.PacketBuilder) (layers.BaseLayer, error) {
	if len(data) < 8 {
		p.SetTruncated()
		return layers.BaseLayer{}, short(name, 8, len(data))
	}
	n := (int(data[1]) + 1) * 8
	if n > len(data) {
		p.SetTruncated()
		return layers.BaseLayer{}, short(name, n, len(data))
	}
	return layers.BaseLayer{Contents: data[:n], Payload: data[n:]}, nil
}

// decodeHopByHop decodes the options as gopacket does. Where they are wrong, it
// goes on without them: the header's own length says where it ends.
func decodeHopByHop(data []byte, p gopacket.PacketBuilder) error {
	base, err := extension("hop-by-hop options", data, p)
	if err != nil {
		return err
	}
	l := &layers.IPv6HopByHop{}
	if err := l.DecodeFromBytes(base.Contents, gopacket.NilDecodeFeedback); err != nil {
		l.Options = nil
	}
	l.BaseLayer = base
	p.AddLayer(l)
	return p.NextDecoder(known(layers.IPProtocol(data[0])))
}

// decodeDestination is decodeHopByHop for destination options.
func decodeDestination(data []byte, p gopacket.PacketBuilder) error {
	base, err := extension("destination options", data, p)
	if err != nil {
		return err
	}
	l := &layers.IPv6Destination{}
	if err := l.DecodeFromBytes(base.Contents, gopacket.NilDecodeFeedback); err != nil {
		l.Options = nil
	}
	l.BaseLayer = base
	p.AddLayer(l)
	return p.NextDecoder(known(layers.IPProtocol(data[0])))
}

func decodeRouting(data []byte, p gopacket.PacketBuilder) error {
	base, err := extension("IPv6 routing header", data, p)
	if err != nil {
		return err
	}
	l := &IPv6SegmentRouting{
		BaseLayer: base, NextHeader: layers.IPProtocol(data[0]), RoutingType: data[2],
		SegmentsLeft: data[3],
	}
	if l.RoutingType == segmentRouting {
		l.LastEntry, l.Flags, l.Tag = data[4], data[5], binary.BigEndian.Uint16(data[6:])
		for b := base.Contents[8:]; len(b) >= 16 && len(l.Segments) <= int(l.LastEntry); b = b[16:] {
			l.Segments = append(l.Segments, net.IP(b[:16]))
		}
	}
	p.AddLayer(l)
	return p.NextDecoder(known(l.NextHeader))
}

const segmentRouting = 4

// decodeAH decodes an authentication header. gopacket panics where the header
// claims less than its fixed part.
func decodeAH(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 8 {
		p.SetTruncated()
		return short("authentication header", 8, len(data))
	}
	n := (int(data[1]) + 2) * 4
	if n > len(data) {
		p.SetTruncated()
		return short("authentication header", n, len(data))
	}
	l := &layers.IPSecAH{Reserved: binary.BigEndian.Uint16(data[2:]), SPI: binary.BigEndian.Uint32(data[4:])}
	l.NextHeader, l.HeaderLength, l.ActualLength = layers.IPProtocol(data[0]), data[1], n
	l.BaseLayer = layers.BaseLayer{Contents: data[:n], Payload: data[n:]}
	if n >= 12 {
		l.Seq, l.AuthenticationData = binary.BigEndian.Uint32(data[8:]), data[12:n]
	}
	p.AddLayer(l)
	return p.NextDecoder(l.NextHeader)
}
