package stack

import (
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/internal/testenv"
)

// reachable are gopacket's layers that a frame can lead to by a number in it.
var reachable = []gopacket.LayerType{
	layers.LayerTypeARP, layers.LayerTypeMPLS, layers.LayerTypePPP, layers.LayerTypeEthernetCTP,
	layers.LayerTypeCiscoDiscovery, layers.LayerTypeNortelDiscovery, layers.LayerTypeLinkLayerDiscovery,
	layers.LayerTypeEAPOL, layers.LayerTypeERSPANII, layers.LayerTypeLLC, layers.LayerTypeSTP, layers.LayerTypeSCTP,
	layers.LayerTypeEtherIP, layers.LayerTypeRUDP, layers.LayerTypeGRE, layers.LayerTypeOSPF, layers.LayerTypeIPSecESP,
	layers.LayerTypeUDPLite, layers.LayerTypeIGMP, layers.LayerTypeVRRP, layers.LayerTypeICMPv4, layers.LayerTypeICMPv6,
	layers.LayerTypeDNS, layers.LayerTypeNTP, layers.LayerTypeVXLAN, layers.LayerTypeDHCPv4, layers.LayerTypeDHCPv6,
	layers.LayerTypeSIP, layers.LayerTypeSFlow, layers.LayerTypeGeneve, layers.LayerTypeBFD, layers.LayerTypeRMCP,
	layers.LayerTypeRADIUS,
}

// TestHostileLayers gives each layer bytes of many kinds. A decoder that never
// returns fails at the test's time limit.
func TestHostileLayers(t *testing.T) {
	rounds := testenv.Rounds(300, 10_000, 100_000)
	decoders := map[string]gopacket.Decoder{"GTPv1U": own{"GTPv1U", decodeGTP}}
	for _, l := range reachable {
		decoders[l.String()] = known(l)
	}
	for name, d := range decoders {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 20))
			for range rounds {
				b := make([]byte, r.IntN(1<<r.IntN(12)+1))
				for i := range b {
					switch r.IntN(3) {
					case 0:
						b[i] = byte(r.IntN(256))
					case 1:
						b[i] = byte(r.IntN(8))
					}
				}
				s := decode(b, d, &run{})
				for i := range s.Layers {
					if n := len(s.Fields(i)); n > maxFields {
						t.Fatalf("%d fields of % x", n, b)
					}
				}
			}
		})
	}
}

// TestGTPInACircle: extension headers whose lengths lead back to themselves.
func TestGTPInACircle(t *testing.T) {
	b := make([]byte, 0xffff)
	for i := range b {
		b[i] = 255
	}
	b[0], b[2], b[3] = 0x34, 0, 0
	if s := decode(b, own{"GTPv1U", decodeGTP}, &run{}); s.Problem == nil {
		t.Errorf("%d layers, and no problem", len(s.Layers))
	}
}
