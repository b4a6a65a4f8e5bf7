package layers

import (
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/stack"
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

// SerializeTo writes the message before the contents of b, which are its body. A body of as many
// bytes as BodyBits needs has BodyBits bits. A body of any other size is written as whole bytes.
func (l *Layer) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	body := append([]byte(nil), b.Bytes()...)
	bits := len(body) * 8
	if (l.BodyBits+7)/8 == len(body) {
		bits = l.BodyBits
	}
	out, err := l.codec().Append(nil, &l.Message, body, bits)
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

// RegisterUDPPort makes gopacket decode the datagrams of a UDP port with this codec, wherever it
// decodes UDP in this process. The table of ports is gopacket's: it is global and not guarded, so
// call this before anything is decoded.
func RegisterUDPPort(port layers.UDPPort, codec wire.Codec) {
	stack.RegisterUDPPort(LayerTypeRiptide, "Riptide", port, func(data []byte, p gopacket.PacketBuilder) error {
		return stack.DecodeAs(&Layer{Codec: codec}, data, p)
	})
}

// Classifier recognises flows of Riptide, and their dialect, as ackscope does. Give it every packet in
// the order of the capture.
type Classifier struct{ flows *stack.Flows }

// NewClassifier returns a classifier that has seen nothing.
func NewClassifier() *Classifier { return &Classifier{flows: stack.NewFlows(riptide.Protocol)} }

// Decode returns the datagram of a packet as a layer, in the dialect that was found for its flow.
// It returns nil while none is found, and for packets without UDP. The error says what is wrong
// with a datagram of a flow that was recognised.
func (c *Classifier) Decode(p gopacket.Packet) (*Layer, error) {
	found, ok := c.flows.Feed(p)
	if !ok {
		return nil, nil
	}
	settings, ok := found.Config.Profile.(*riptide.Settings)
	if !ok {
		return nil, fmt.Errorf("dialect %s: expected the settings of Riptide, found %T", found.Config.Dialect,
			found.Config.Profile)
	}
	l := &Layer{Codec: settings.Senders[found.From].Codec}
	if err := l.DecodeFromBytes(found.Payload, gopacket.NilDecodeFeedback); err != nil {
		return nil, err
	}
	return l, nil
}

func decodeLayer(data []byte, p gopacket.PacketBuilder) error {
	return stack.DecodeAs(&Layer{}, data, p)
}

var (
	_ gopacket.DecodingLayer     = (*Layer)(nil)
	_ gopacket.ApplicationLayer  = (*Layer)(nil)
	_ gopacket.SerializableLayer = (*Layer)(nil)
)
