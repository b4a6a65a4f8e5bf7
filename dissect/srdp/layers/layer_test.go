package layers

import (
	"encoding/hex"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	wire "github.com/ackscope/ackscope/wire/srdp"
)

// TestLayer checks that the layer reads what it writes, alone and after
// gopacket's own layers.
func TestLayer(t *testing.T) {
	b := gopacket.NewSerializeBuffer()
	out := &Layer{Packet: wire.Packet{Command: 0x53, ID: 77, Flags: 2}}
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, out, gopacket.Payload("hello")); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b.Bytes()); got != "53004d0268656c6c6f" {
		t.Fatalf("written %s", got)
	}
	p := gopacket.NewPacket(b.Bytes(), LayerTypeSRDP, gopacket.Default)
	l, ok := p.Layer(LayerTypeSRDP).(*Layer)
	if !ok || l.ID != 77 || l.Ack || string(l.Payload()) != "hello" || p.Layer(gopacket.LayerTypePayload) == nil {
		t.Errorf("read back %+v of %v", l, p)
	}
	if p := gopacket.NewPacket([]byte{0x80, 1, 2}, LayerTypeSRDP, gopacket.Default); p.ErrorLayer() == nil {
		t.Error("a foreign datagram is read")
	}
}

// TestByPort: a port that the user registers decodes in the form that is given.
func TestByPort(t *testing.T) {
	profile := wire.Default()
	profile.LittleEndian = true
	RegisterUDPPort(47013, &profile)
	udp := &layers.UDP{SrcPort: 40000, DstPort: 47013}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, udp, &Layer{
		Profile: &profile,
		Packet:  wire.Packet{Command: 0x53, ID: 77, Flags: 2},
	}, gopacket.Payload("hello")); err != nil {
		t.Fatal(err)
	}
	p := gopacket.NewPacket(b.Bytes(), layers.LayerTypeUDP, gopacket.Default)
	if l, ok := p.ApplicationLayer().(*Layer); !ok || l.ID != 77 || l.Profile != &profile {
		t.Errorf("by its port: %v", p)
	}
}
