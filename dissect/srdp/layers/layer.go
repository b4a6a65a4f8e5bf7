package layers

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	wire "github.com/ackscope/ackscope/wire/srdp"
)

// LayerTypeSRDP is the number of the layer for users of gopacket. Nothing is
// registered for a port: which port an application uses is its own affair. To
// decode by gopacket alone,
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeSRDP, gopacket.Default)
//
// reads the direct form with the default commands; for another one set
// Layer.Profile and call DecodeFromBytes.
var LayerTypeSRDP = gopacket.RegisterLayerType(1302,
	gopacket.LayerTypeMetadata{Name: "SRDP", Decoder: gopacket.DecodeFunc(decodeLayer)})

// Layer is one SRDP packet as a layer of gopacket.
type Layer struct {
	layers.BaseLayer
	wire.Packet
	// Profile is how the packet is read and written; nil means the default.
	Profile *wire.Profile
}

// usual is how a packet is read of which nothing is known.
var usual = wire.Default()

func (l *Layer) profile() *wire.Profile {
	if l.Profile == nil {
		return &usual
	}
	return l.Profile
}

// LayerType returns LayerTypeSRDP.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeSRDP }

// CanDecode returns LayerTypeSRDP.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeSRDP }

// NextLayerType returns LayerTypePayload where the packet carries bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	if len(l.BaseLayer.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

// Payload returns the application's bytes.
func (l *Layer) Payload() []byte { return l.BaseLayer.Payload }

// DecodeFromBytes reads data as one packet. The error is a *wire.ParseError.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	l.BaseLayer = layers.BaseLayer{Contents: data}
	p := l.profile()
	if err := p.Parse(data, len(data), &l.Packet); err != nil {
		if len(data) < p.AckLen() {
			df.SetTruncated()
		}
		return err
	}
	if !l.Ack {
		l.Contents, l.BaseLayer.Payload = data[:l.PayloadOffset], data[l.PayloadOffset:]
	}
	return nil
}

// SerializeTo writes the packet's header in front of what b holds, its bytes.
func (l *Layer) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	header := l.profile().Append(nil, &l.Packet, nil)
	to, err := b.PrependBytes(len(header))
	if err != nil {
		return err
	}
	copy(to, header)
	return nil
}

func decodeLayer(data []byte, p gopacket.PacketBuilder) error {
	l := &Layer{}
	if err := l.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(l)
	p.SetApplicationLayer(l)
	if next := l.NextLayerType(); next != gopacket.LayerTypeZero {
		return p.NextDecoder(next)
	}
	return nil
}

var (
	_ gopacket.DecodingLayer     = (*Layer)(nil)
	_ gopacket.ApplicationLayer  = (*Layer)(nil)
	_ gopacket.SerializableLayer = (*Layer)(nil)
)
