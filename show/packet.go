package show

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// AppendEndpoint appends an address, with its port if the packet has ports.
func AppendEndpoint(to []byte, a netip.AddrPort, t capture.Transport) []byte {
	if t == capture.UDP || t == capture.TCP {
		return a.AppendTo(to)
	}
	return a.Addr().AppendTo(to)
}

// SeverityStyle returns the colour of a severity.
func SeverityStyle(s machine.Severity) Style {
	switch s {
	case machine.Error:
		return Red
	case machine.Warn:
		return Yellow
	default:
		return Cyan
	}
}

// AppendProtocol appends the name of the highest known protocol of a packet.
func AppendProtocol(to []byte, r *filter.Record) []byte {
	switch {
	case r.Protocol != nil:
		to = append(to, r.Protocol.Name...)
		if r.Dialect != "" {
			to = append(to, '/')
			to = append(to, r.Dialect...)
		}
		return to
	case r.Transport == capture.UDP:
		return append(to, "UDP"...)
	case r.Transport == capture.TCP:
		return append(to, "TCP"...)
	case r.Transport == capture.Fragment:
		return append(to, "IP fragment"...)
	}
	return append(to, carried(r)...)
}

// Names of other protocols, by EtherType and by IP protocol.
var (
	etherNames = map[uint16]string{
		0x0806: "ARP", 0x8035: "RARP", 0x88cc: "LLDP", 0x888e: "EAPOL",
		0x8863: "PPPoE discovery", 0x8847: "MPLS", 0x86dd: "IPv6", 0x0800: "IPv4",
	}
	ipNames = map[byte]string{
		1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 41: "IPv6", 47: "GRE", 50: "ESP", 51: "AH",
		58: "ICMPv6", 89: "OSPF", 132: "SCTP",
	}
)

// carried returns the protocol of a frame that is neither UDP nor TCP.
func carried(r *filter.Record) string {
	if r.Packet == nil || len(r.Packet.Layers) == 0 {
		return "?"
	}
	last := r.Packet.Layers[len(r.Packet.Layers)-1]
	h := r.Frame.Data[last.Offset:min(last.Offset+last.Length, len(r.Frame.Data))]
	ether := -1
	switch last.Kind {
	case capture.LayerEthernet:
		ether = 12
	case capture.LayerVLAN:
		ether = 2
	case capture.LayerSLL:
		ether = 14
	case capture.LayerSLL2:
		ether = 0
	case capture.LayerIPv4:
		if len(h) > 9 {
			return nameOr(ipNames[h[9]], "IPv4 protocol %d", int(h[9]))
		}
	case capture.LayerIPv6:
		if len(h) > 6 {
			return nameOr(ipNames[h[6]], "IPv6 header %d", int(h[6]))
		}
	case capture.LayerIPv6Extension:
		if len(h) > 0 {
			return nameOr(ipNames[h[0]], "IPv6 header %d", int(h[0]))
		}
	case capture.LayerNull, capture.LayerUDP, capture.LayerTCP, capture.LayerPPPoE, capture.LayerSNAP:
	}
	if ether >= 0 && len(h) >= ether+2 {
		v := uint16(h[ether])<<8 | uint16(h[ether+1])
		return nameOr(etherNames[v], "EtherType 0x%04x", int(v))
	}
	return last.Kind.String()
}

func nameOr(name, format string, n int) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf(format, n)
}

// AppendInfo appends a summary of a packet.
func AppendInfo(to []byte, l *filter.Reading) []byte {
	r := &l.Record
	switch {
	case r.Packet != nil && r.Packet.Problem != nil:
		to = AppendClean(append(to, "malformed: "...), r.Packet.Problem.Error())
	case r.Protocol != nil && r.Decode != nil:
		to = r.Protocol.Info(l.Context(), &r.Datagram, to)
	case r.Transport == capture.TCP:
		to = AppendTCP(to, r)
	case r.Transport == capture.UDP:
		to = AppendBytesCount(to, r.Datagram.Length)
	case r.Packet != nil && r.Packet.Quote != nil:
		to = appendQuote(to, r)
	}
	if p := r.Packet; p != nil {
		if p.Fragments > 1 {
			to = append(to, "  (of "...)
			to = strconv.AppendInt(to, int64(p.Fragments), 10)
			to = append(to, " IP fragments)"...)
		}
		if p.Duplicate {
			to = append(to, "  (captured twice)"...)
		}
		if r.Batched > 0 {
			to = strconv.AppendInt(append(to, "  ("...), int64(r.Nth+1), 10)
			to = append(strconv.AppendInt(append(to, " of "...), int64(r.Batched), 10), " captured as one)"...)
		}
	}
	return to
}

// appendQuote appends what an ICMP error says, and about which packet: "port unreachable about
// frame 12 of flow 3".
func appendQuote(to []byte, r *filter.Record) []byte {
	q := r.Packet.Quote
	to = append(to, q.Reason.String()...)
	if q.MTU > 0 {
		to = strconv.AppendInt(append(to, ", MTU "...), int64(q.MTU), 10)
		to = append(to, ',')
	}
	x := &r.Quoted
	switch {
	case x.Flow == 0:
		to = q.Src.AppendTo(append(to, " about "...))
		return q.Dst.AppendTo(append(to, " → "...))
	case x.Ref == 0:
		to = strconv.AppendInt(append(to, " about flow "...), int64(x.Flow), 10)
		return append(to, " (possible: it quotes no captured datagram)"...)
	}
	to = strconv.AppendUint(append(to, " about frame "...), x.Ref.Frame(), 10)
	to = strconv.AppendInt(append(to, " of flow "...), int64(x.Flow), 10)
	if x.Certainty != machine.Certain {
		to = append(append(append(to, " ("...), x.Certainty.String()...), ')')
	}
	return to
}

// AppendBytesCount appends a number of bytes: "1 byte", "2 bytes".
func AppendBytesCount(to []byte, n int) []byte {
	to = strconv.AppendInt(to, int64(n), 10)
	if n == 1 {
		return append(to, " byte"...)
	}
	return append(to, " bytes"...)
}

var tcpFlagNames = [...]string{"FIN", "SYN", "RST", "PSH", "ACK", "URG"}

// AppendTCP appends the flags, the sequence number and the length of a TCP segment.
func AppendTCP(to []byte, r *filter.Record) []byte {
	if p := r.Packet; p != nil {
		to = append(to, '[')
		first := true
		for i, name := range tcpFlagNames {
			if p.TCPFlags>>i&1 != 0 {
				if !first {
					to = append(to, ' ')
				}
				first = false
				to = append(to, name...)
			}
		}
		to = append(to, "] seq "...)
		to = strconv.AppendUint(to, uint64(p.TCPSeq), 10)
		to = append(to, ", "...)
	}
	return AppendBytesCount(to, r.Datagram.Length)
}
