package stack

import (
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Flows recognises the protocol of UDP flows for programs that decode packets
// with gopacket. It weighs the datagrams of a flow as ackscope does. It is not
// safe for concurrent use.
type Flows struct {
	protocols []*dissect.Protocol
	flows     map[[2]netip.AddrPort]*weighed
	frames    uint64
}

// Found is what Flows has found for the datagram of a packet.
type Found struct {
	Protocol *dissect.Protocol
	Config   *dissect.Config // the dialect and its settings
	From     machine.Side    // A sent the flow's first packet
	Payload  []byte          // of the datagram
}

// weighed is one flow.
type weighed struct {
	a           netip.AddrPort
	classifiers []dissect.Classifier
	datagrams   int
	found       Found
}

const (
	maxFlows  = 4096 // beyond it, Flows begins anew
	maxWeight = 64   // datagrams of a flow that are weighed
)

// NewFlows returns a table without flows that knows these protocols.
func NewFlows(protocols ...*dissect.Protocol) *Flows {
	return &Flows{protocols: protocols, flows: map[[2]netip.AddrPort]*weighed{}}
}

// Feed takes the next packet. It returns what is known of its flow; ok is false
// while that is nothing. Give it every packet, in the order of the capture.
func (f *Flows) Feed(p gopacket.Packet) (found Found, ok bool) {
	udp, isUDP := p.TransportLayer().(*layers.UDP)
	network := p.NetworkLayer()
	if !isUDP || network == nil {
		return Found{}, false
	}
	f.frames++
	ends := network.NetworkFlow()
	src, dst := addrPort(ends.Src(), udp.SrcPort), addrPort(ends.Dst(), udp.DstPort)
	w := f.flow(src, dst)
	side := machine.A
	if src != w.a {
		side = machine.B
	}
	w.datagrams++
	if w.found.Config == nil && w.datagrams <= maxWeight {
		f.weigh(w, &machine.Datagram{
			At:  machine.Instant(p.Metadata().Timestamp.UnixNano()),
			Ref: machine.MakeRef(0, f.frames), From: side, Bytes: udp.Payload, Length: max(int(udp.Length)-8, len(udp.Payload)),
		})
	}
	found = w.found
	found.From, found.Payload = side, udp.Payload
	return found, found.Config != nil
}

func addrPort(e gopacket.Endpoint, port layers.UDPPort) netip.AddrPort {
	a, _ := netip.AddrFromSlice(e.Raw())
	return netip.AddrPortFrom(a.Unmap(), uint16(port))
}

// flow returns the flow of two ends.
func (f *Flows) flow(src, dst netip.AddrPort) *weighed {
	key := [2]netip.AddrPort{src, dst}
	if src.Compare(dst) > 0 {
		key = [2]netip.AddrPort{dst, src}
	}
	w := f.flows[key]
	if w != nil {
		return w
	}
	if len(f.flows) >= maxFlows {
		clear(f.flows)
	}
	w = &weighed{a: src}
	for _, p := range f.protocols {
		c := p.Classify()
		c.Reset()
		w.classifiers = append(w.classifiers, c)
	}
	f.flows[key] = w
	return w
}

// weigh feeds the classifiers. The flow is of the protocol that is sure, or that
// has the most evidence once enough datagrams came.
func (f *Flows) weigh(w *weighed, d *machine.Datagram) {
	sure := w.datagrams == maxWeight
	for _, c := range w.classifiers {
		c.Feed(d)
		sure = sure || c.Sure()
	}
	if !sure {
		return
	}
	best := 0.0
	for i, c := range w.classifiers {
		if v := c.Verdict(); v.Config != nil && (w.found.Config == nil || v.Bits > best) {
			best = v.Bits
			w.found.Protocol, w.found.Config = f.protocols[i], v.Config
		}
	}
	if w.found.Config != nil {
		w.classifiers = nil
	}
}

// RegisterUDPPort makes gopacket decode a UDP port with decode, in this whole
// process. The value first is the number of the protocol's layer. The table of
// ports is gopacket's and not guarded, so call this before anything is decoded.
func RegisterUDPPort(first gopacket.LayerType, name string, port layers.UDPPort, decode gopacket.DecodeFunc) {
	const ports = 1 << 16 // beyond the numbers that gopacket and other packages use
	number := gopacket.OverrideLayerType(int(first)*ports+int(port),
		gopacket.LayerTypeMetadata{Name: name + ":" + port.String(), Decoder: decode})
	layers.RegisterUDPPortLayerType(port, number)
}

// Decoding is a layer that DecodeAs decodes.
type Decoding interface {
	gopacket.DecodingLayer
	gopacket.ApplicationLayer
}

// DecodeAs decodes data as a layer, and what it carries as its payload.
func DecodeAs(l Decoding, data []byte, p gopacket.PacketBuilder) error {
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
