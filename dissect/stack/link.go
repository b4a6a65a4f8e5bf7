package stack

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// LayerTypeLinuxSLL2 is the number of LinuxSLL2. The numbers up to 1302 are of
// the protocols' own layers.
var LayerTypeLinuxSLL2 = gopacket.RegisterLayerType(1303,
	gopacket.LayerTypeMetadata{Name: "LinuxSLL2", Decoder: gopacket.DecodeFunc(decodeCooked2)})

// LinuxSLL2 is the header of a Linux cooked capture, version 2, in 20 bytes.
// gopacket 1.1.19 lacks it.
type LinuxSLL2 struct {
	layers.BaseLayer
	EthernetType   layers.EthernetType
	InterfaceIndex uint32
	AddrType       uint16 // ARPHRD_ number
	PacketType     layers.LinuxSLLPacketType
	Addr           net.HardwareAddr
}

// LayerType returns LayerTypeLinuxSLL2.
func (*LinuxSLL2) LayerType() gopacket.LayerType { return LayerTypeLinuxSLL2 }

// LinkFlow returns the flow from the sender's address; captures have no other.
func (l *LinuxSLL2) LinkFlow() gopacket.Flow {
	return gopacket.NewFlow(layers.EndpointMAC, l.Addr, nil)
}

func short(layer string, least, found int) error {
	return fmt.Errorf("expected at least %d bytes of %s, found %d", least, layer, found)
}

func decodeCooked(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 16 {
		p.SetTruncated()
		return short("Linux cooked v1", 16, len(data))
	}
	l := &layers.LinuxSLL{
		BaseLayer:    layers.BaseLayer{Contents: data[:16], Payload: data[16:]},
		PacketType:   layers.LinuxSLLPacketType(binary.BigEndian.Uint16(data)),
		AddrType:     binary.BigEndian.Uint16(data[2:]),
		AddrLen:      binary.BigEndian.Uint16(data[4:]),
		EthernetType: layers.EthernetType(binary.BigEndian.Uint16(data[14:])),
	}
	l.Addr = net.HardwareAddr(data[6 : 6+min(l.AddrLen, 8)])
	p.AddLayer(l)
	p.SetLinkLayer(l)
	return cookedPayload(p, l.AddrType, l.EthernetType)
}

func decodeCooked2(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 20 {
		p.SetTruncated()
		return short("Linux cooked v2", 20, len(data))
	}
	l := &LinuxSLL2{
		BaseLayer:      layers.BaseLayer{Contents: data[:20], Payload: data[20:]},
		EthernetType:   layers.EthernetType(binary.BigEndian.Uint16(data)),
		InterfaceIndex: binary.BigEndian.Uint32(data[4:]),
		AddrType:       binary.BigEndian.Uint16(data[8:]),
		PacketType:     layers.LinuxSLLPacketType(data[10]),
	}
	l.Addr = net.HardwareAddr(data[12 : 12+min(data[11], 8)])
	p.AddLayer(l)
	p.SetLinkLayer(l)
	return cookedPayload(p, l.AddrType, l.EthernetType)
}

// cookedPayload passes on what a cooked header names. For some kinds of
// hardware the number is no EtherType.
func cookedPayload(p gopacket.PacketBuilder, hardware uint16, t layers.EthernetType) error {
	const frameRelay, gre, radiotap, netlink = 770, 778, 803, 824
	switch hardware {
	case frameRelay, gre, radiotap, netlink:
		return p.NextDecoder(gopacket.DecodePayload)
	}
	if t < 0x0600 {
		return p.NextDecoder(gopacket.DecodePayload)
	}
	return p.NextDecoder(etherType(t, false))
}

// decodeLoopback decodes the address family of a BSD loopback frame, in either
// byte order. gopacket refuses some orders and families.
func decodeLoopback(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 4 {
		p.SetTruncated()
		return short("loopback header", 4, len(data))
	}
	family := binary.LittleEndian.Uint32(data)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(data)
	}
	l := &layers.Loopback{
		BaseLayer: layers.BaseLayer{Contents: data[:4], Payload: data[4:]},
		Family:    layers.ProtocolFamily(family),
	}
	p.AddLayer(l)
	switch family {
	case 2:
		return p.NextDecoder(own{"IPv4", decodeIPv4})
	case 10, 23, 24, 26, 28, 30: // as in capture.Decoder
		return p.NextDecoder(own{"IPv6", decodeIPv6})
	}
	return p.NextDecoder(gopacket.DecodePayload)
}

// decodePPPoE decodes the header before PPP. gopacket panics where the frame
// holds less than the header says.
func decodePPPoE(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 6 {
		p.SetTruncated()
		return short("PPPoE", 6, len(data))
	}
	l := &layers.PPPoE{
		BaseLayer: layers.BaseLayer{Contents: data[:6], Payload: data[6:]},
		Version:   data[0] >> 4, Type: data[0] & 15, Code: layers.PPPoECode(data[1]),
		SessionId: binary.BigEndian.Uint16(data[2:]), Length: binary.BigEndian.Uint16(data[4:]),
	}
	p.AddLayer(l)
	if l.Code != layers.PPPoECodeSession {
		return p.NextDecoder(gopacket.DecodePayload)
	}
	return p.NextDecoder(layers.LayerTypePPP)
}
