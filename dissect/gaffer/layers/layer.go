package layers

import (
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/stack"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// LayerTypeGaffer is the layer type for users of gopacket. No port is registered by
// default: games use any port, and gopacket's table of ports is global to the process.
// This reads the reliable dialect:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeGaffer, gopacket.Default)
//
// For another dialect set Layer.Profile and call DecodeFromBytes, or register a port
// with RegisterUDPPort. Where the dialect is not known, a Classifier finds it.
var LayerTypeGaffer = gopacket.RegisterLayerType(1300,
	gopacket.LayerTypeMetadata{Name: "Gaffer", Decoder: gopacket.DecodeFunc(decodeLayer)})

// Layer is one datagram of the Gaffer family as a layer of gopacket. It is for
// gopacket.DecodingLayerParser, and for building packets.
type Layer struct {
	layers.BaseLayer
	wire.Packet
	// Profile is how the datagram is read and written; nil means the built-in
	// profile of the reliable library. It must have passed Validate.
	Profile *wire.Profile
}

var defaultProfile, _, _ = wire.Builtin(wire.Reliable)

func (l *Layer) profile() *wire.Profile {
	if l.Profile == nil {
		return defaultProfile
	}
	return l.Profile
}

// LayerType returns LayerTypeGaffer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeGaffer }

// CanDecode returns LayerTypeGaffer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeGaffer }

// NextLayerType returns LayerTypePayload if the datagram has a payload, otherwise
// LayerTypeZero.
func (l *Layer) NextLayerType() gopacket.LayerType {
	if len(l.BaseLayer.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

// Payload returns what the game sent, or one fragment of it.
func (l *Layer) Payload() []byte { return l.BaseLayer.Payload }

// DecodeFromBytes reads data as one datagram. The error is a *wire.ParseError
// of the wire package, which says which field is bad and where.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	l.BaseLayer = layers.BaseLayer{Contents: data}
	if err := l.profile().Parse(data, len(data), &l.Packet); err != nil {
		if errors.Is(err, common.ErrShort) {
			df.SetTruncated()
		}
		return err
	}
	end := l.PayloadOffset + l.PayloadLen
	l.Contents, l.BaseLayer.Payload = data[:l.PayloadOffset], data[l.PayloadOffset:end]
	return nil
}

// SerializeTo writes the datagram around its payload, which b holds. The packet's
// fields are as Parse returns them. The CRC is computed if the profile has the protocol
// id.
//
// Packet.Sequence is the sequence number that is written, of every kind of datagram.
// Packet.Header.Sequence must be 0 or the same: SerializeTo refuses two different ones.
func (l *Layer) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	pk := l.Packet
	if n := pk.Header.Sequence; n != 0 && n != pk.Sequence {
		return fmt.Errorf("gaffer: expected one sequence number, found Packet.Sequence %d and Packet.Header.Sequence %d",
			pk.Sequence, n)
	}
	pk.Header.Sequence = pk.Sequence
	payload := append([]byte(nil), b.Bytes()...)
	out := l.profile().Append(nil, &pk, payload)
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

// RegisterUDPPort makes gopacket decode the datagrams of a UDP port with this profile,
// wherever it decodes UDP in this process. The table of ports is gopacket's: it is global and not
// guarded, so call this before anything is decoded. The program ackscope never does: it recognises
// the protocol of each flow.
func RegisterUDPPort(port layers.UDPPort, profile *wire.Profile) {
	stack.RegisterUDPPort(LayerTypeGaffer, "Gaffer", port, func(data []byte, p gopacket.PacketBuilder) error {
		return stack.DecodeAs(&Layer{Profile: profile}, data, p)
	})
}

// Classifier recognises flows of the Gaffer family, and their dialect, as ackscope does. Give it
// every packet in the order of the capture.
type Classifier struct{ flows *stack.Flows }

// NewClassifier returns a classifier that has seen nothing.
func NewClassifier() *Classifier { return &Classifier{flows: stack.NewFlows(gaffer.Protocol)} }

// Decode returns the datagram of a packet as a layer, in the dialect that was found for its flow.
// It returns nil while none is found, and for packets without UDP. The error says what is wrong
// with a datagram of a flow that was recognised.
func (c *Classifier) Decode(p gopacket.Packet) (*Layer, error) {
	found, ok := c.flows.Feed(p)
	if !ok {
		return nil, nil
	}
	profile, ok := found.Config.Profile.(*wire.Profile)
	if !ok {
		return nil, fmt.Errorf("dialect %s: expected one that no key opens", found.Config.Dialect)
	}
	l := &Layer{Profile: profile}
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
