package stack

import (
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// always is a classifier that is sure after three datagrams.
type always struct{ fed []machine.Side }

func (c *always) Reset()                   { c.fed = nil }
func (c *always) Feed(d *machine.Datagram) { c.fed = append(c.fed, d.From) }
func (c *always) Sure() bool               { return len(c.fed) >= 3 }
func (c *always) Verdict() dissect.Verdict {
	return dissect.Verdict{Config: &dissect.Config{Dialect: "toy"}, Bits: 40}
}

// TestFlows: a flow is found once its classifier is sure, both directions are of
// one flow, and the table stays bounded.
func TestFlows(t *testing.T) {
	f := NewFlows(&dissect.Protocol{Name: "toy", Classify: func() dissect.Classifier { return &always{} }})
	packet := func(from, to layers.UDPPort) gopacket.Packet {
		b := write(t, ip4(layers.IPProtocolUDP), &layers.UDP{SrcPort: from, DstPort: to}, gopacket.Payload("x"))
		return gopacket.NewPacket(b, layers.LayerTypeIPv4, gopacket.Default)
	}
	for i, c := range []struct {
		reply bool
		found bool
	}{{false, false}, {true, false}, {false, true}, {true, true}} {
		p, side := packet(1, 2), machine.A
		if c.reply { // the addresses differ, so that this is the other direction
			b := ip4(layers.IPProtocolUDP)
			b.SrcIP, b.DstIP = ip4B, ip4A
			p = gopacket.NewPacket(write(t, b, &layers.UDP{SrcPort: 2, DstPort: 1}, gopacket.Payload("x")),
				layers.LayerTypeIPv4, gopacket.Default)
			side = machine.B
		}
		found, ok := f.Feed(p)
		if ok != c.found || found.From != side || string(found.Payload) != "x" {
			t.Errorf("datagram %d: %+v %v", i, found, ok)
		}
	}
	for port := range layers.UDPPort(3 * maxFlows) {
		f.Feed(packet(port+10, 2))
	}
	if n := len(f.flows); n > maxFlows {
		t.Errorf("%d flows are kept, expected at most %d", n, maxFlows)
	}
}
