package stack

import (
	"bytes"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// sample is a frame of Ethernet that gopacket wrote.
type sample struct {
	name  string
	bytes []byte
}

var (
	macA = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	macB = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	ip4A = net.IP{10, 1, 2, 3}
	ip4B = net.IP{10, 1, 2, 4}
	ip6A = net.ParseIP("fd00::3")
	ip6B = net.ParseIP("fd00::4")
)

// write serializes layers with correct lengths and checksums.
func write(t testing.TB, list ...gopacket.SerializableLayer) []byte {
	t.Helper()
	var network gopacket.NetworkLayer
	for _, l := range list {
		switch l := l.(type) {
		case *layers.IPv4:
			network = l
		case *layers.IPv6:
			network = l
		case interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}:
			if err := l.SetNetworkLayerForChecksum(network); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		list...); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Bytes())
}

func ether(kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: macA, DstMAC: macB, EthernetType: kind}
}

func ip4(p layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 61, Id: 0x1234, Protocol: p, SrcIP: ip4A, DstIP: ip4B}
}

func ip6(p layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 61, NextHeader: p, SrcIP: ip6A, DstIP: ip6B}
}

func icmp4(t testing.TB, kind, code uint8, id, seq uint16, body []byte) []byte {
	return write(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolICMPv4),
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, code), Id: id, Seq: seq}, gopacket.Payload(body))
}

func icmp6(t testing.TB, kind, code uint8, body []byte) []byte {
	return write(t, ether(layers.EthernetTypeIPv6), ip6(layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, code)}, gopacket.Payload(body))
}

// samples returns a frame of each kind that gopacket shows and capture.Decoder
// does not: each ICMP message, ARP, DHCP, DNS, tunnels and extension headers.
func samples(t testing.TB) (list []sample) {
	t.Helper()
	add := func(name string, b []byte) { list = append(list, sample{name, b}) }
	udp := &layers.UDP{SrcPort: 40000, DstPort: 7777}
	game := gopacket.Payload("sixteen byte text")
	plain4 := write(t, ip4(layers.IPProtocolUDP), udp, game)
	tcp4 := write(t, ip4(layers.IPProtocolTCP), &layers.TCP{SrcPort: 40000, DstPort: 7777, Seq: 5, Window: 9}, game)
	plain6 := write(t, ip6(layers.IPProtocolUDP), udp, game)
	quote4, quote6 := plain4[:28], plain6

	for _, c := range []struct {
		name       string
		kind, code uint8
		id, seq    uint16
		body       []byte
	}{
		{"echo request", 8, 0, 7, 9, []byte("ping")},
		{"echo reply", 0, 0, 7, 9, []byte("ping")},
		{"net unreachable", 3, 0, 0, 0, quote4},
		{"port unreachable", 3, 3, 0, 0, quote4},
		{"port unreachable, all quoted", 3, 3, 0, 0, plain4},
		{"of TCP, 8 bytes", 3, 13, 0, 0, tcp4[:28]},
		{"of TCP, all quoted", 3, 10, 0, 0, tcp4},
		{"fragmentation needed", 3, 4, 0, 1400, quote4},
		{"source quench", 4, 0, 0, 0, quote4},
		{"redirect", 5, 1, 0x0a01, 0x0209, quote4},
		{"time exceeded", 11, 0, 0, 0, quote4},
		{"reassembly time exceeded", 11, 1, 0, 0, quote4},
		{"parameter problem", 12, 0, 0x1400, 0, quote4},
		{"timestamp request", 13, 0, 7, 9, make([]byte, 12)},
		{"timestamp reply", 14, 0, 7, 9, []byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}},
		{"address mask request", 17, 0, 7, 9, make([]byte, 4)},
		{"address mask reply", 18, 0, 7, 9, []byte{255, 255, 0, 0}},
		{"router solicitation", 10, 0, 0, 0, nil},
		{
			"quote of a quote", 3, 1, 0, 0,
			write(t, ip4(layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 3)},
				gopacket.Payload(quote4)),
		},
	} {
		add("icmp "+c.name, icmp4(t, c.kind, c.code, c.id, c.seq, c.body))
	}
	target := append(make([]byte, 4), ip6B...)
	link := func(kind byte) []byte { return append([]byte{kind, 1}, macA...) }
	prefix := append([]byte{3, 4, 64, 0xc0, 0, 0, 0x1c, 0x20, 0, 0, 0x0e, 0x10, 0, 0, 0, 0}, ip6A...)
	mtu := []byte{5, 1, 0, 0, 0, 0, 5, 0xdc}
	for _, c := range []struct {
		name       string
		kind, code uint8
		body       []byte
	}{
		{"no route", 1, 0, append(make([]byte, 4), quote6...)},
		{"port unreachable", 1, 4, append(make([]byte, 4), quote6...)},
		{"packet too big", 2, 0, append([]byte{0, 0, 5, 0}, quote6...)},
		{"time exceeded", 3, 0, append(make([]byte, 4), quote6...)},
		{"parameter problem", 4, 1, append([]byte{0, 0, 0, 6}, quote6...)},
		{"echo request", 128, 0, []byte{0, 7, 0, 9, 'p', 'i', 'n', 'g'}},
		{"echo reply", 129, 0, []byte{0, 7, 0, 9, 'p', 'i', 'n', 'g'}},
		{"listener query", 130, 0, target},
		{"listener report", 131, 0, target},
		{"listener done", 132, 0, target},
		{"router solicitation", 133, 0, append(make([]byte, 4), link(1)...)},
		{
			"router advertisement", 134, 0,
			bytes.Join([][]byte{{64, 0xc8, 7, 8, 0, 0, 0, 9, 0, 0, 0, 10}, link(1), mtu, prefix}, nil),
		},
		{"neighbor solicitation", 135, 0, append(bytes.Clone(target), link(1)...)},
		{"neighbor advertisement", 136, 0, bytes.Join([][]byte{{0xe0, 0, 0, 0}, ip6B, link(2)}, nil)},
		{"redirect", 137, 0, bytes.Join([][]byte{target, ip6A, link(2)}, nil)},
	} {
		add("icmpv6 "+c.name, icmp6(t, c.kind, c.code, c.body))
	}
	add("arp", write(t, ether(layers.EthernetTypeARP), &layers.ARP{
		AddrType: layers.LinkTypeEthernet,
		Protocol: layers.EthernetTypeIPv4, Operation: layers.ARPRequest, SourceHwAddress: macA, SourceProtAddress: ip4A,
		DstHwAddress: make([]byte, 6), DstProtAddress: ip4B,
	}))
	add("dns", write(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP),
		&layers.UDP{SrcPort: 53, DstPort: 40000},
		&layers.DNS{
			ID: 0xabcd, QR: true, RD: true, RA: true,
			Questions: []layers.DNSQuestion{{Name: []byte("game.example"), Type: layers.DNSTypeA, Class: layers.DNSClassIN}},
			Answers: []layers.DNSResourceRecord{{
				Name: []byte("game.example"), Type: layers.DNSTypeA, Class: layers.DNSClassIN,
				TTL: 300, IP: ip4A,
			}},
		}))
	add("dhcp", write(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), &layers.UDP{SrcPort: 68, DstPort: 67},
		&layers.DHCPv4{
			Operation: layers.DHCPOpRequest, HardwareType: layers.LinkTypeEthernet, HardwareLen: 6, Xid: 7,
			ClientHWAddr: macA, Options: layers.DHCPOptions{
				layers.NewDHCPOption(layers.DHCPOptMessageType, []byte{1}),
				layers.NewDHCPOption(layers.DHCPOptHostname, []byte("box")),
				layers.NewDHCPOption(layers.DHCPOptRequestIP, ip4A), layers.NewDHCPOption(layers.DHCPOptEnd, nil),
			},
		}))
	inner := []gopacket.SerializableLayer{ip4(layers.IPProtocolUDP), udp, game}
	add("vxlan", write(t, append([]gopacket.SerializableLayer{
		ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP),
		&layers.UDP{SrcPort: 50000, DstPort: 4789}, &layers.VXLAN{ValidIDFlag: true, VNI: 77},
		ether(layers.EthernetTypeIPv4),
	}, inner...)...))
	add("gre", write(t, append([]gopacket.SerializableLayer{
		ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE),
		&layers.GRE{Protocol: layers.EthernetTypeIPv4, KeyPresent: true, Key: 5, SeqPresent: true, Seq: 6},
	}, inner...)...))
	add("ip in ip", write(t, append([]gopacket.SerializableLayer{
		ether(layers.EthernetTypeIPv4),
		ip4(layers.IPProtocolIPIP),
	}, inner...)...))
	add("udp4", write(t, append([]gopacket.SerializableLayer{ether(layers.EthernetTypeIPv4)}, inner...)...))
	add("tcp4", append(write(t, ether(layers.EthernetTypeIPv4))[:14], tcp4...))
	add("tcp options", write(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolTCP),
		&layers.TCP{SrcPort: 40000, DstPort: 7777, Seq: 5, Window: 9, SYN: true, Options: []layers.TCPOption{
			{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{5, 0xb4}},
			{OptionType: layers.TCPOptionKindNop, OptionLength: 1},
		}}, game))
	tag := &layers.Dot1Q{Priority: 3, VLANIdentifier: 100, Type: layers.EthernetTypeIPv4}
	add("vlan", write(t, append([]gopacket.SerializableLayer{ether(layers.EthernetTypeDot1Q), tag}, inner...)...))
	add("service tag", write(t, append([]gopacket.SerializableLayer{
		ether(layers.EthernetTypeQinQ),
		&layers.Dot1Q{VLANIdentifier: 7, Type: layers.EthernetTypeDot1Q}, tag,
	}, inner...)...))
	add("tag 0x9100", write(t, append([]gopacket.SerializableLayer{ether(etherQinQ9), tag}, inner...)...))
	add("snap", write(t, append([]gopacket.SerializableLayer{
		&layers.Ethernet{
			SrcMAC: macA, DstMAC: macB,
			EthernetType: layers.EthernetTypeLLC, Length: 1,
		}, &layers.LLC{DSAP: 0xaa, SSAP: 0xaa, Control: 3},
		&layers.SNAP{OrganizationalCode: make([]byte, 3), Type: layers.EthernetTypeIPv4},
	}, inner...)...))
	add("pppoe", write(t, append([]gopacket.SerializableLayer{
		ether(layers.EthernetTypePPPoESession),
		&layers.PPPoE{Version: 1, Type: 1, SessionId: 5}, &layers.PPP{PPPType: layers.PPPTypeIPv4},
	}, inner...)...))
	for _, c := range []sample{
		{"hop by hop", []byte{0, 17, 0, 5, 2, 0, 0, 1, 0}},
		{"destination", []byte{60, 17, 0, 1, 4, 0, 0, 0, 0}},
		{"atomic fragment", []byte{44, 17, 0, 0, 0, 0, 0, 0, 9}},
		{"first fragment", []byte{44, 17, 0, 0, 1, 0, 0, 0, 9}},
		{"home address", append([]byte{43, 17, 2, 2, 1, 0, 0, 0, 0}, ip6A...)},
		{"segment routing", bytes.Join([][]byte{{43, 17, 4, 4, 1, 1, 0x40, 0, 9}, ip6A, ip6B}, nil)},
	} { // the number of the header, then the header
		add(c.name, write(t, ether(layers.EthernetTypeIPv6), ip6(layers.IPProtocol(c.bytes[0])),
			gopacket.Payload(bytes.Join([][]byte{c.bytes[1:], plain6[40:]}, nil))))
	}
	return list
}
