package show

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/stack"
	"github.com/ackscope/ackscope/filter"
)

// StackOf takes the frame of a packet apart. Its last layer is the dissection
// of l where a protocol explains the flow. Joined is what the frame completes:
// the payload of an IP packet that came in fragments, or a message of a TCP
// stream. It is nil for all others. Both are nil where there is no frame.
func StackOf(l *filter.Reading, x *analyze.Record) (frame, joined *stack.Stack) {
	r := &l.Record
	if r.Frame == nil {
		return nil, nil
	}
	var c stack.Chosen
	if r.Protocol != nil && r.Decode != nil {
		c = stack.Chosen{Protocol: r.Protocol, Dissect: r.Dissection}
	}
	switch {
	case x.Message:
		return stack.Decode(r.Frame, stack.Chosen{}), stack.DecodeMessage(r.Datagram.Bytes, c)
	case r.Packet.Joined != nil:
		return stack.Decode(r.Frame, stack.Chosen{}), stack.DecodeIP(r.Packet.Joined, r.Packet.JoinedAs, c)
	}
	return stack.Decode(r.Frame, c), nil
}

// layerTree writes the layers of the frame, down to the datagram.
func (s *Tree) layerTree(r *filter.Record, x *analyze.Record) {
	frame, joined := StackOf(s.reading, x)
	s.layers(frame, InFrame, 0)
	if s.wrong(r, frame); r.Packet.Joined != nil {
		frames := make([]string, 0, len(r.Packet.Spans))
		for _, span := range r.Packet.Spans {
			frames = append(frames, strconv.FormatUint(span.Ref.Frame(), 10))
		}
		s.heading("Reassembled: %d IP fragments, frames %s", r.Packet.Fragments, strings.Join(frames, ", "))
		s.layers(joined, InJoined, 0)
		s.wrong(r, joined)
	}
	if r.Packet.BadChecksum {
		s.remark(Dim, "a checksum does not match, as it does where the network card computes it")
	}
}

// wrong says where decoding stopped, unless the frame's own line says it.
func (s *Tree) wrong(r *filter.Record, k *stack.Stack) {
	var e *stack.LayerError
	ok := errors.As(k.Problem, &e)
	switch {
	case !ok || r.Packet.Problem != nil:
	case e.ByPort:
		s.remark(Dim, "not %s, which its port is for: %v at byte %d", e.Layer, e.Err, e.Offset)
	default:
		s.remark(Red, "malformed: %v", e)
	}
}

// layers writes the layers of a stack, indented by so many steps.
func (s *Tree) layers(k *stack.Stack, place Place, depth int) {
	for i := range k.Layers {
		l := &k.Layers[i]
		switch l.Layer.(type) {
		case *stack.Datagram, *gopacket.Fragment:
			continue
		case *gopacket.Payload:
			if i > 0 && depth == 0 && isTransport(k.Layers[i-1].Layer) && !tunnelled(k, i) {
				continue // the tree has it as Data, after the flow
			}
		}
		s.line = TreeLine{Place: place, Bit: 8 * l.Offset, Bits: 8 * l.Length}
		s.layerHeading(l, depth)
		if t, ok := l.Layer.(*layers.IPv4); ok && (t.FragOffset != 0 || t.Flags&layers.IPv4MoreFragments != 0) {
			s.row("Fragment: bytes %d on%s", int(t.FragOffset)*8,
				map[bool]string{true: ", more follow", false: ", the last"}[t.Flags&layers.IPv4MoreFragments != 0])
		}
		for _, f := range k.Fields(i) {
			s.layerField(&f, place, depth)
		}
		if l.Quoted != nil {
			s.layers(l.Quoted, place, depth+1)
			if p := l.Quoted.Problem; p != nil {
				s.remark(Dim, "the quoted packet ends: %v", p)
			}
		}
	}
}

// isTransport reports whether a layer is UDP or TCP.
func isTransport(l gopacket.Layer) bool {
	t := l.LayerType()
	return t == layers.LayerTypeUDP || t == layers.LayerTypeTCP
}

// tunnelled reports whether the layer at index i is within a packet that
// another one carries.
func tunnelled(k *stack.Stack, i int) bool {
	networks := 0
	for n := range i {
		switch k.Layers[n].LayerType() {
		case layers.LayerTypeIPv4, layers.LayerTypeIPv6:
			networks++
		}
	}
	return networks > 1
}

// layerHeading writes what a layer is, in one line.
func (s *Tree) layerHeading(l *stack.Layer, depth int) {
	from := len(s.Buf)
	for range depth {
		s.Buf = append(s.Buf, "    "...)
	}
	text := LayerTitle(l)
	if t, ok := l.Layer.(*layers.TCP); ok && depth == 0 && s.reading.Record.Packet.Transport == capture.TCP {
		text = tcpTitle(t, l.Header(), s.reading.Record.Packet.Length) // a snap length may have cut the payload
	}
	if l.ByPort {
		text += " (by its port)"
	}
	s.Buf = s.Paint.Begin(s.Buf, Bold)
	s.Buf = AppendClean(s.Buf, text)
	s.Buf = s.Paint.End(s.Buf, Bold)
	s.line.Heading, s.line.Layer = depth == 0, depth == 0
	s.end(from)
}

// layerField writes one field of a layer, with its place in the frame.
func (s *Tree) layerField(f *stack.Field, place Place, depth int) {
	from := len(s.Buf)
	for range 1 + depth + f.Depth {
		s.Buf = append(s.Buf, "    "...)
	}
	first, last := f.Bit/8, (f.Bit+f.Bits-1)/8
	low := 8 - f.Bit%8 - f.Bits // in the byte, for a field of a few bits
	if f.Bits > 0 && f.Bits < 8 && first == last {
		s.Buf = appendBitPattern(s.Buf, byte(f.Raw)<<low, uint32(low), uint32(f.Bits))
		s.Buf = append(s.Buf, " = "...)
	}
	s.Buf = AppendClean(s.Buf, f.Label)
	if f.Kind != stack.Group {
		s.Buf = appendLayerValue(append(s.Buf, ": "...), f)
	}
	if f.Bits > 0 {
		s.Buf = Pad(s.Buf, from, s.width())
		s.Buf = append(s.Buf, ' ', ' ')
		s.Buf = s.Paint.Begin(s.Buf, Dim)
		s.Buf = appendPlace(s.Buf, &dissect.Field{Bit: uint32(f.Bit), Bits: uint32(f.Bits)})
		s.Buf = s.Paint.End(s.Buf, Dim)
		s.line = TreeLine{Place: place, Bit: 8 * first, Bits: 8 * (last - first + 1)}
		if first == last {
			s.line.Bit, s.line.Bits = 8*first+low, f.Bits
		}
	}
	s.end(from)
}

// appendLayerValue writes a value for eyes.
func appendLayerValue(to []byte, f *stack.Field) []byte {
	switch f.Kind {
	case stack.Number, stack.Hex:
		if f.Word != "" {
			to = append(AppendClean(to, f.Word), " ("...)
		}
		if f.Kind == stack.Hex {
			to = filter.AppendHex(to, f.Uint, f.Bits)
		} else {
			to = strconv.AppendUint(to, f.Uint, 10)
		}
		if f.Word != "" {
			to = append(to, ')')
		}
		return to
	case stack.Flag:
		return strconv.AppendBool(to, f.Uint != 0)
	case stack.Bytes:
		return AppendShortBytes(to, f.Bytes)
	case stack.Address:
		return AppendAddress(to, f)
	case stack.Text:
		return AppendClean(to, f.Text)
	case stack.Group:
	}
	return to
}

// AppendAddress writes an IP address, or a hardware address.
func AppendAddress(to []byte, f *stack.Field) []byte {
	if a, ok := f.IP(); ok {
		return a.AppendTo(to)
	}
	return append(to, net.HardwareAddr(f.Bytes).String()...)
}

// LayerTitle says in a few words what a layer is.
func LayerTitle(l *stack.Layer) string {
	h := l.Header()
	be16 := func(at int) uint16 { return binary.BigEndian.Uint16(h[at:]) }
	switch t := l.Layer.(type) {
	case *layers.Ethernet:
		return fmt.Sprintf("Ethernet: %s → %s, type %#04x", t.SrcMAC, t.DstMAC, be16(12))
	case *layers.Dot1Q:
		return fmt.Sprintf("VLAN: %d, priority %d, type %#04x", t.VLANIdentifier, t.Priority, be16(2))
	case *layers.LinuxSLL:
		return fmt.Sprintf("%s: %d bytes", capture.LayerSLL, l.Length)
	case *stack.LinuxSLL2:
		return fmt.Sprintf("%s: %d bytes", capture.LayerSLL2, l.Length)
	case *layers.Loopback:
		return fmt.Sprintf("%s: %d bytes", capture.LayerNull, l.Length)
	case *layers.PPPoE:
		return fmt.Sprintf("%s: %d bytes", capture.LayerPPPoE, l.Length)
	case *layers.IPv4:
		return fmt.Sprintf("IPv4: %s → %s, length %d, protocol %d, TTL %d", t.SrcIP, t.DstIP, be16(2), uint8(t.Protocol),
			t.TTL)
	case *layers.IPv6:
		return fmt.Sprintf("IPv6: %s → %s, payload %d bytes, next header %d, hop limit %d", ip6Text(t.SrcIP),
			ip6Text(t.DstIP), t.Length, uint8(t.NextHeader), t.HopLimit)
	case *layers.UDP:
		if len(h) < udpHeader {
			return fmt.Sprintf("UDP: %d → %d, cut", uint16(t.SrcPort), uint16(t.DstPort))
		}
		return fmt.Sprintf("UDP: %d → %d, length %d", uint16(t.SrcPort), uint16(t.DstPort), t.Length)
	case *layers.TCP:
		return tcpTitle(t, h, len(t.LayerPayload()))
	case *layers.ICMPv4:
		return "ICMP: " + t.TypeCode.String()
	case *layers.ICMPv6:
		return "ICMPv6: " + t.TypeCode.String()
	case *layers.ARP:
		return "ARP: " + arpTitle(t)
	case *layers.GRE:
		return fmt.Sprintf("GRE: protocol %#04x", uint16(t.Protocol))
	case *layers.VXLAN:
		return fmt.Sprintf("VXLAN: network %d", t.VNI)
	case *stack.Datagram:
		return fmt.Sprintf("%s: %d bytes", t.Protocol.Title, l.Length)
	case *stack.Quote:
		return "Quoted: the packet that the error is about"
	case *gopacket.Payload:
		return "Data: " + string(AppendShortBytes(nil, t.LayerContents()))
	case *layers.IPv6HopByHop, *layers.IPv6Destination, *layers.IPv6Fragment, *stack.IPv6SegmentRouting:
		return fmt.Sprintf("%s: %s, %d bytes", capture.LayerIPv6Extension, l.LayerType(), l.Length)
	}
	return fmt.Sprintf("%s: %d bytes", l.LayerType(), l.Length)
}

const udpHeader = 8

// tcpTitle is the title of a segment with so many bytes of payload.
func tcpTitle(t *layers.TCP, h []byte, length int) string {
	ports := fmt.Sprintf("TCP: %d → %d", uint16(t.SrcPort), uint16(t.DstPort))
	if len(h) < 14 {
		return fmt.Sprintf("%s, seq %d, cut", ports, t.Seq)
	}
	var flags []string
	for i, name := range tcpFlagNames {
		if h[13]>>i&1 != 0 {
			flags = append(flags, name)
		}
	}
	return fmt.Sprintf("%s, [%s] seq %d, %s", ports, strings.Join(flags, " "), t.Seq,
		AppendBytesCount(nil, length))
}

func arpTitle(t *layers.ARP) string {
	sender, target := net.IP(t.SourceProtAddress), net.IP(t.DstProtAddress)
	switch {
	case t.Protocol != layers.EthernetTypeIPv4 || len(sender) != 4 || len(target) != 4:
		return fmt.Sprintf("operation %d", t.Operation)
	case t.Operation == layers.ARPRequest:
		return fmt.Sprintf("who has %s? %s asks", target, sender)
	case t.Operation == layers.ARPReply:
		return fmt.Sprintf("%s is at %s", sender, net.HardwareAddr(t.SourceHwAddress))
	}
	return fmt.Sprintf("operation %d, %s to %s", t.Operation, sender, target)
}
