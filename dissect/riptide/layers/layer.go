package layers

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// LayerTypeRiptide is the number of the layer for users of gopacket. No port is registered for it:
// each game chooses its own. To decode with gopacket alone, call
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeRiptide, gopacket.Default)
//
// This reads dialect 2.1. For another dialect, set Layer.Codec and call DecodeFromBytes.
var LayerTypeRiptide = gopacket.RegisterLayerType(1301,
	gopacket.LayerTypeMetadata{Name: "Riptide", Decoder: gopacket.DecodeFunc(decodeLayer)})

// Layer is one Riptide message as a layer of gopacket.
type Layer struct {
	layers.BaseLayer
	wire.Message
	// Codec reads and writes the message; the zero value means 2.1.
	Codec wire.Codec

	body []byte // holds Payload if it begins within a byte
}

func (l *Layer) codec() wire.Codec {
	if l.Codec.Dialect == nil {
		return wire.Codec{Dialect: wire.V21, BigEndian: l.Codec.BigEndian}
	}
	return l.Codec
}

// LayerType returns LayerTypeRiptide.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeRiptide }

// CanDecode returns LayerTypeRiptide.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeRiptide }

// NextLayerType returns LayerTypePayload where the message has a body.
func (l *Layer) NextLayerType() gopacket.LayerType {
	if len(l.BaseLayer.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

// Payload returns the body: values, or connect, reject or kick data. In the bit-packed form it
// begins within a byte. It is then shifted to whole bytes, and the last byte holds padding.
func (l *Layer) Payload() []byte { return l.BaseLayer.Payload }

// DecodeFromBytes reads data as one message. The error is a *wire.ParseError.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	l.BaseLayer = layers.BaseLayer{Contents: data}
	if err := l.codec().Parse(data, len(data), &l.Message); err != nil {
		if len(data) < headerBound {
			df.SetTruncated()
		}
		return err
	}
	if l.BodyBits == 0 {
		return nil
	}
	if l.BodyBit%8 == 0 {
		at := l.BodyBit / 8
		l.Contents, l.BaseLayer.Payload = data[:at], data[at:]
		return nil
	}
	l.body = dissect.AppendUnaligned(l.body[:0], data, l.BodyBit)
	l.BaseLayer.Payload = l.body
	return nil
}

// SerializeTo writes the message before the contents of b, which are its body.
func (l *Layer) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	body := append([]byte(nil), b.Bytes()...)
	out, err := l.codec().Append(nil, &l.Message, body, len(body)*8)
	if err != nil {
		return err
	}
	if err := b.Clear(); err != nil {
		return err
	}
	to, err := b.AppendBytes(len(out))
	if err != nil {
		return err
	}
	copy(to, out)
	return nil
}

// headerBound is above the length of any header of Riptide, in bytes. Shorter data may have been
// cut within its header.
const headerBound = 8

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
