package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// packetLister prints packets for eyes: a line, and below it the tree and the
// bytes where they are asked for.
type packetLister struct {
	app     *app
	listing *listing
	paint   painter
	times   string
	verbose bool
	hex     bool
	several bool
	width   int // of the terminal; 0 for none

	buf, cell []byte
	// widths of the columns grow with what they hold and never shrink, so that
	// a listing that is not known beforehand is aligned nearly everywhere.
	number, time, address, protocol, length int
}

func (a *app) newPacketLister(f *packetFlags, l *listing, several bool) (*packetLister, error) {
	colored, err := a.colored()
	if err != nil {
		return nil, err
	}
	switch f.times {
	case "r", "d", "a", "ad", "e", "u", "ud":
	default:
		return nil, fmt.Errorf("-t %q: expected r, d, a, ad or e", f.times)
	}
	return &packetLister{app: a, listing: l, paint: painter(colored), times: f.times, verbose: f.verbose, hex: f.hex, several: several, width: a.width(), number: 5, address: 15, protocol: 6, length: 4}, nil
}

func (s *packetLister) show(r *filter.Record, x *analyze.Record) error {
	s.buf = s.buf[:0]
	if s.verbose {
		s.tree(r, x)
	} else {
		s.line(r)
	}
	if s.hex && r.Frame != nil {
		if !s.verbose {
			s.buf = append(s.buf, '\n')
		}
		s.buf = appendHexDump(s.buf, r.Frame.Data)
		if r.Packet.Fragments > 1 && r.Transport == capture.UDP {
			s.buf = append(s.buf, "Payload of the reassembled datagram ("...)
			s.buf = strconv.AppendInt(s.buf, int64(len(r.Datagram.Bytes)), 10)
			s.buf = append(s.buf, " bytes):\n"...)
			s.buf = appendHexDump(s.buf, r.Datagram.Bytes)
		}
	}
	if s.verbose || s.hex {
		s.buf = append(s.buf, '\n')
	}
	_, err := s.app.writer().Write(s.buf)
	return err
}

// column adds the cell aligned to the left, and widens the column where needed.
func (s *packetLister) column(width *int, st style) {
	*width = max(*width, len(s.cell))
	s.buf = s.paint.begin(s.buf, st)
	from := len(s.buf)
	s.buf = append(s.buf, s.cell...)
	s.buf = s.paint.end(s.buf, st)
	if st == "" || !bool(s.paint) {
		s.buf = pad(s.buf, from, *width)
	} else {
		for n := len(s.cell); n < *width; n++ {
			s.buf = append(s.buf, ' ')
		}
	}
	s.buf = append(s.buf, ' ', ' ')
	s.cell = s.cell[:0]
}

// right adds the cell aligned to the right.
func (s *packetLister) right(width *int, st style) {
	*width = max(*width, len(s.cell))
	s.buf = s.paint.begin(s.buf, st)
	s.buf = padLeft(s.buf, s.cell, *width)
	s.buf = s.paint.end(s.buf, st)
	s.buf = append(s.buf, ' ', ' ')
	s.cell = s.cell[:0]
}

// line is the packet in one line: number, time, addresses, protocol, length, info.
func (s *packetLister) line(r *filter.Record) {
	s.cell = s.cell[:0]
	if s.several {
		s.cell = strconv.AppendInt(s.cell, int64(r.Datagram.Ref.File()+1), 10)
		s.cell = append(s.cell, ':')
	}
	s.cell = strconv.AppendUint(s.cell, r.Datagram.Ref.Frame(), 10)
	s.right(&s.number, "")
	s.cell = s.appendWhen(s.cell, r)
	s.right(&s.time, dim)
	side := cyan
	if r.Datagram.From == machine.B {
		side = purple
	}
	if r.Src.IsValid() {
		s.cell = appendEndpoint(s.cell, r.Src, r.Transport)
		s.column(&s.address, side)
		s.buf = append(s.buf[:len(s.buf)-1], "→ "...)
		s.cell = appendEndpoint(s.cell, r.Dst, r.Transport)
		s.column(&s.address, "")
	} else {
		s.column(&s.address, "")
		s.buf = append(s.buf, ' ')
		s.column(&s.address, "")
	}
	s.cell = appendProtocol(s.cell, r)
	s.column(&s.protocol, "")
	if r.Frame != nil {
		s.cell = strconv.AppendInt(s.cell, int64(r.Frame.Length), 10)
	} else {
		s.cell = append(s.cell, '?')
	}
	s.right(&s.length, "")
	s.info(r)
	s.buf = fit(append(bytes.TrimRight(s.buf, " "), '\n'), s.width)
}

// appendEndpoint writes an address, with its port where the packet has ports.
func appendEndpoint(to []byte, a netip.AddrPort, t capture.Transport) []byte {
	if t == capture.UDP || t == capture.TCP {
		return a.AppendTo(to)
	}
	return a.Addr().AppendTo(to)
}

// info ends a line: what the packet is, and what is wrong with it.
func (s *packetLister) info(r *filter.Record) {
	s.cell = appendInfo(s.cell[:0], s.listing, r)
	s.buf = append(s.buf, s.cell...)
	for i := range r.Anomalies {
		rule, n := r.Anomalies[i].Rule, 0
		for j := range r.Anomalies {
			if r.Anomalies[j].Rule == rule {
				if n++; j < i {
					n = -len(r.Anomalies) // told with the first of its rule
				}
			}
		}
		if n < 1 {
			continue
		}
		s.buf = s.paint.begin(append(s.buf, ' ', ' '), severityStyle(rule.Severity))
		s.buf = append(append(s.buf, '['), rule.ID...)
		if n > 1 {
			s.buf = strconv.AppendInt(append(s.buf, " ×"...), int64(n), 10)
		}
		s.buf = s.paint.end(append(s.buf, ']'), severityStyle(rule.Severity))
	}
}

func severityStyle(s machine.Severity) style {
	switch s {
	case machine.Error:
		return red
	case machine.Warn:
		return yellow
	default:
		return cyan
	}
}

// appendWhen writes the time column.
func (s *packetLister) appendWhen(to []byte, r *filter.Record) []byte {
	at := r.Datagram.At
	switch s.times {
	case "a", "u":
		return at.Time().AppendFormat(to, "15:04:05.000000")
	case "ad", "ud":
		return at.Time().AppendFormat(to, "2006-01-02 15:04:05.000000")
	case "e":
		return appendSeconds(to, int64(at), 9)
	case "d":
		return appendSeconds(to, int64(at-r.Previous), 6)
	}
	return appendSeconds(to, int64(at-r.Start), 6)
}

// appendSeconds writes nanoseconds as seconds with so many decimals.
func appendSeconds(to []byte, ns int64, decimals int) []byte {
	if ns < 0 {
		to, ns = append(to, '-'), -ns
	}
	to = strconv.AppendInt(to, ns/1e9, 10)
	to = append(to, '.')
	fraction, scale := ns%1e9, int64(1e8)
	for range decimals {
		to = append(to, '0'+byte(fraction/scale%10))
		scale /= 10
	}
	return to
}

// appendProtocol names the protocol of the line: the outermost that is known.
func appendProtocol(to []byte, r *filter.Record) []byte {
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

// Protocols that frames carry instead of what we read, by EtherType and by IP protocol.
var (
	etherNames = map[uint16]string{0x0806: "ARP", 0x8035: "RARP", 0x88cc: "LLDP", 0x888e: "EAPOL", 0x8863: "PPPoE discovery", 0x8847: "MPLS", 0x86dd: "IPv6", 0x0800: "IPv4"}
	ipNames    = map[byte]string{1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 41: "IPv6", 47: "GRE", 50: "ESP", 51: "AH", 58: "ICMPv6", 89: "OSPF", 132: "SCTP"}
)

// carried names what a frame holds that is neither UDP nor TCP.
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

// appendInfo says in a few words what the packet is.
func appendInfo(to []byte, l *listing, r *filter.Record) []byte {
	switch {
	case r.Packet != nil && r.Packet.Problem != nil:
		to = appendClean(append(to, "malformed: "...), r.Packet.Problem.Error())
	case r.Protocol != nil && r.Decode != nil:
		to = r.Protocol.Info(l.context(r), &r.Datagram, to)
	case r.Transport == capture.TCP:
		to = appendTCP(to, r)
	case r.Transport == capture.UDP:
		to = appendBytesCount(to, r.Datagram.Length)
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
	}
	return to
}

func appendBytesCount(to []byte, n int) []byte {
	to = strconv.AppendInt(to, int64(n), 10)
	if n == 1 {
		return append(to, " byte"...)
	}
	return append(to, " bytes"...)
}

var tcpFlagNames = [...]string{"FIN", "SYN", "RST", "PSH", "ACK", "URG"}

func appendTCP(to []byte, r *filter.Record) []byte {
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
	return appendBytesCount(to, r.Datagram.Length)
}

// contextOf is what the dissector of a flow's packet is given.
func contextOf(f *analyze.Flow, from machine.Side) dissect.Context {
	return dissect.Context{Config: f.Config(), From: from}
}
