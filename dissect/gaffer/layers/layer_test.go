package layers_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	gafferlayers "github.com/ackscope/ackscope/dissect/gaffer/layers"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// stack serializes a datagram of the reliable dialect in UDP in IPv4 in Ethernet.
func stack(t *testing.T, port layers.UDPPort, l *gafferlayers.Layer, payload string) []byte {
	t.Helper()
	eth := &layers.Ethernet{
		SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6),
		EthernetType: layers.EthernetTypeIPv4,
	}
	ip := &layers.IPv4{
		Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 1},
		DstIP: net.IP{10, 0, 0, 2},
	}
	udp := &layers.UDP{SrcPort: 30000, DstPort: port}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip,
		udp, l, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Bytes())
}

func TestLayer(t *testing.T) {
	header := wire.Header{Sequence: 100, Ack: 99, AckBits: 0x6e27fa35}
	sent := &gafferlayers.Layer{Packet: wire.Packet{Header: header, Sequence: 100}}
	frame := stack(t, 40000, sent, "hello")

	// gopacket's fast way: one object for each layer.
	var eth layers.Ethernet
	var ip layers.IPv4
	var udp layers.UDP
	var got gafferlayers.Layer
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &udp)
	parser.IgnoreUnsupported = true
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers(frame, &decoded); err != nil {
		t.Fatal(err)
	}
	if err := got.DecodeFromBytes(udp.Payload, gopacket.NilDecodeFeedback); err != nil {
		t.Fatal(err)
	}
	if got.Header != header || string(got.Payload()) != "hello" || got.NextLayerType() != gopacket.LayerTypePayload ||
		len(got.LayerContents()) != 8 {
		t.Errorf("decoded %+v, payload %q", got.Packet, got.Payload())
	}

	// gopacket's convenient way.
	p := gopacket.NewPacket(udp.Payload, gafferlayers.LayerTypeGaffer, gopacket.Default)
	if l, ok := p.Layer(gafferlayers.LayerTypeGaffer).(*gafferlayers.Layer); !ok || l.Header != header ||
		string(p.ApplicationLayer().Payload()) != "hello" {
		t.Errorf("packet %v", p)
	}

	// By port, only once the user asks for it.
	if p := gopacket.NewPacket(frame, layers.LayerTypeEthernet,
		gopacket.Default); p.Layer(gafferlayers.LayerTypeGaffer) != nil {
		t.Error("a port is registered that nobody asked for")
	}
	profile, _, err := wire.Builtin(wire.ArticleBE)
	if err != nil {
		t.Fatal(err)
	}
	gafferlayers.RegisterUDPPort(47011, profile)
	frame = stack(t, 47011, &gafferlayers.Layer{Profile: profile, Packet: wire.Packet{Header: header, Sequence: 100}},
		"hello")
	packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	l, ok := packet.Layer(gafferlayers.LayerTypeGaffer).(*gafferlayers.Layer)
	if !ok || l.Header != header || l.Profile != profile {
		t.Errorf("by its port: %+v", l)
	}

	// A datagram that is too short reports it as gopacket expects.
	p = gopacket.NewPacket([]byte{0x3e, 1}, gafferlayers.LayerTypeGaffer, gopacket.Default)
	if p.ErrorLayer() == nil || !p.Metadata().Truncated {
		t.Errorf("two bytes: %v, truncated %v", p.ErrorLayer(), p.Metadata().Truncated)
	}
}

// TestOneSequence: Packet.Sequence is what is written, in every dialect, and a
// second number that differs is refused.
func TestOneSequence(t *testing.T) {
	for _, name := range []string{wire.Reliable, wire.ArticleBE} {
		profile, _, err := wire.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		write := func(pk wire.Packet) ([]byte, error) {
			b := gopacket.NewSerializeBuffer()
			err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, &gafferlayers.Layer{Profile: profile, Packet: pk})
			return b.Bytes(), err
		}
		b, err := write(wire.Packet{Sequence: 7})
		if err != nil {
			t.Fatal(err)
		}
		got := gafferlayers.Layer{Profile: profile}
		if err := got.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil || got.Sequence != 7 ||
			got.Header.Sequence != 7 {
			t.Errorf("%s: wrote sequence %d and %d, expected 7 (%v)", name, got.Sequence, got.Header.Sequence, err)
		}
		if b, err := write(wire.Packet{Sequence: 7, Header: wire.Header{Sequence: 8}}); err == nil {
			t.Errorf("%s: two sequence numbers wrote % x", name, b)
		}
		if b, err := write(wire.Packet{Header: wire.Header{Sequence: 8}}); err == nil {
			t.Errorf("%s: a sequence number in the header alone wrote % x", name, b)
		}
	}
}
