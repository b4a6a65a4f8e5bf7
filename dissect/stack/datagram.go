package stack

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect"
)

// LayerTypeDatagram is the number of Datagram. It has no decoder of its own:
// only detection can say of which protocol a payload is.
var LayerTypeDatagram = gopacket.RegisterLayerType(1305,
	gopacket.LayerTypeMetadata{Name: "Datagram", Decoder: gopacket.DecodePayload})

// Datagram is a payload of one of ackscope's protocols, with its fields.
type Datagram struct {
	layers.BaseLayer
	Protocol   *dissect.Protocol
	Dissection *dissect.Dissection
}

// LayerType returns LayerTypeDatagram.
func (*Datagram) LayerType() gopacket.LayerType { return LayerTypeDatagram }

// Payload returns nothing: the fields of the dissection cover all bytes.
func (*Datagram) Payload() []byte { return nil }

// datagram decodes a payload by the protocol that detection found.
func (r *run) datagram(data []byte, p gopacket.PacketBuilder) error {
	l := &Datagram{
		BaseLayer: layers.BaseLayer{Contents: data}, Protocol: r.chosen.Protocol,
		Dissection: r.chosen.Dissect(),
	}
	p.AddLayer(l)
	p.SetApplicationLayer(l)
	return nil
}
