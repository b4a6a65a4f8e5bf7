package layers

import (
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/dissect/stack"
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

// RegisterUDPPort makes gopacket decode the datagrams of a UDP port with this profile, wherever it
// decodes UDP in this process. The table of ports is gopacket's: it is global and not guarded, so
// call this before anything is decoded.
func RegisterUDPPort(port layers.UDPPort, profile *wire.Profile) {
	stack.RegisterUDPPort(LayerTypeSRDP, "SRDP", port, func(data []byte, p gopacket.PacketBuilder) error {
		return stack.DecodeAs(&Layer{Profile: profile}, data, p)
	})
}

// Classifier recognises flows of SRDP, and their dialect, as ackscope does. Give it every packet in
// the order of the capture.
type Classifier struct{ flows *stack.Flows }

// NewClassifier returns a classifier that has seen nothing.
func NewClassifier() *Classifier { return &Classifier{flows: stack.NewFlows(srdp.Protocol)} }

// Decode returns the datagram of a packet as a layer, in the dialect that was found for its flow.
// It returns nil while none is found, and for packets without UDP. The error says what is wrong
// with a datagram of a flow that was recognised.
func (c *Classifier) Decode(p gopacket.Packet) (*Layer, error) {
	found, ok := c.flows.Feed(p)
	if !ok {
		return nil, nil
	}
	settings, ok := found.Config.Profile.(*srdp.Settings)
	if !ok {
		return nil, fmt.Errorf("dialect %s: expected the settings of SRDP, found %T", found.Config.Dialect,
			found.Config.Profile)
	}
	l := &Layer{Profile: &settings.Wire}
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
