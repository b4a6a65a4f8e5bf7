package layers

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	wire "github.com/ackscope/ackscope/wire/srdp"
)

// LayerTypeSRDP is the layer's number for users of gopacket. It is not
// registered for a port, since each application chooses its own. For example,
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeSRDP, gopacket.Default)
//
// reads the direct form with the default commands. To read another form, set
// Layer.Profile and call DecodeFromBytes.
var LayerTypeSRDP = gopacket.RegisterLayerType(1302,
	gopacket.LayerTypeMetadata{Name: "SRDP", Decoder: gopacket.DecodeFunc(decodeLayer)})

// Layer is one SRDP packet as a layer of gopacket.
type Layer struct {
	layers.BaseLayer
	wire.Packet
	// Profile says how to read and write the packet; nil means the default.
	Profile *wire.Profile
}

// usual is the default profile.
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

// NextLayerType returns LayerTypePayload when the packet has a payload.
func (l *Layer) NextLayerType() gopacket.LayerType {
	if len(l.BaseLayer.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

// Payload returns the application's bytes.
func (l *Layer) Payload() []byte { return l.BaseLayer.Payload }

// DecodeFromBytes reads data as one packet. It returns a *wire.ParseError when
// data is no packet.
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

// SerializeTo prepends the packet's header to b, which holds the payload.
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
