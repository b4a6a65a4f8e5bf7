package layers

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLayer(t *testing.T) {
	b := unhex(t, "47002030041000c07812")
	p := gopacket.NewPacket(b, LayerTypeRiptide, gopacket.Default)
	l, ok := p.ApplicationLayer().(*Layer)
	if !ok || l.Type != wire.Reliable || l.Sequence != 4 || l.MessageID != 2 || len(l.Payload()) != 7 ||
		p.ErrorLayer() != nil {
		t.Fatalf("%v", p)
	}
	if LayerTypeRiptide != 1301 {
		t.Errorf("layer type %d", LayerTypeRiptide)
	}
	// Write it again: a body of whole bytes.
	welcome := &Layer{
		Message: wire.Message{Type: wire.Reliable, Sequence: 4, MessageID: 300},
		Codec:   wire.Codec{Dialect: wire.DevN},
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, welcome, gopacket.Payload{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if want := unhex(t, "0704002c01010203"); !bytes.Equal(buf.Bytes(), want) {
		t.Errorf("wrote %x, want %x", buf.Bytes(), want)
	}
	again := Layer{Codec: wire.Codec{Dialect: wire.DevN}}
	if err := again.DecodeFromBytes(buf.Bytes(), gopacket.NilDecodeFeedback); err != nil || again.MessageID != 300 ||
		!bytes.Equal(again.Payload(), []byte{1, 2, 3}) {
		t.Errorf("%+v, %v", again, err)
	}
	if p := gopacket.NewPacket([]byte{0x0b}, LayerTypeRiptide, gopacket.Default); p.ErrorLayer() == nil {
		t.Error("a type that does not exist decodes")
	}
}

// TestByPort: a port that the user registers decodes as the dialect that is given.
func TestByPort(t *testing.T) {
	RegisterUDPPort(47012, wire.Codec{Dialect: wire.DevN})
	udp := &layers.UDP{SrcPort: 40000, DstPort: 47012}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, udp,
		gopacket.Payload(unhex(t, "0704002c01010203"))); err != nil {
		t.Fatal(err)
	}
	p := gopacket.NewPacket(b.Bytes(), layers.LayerTypeUDP, gopacket.Default)
	if l, ok := p.ApplicationLayer().(*Layer); !ok || l.MessageID != 300 || l.Codec.Dialect != wire.DevN {
		t.Errorf("by its port: %v", p)
	}
}
