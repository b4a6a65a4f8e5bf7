package stack

import (
	"fmt"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// option adds a type, a length and the bytes of a value, as a group.
func (s *fields) option(names optionNames, label string, at, n int) {
	s.group(names.group, label)
	s.depth++
	s.number(names.kind, "Type", Number, 8*at, 8)
	if n > 1 {
		s.number(names.length, "Length", Number, 8*at+8, 8)
	}
	if n > 2 {
		s.number(names.group+".data", "Value", Bytes, 8*(at+2), 8*(n-2))
	}
	s.depth--
}

// optionNames are the names of an option's fields.
type optionNames struct{ group, kind, length string }

var (
	ipOption   = optionNames{"ip.opt", "ip.opt.type", "ip.opt.len"}
	ipv6Option = optionNames{"ipv6.opt", "ipv6.opt.type", "ipv6.opt.length"}
	tcpOption  = optionNames{"tcp.option", "tcp.option_kind", "tcp.option_len"}
)

// ipv4Options adds the options of an IPv4 header. The end and padding are a byte
// each. All others have a type, a length of the whole, and a value.
func (s *fields) ipv4Options() {
	for at := 20; at < len(s.b) && len(s.out) < maxFields; {
		n := s.single(at)
		s.option(ipOption, fmt.Sprintf("Option %d", s.b[at]&31), at, n)
		if s.b[at] == 0 {
			return
		}
		at += n
	}
}

// tcpOptions is ipv4Options for TCP.
func (s *fields) tcpOptions() {
	for at := 20; at < len(s.b) && len(s.out) < maxFields; {
		n := s.single(at)
		s.option(tcpOption, "Option "+layers.TCPOptionKind(s.b[at]).String(), at, n)
		at += n
	}
}

// single returns the length of the option at a byte: 0 and 1 stand alone. What
// a wrong length would hide is taken for a part of the option.
func (s *fields) single(at int) int {
	switch {
	case s.b[at] < 2:
		return 1
	case at+1 == len(s.b):
		return 1
	case s.b[at+1] < 2 || at+int(s.b[at+1]) > len(s.b):
		return len(s.b) - at
	}
	return int(s.b[at+1])
}

// ipv6Options adds the options of an IPv6 extension header; 0 stands alone.
func (s *fields) ipv6Options() {
	for at := 2; at < len(s.b) && len(s.out) < maxFields; {
		n := 1
		switch {
		case s.b[at] == 0:
		case at+1 == len(s.b) || at+2+int(s.b[at+1]) > len(s.b):
			n = len(s.b) - at
		default:
			n = 2 + int(s.b[at+1])
		}
		s.option(ipv6Option, fmt.Sprintf("Option %#02x", s.b[at]), at, n)
		at += n
	}
}

// arpAddresses adds the four addresses, whose sizes the header says.
func (s *fields) arpAddresses(l *layers.ARP) {
	hw, proto := 8*int(l.HwAddressSize), 8*int(l.ProtAddressSize)
	kind := func(bits, want int) FieldKind {
		if bits == want {
			return Address
		}
		return Bytes
	}
	names := [...]string{"arp.src.hw", "arp.src.proto", "arp.dst.hw", "arp.dst.proto"}
	if hw == 48 {
		names[0], names[2] = "arp.src.hw_mac", "arp.dst.hw_mac"
	}
	if proto == 32 {
		names[1], names[3] = "arp.src.proto_ipv4", "arp.dst.proto_ipv4"
	}
	at := 64
	for i, label := range [...]string{
		"Sender's hardware address", "Sender's address", "Target's hardware address",
		"Target's address",
	} {
		bits, k := hw, kind(hw, 48)
		if i%2 == 1 {
			bits, k = proto, kind(proto, 32)
		}
		s.number(names[i], label, k, at, bits)
		at += bits
	}
}

// greOptional adds the fields that GRE's flags announce.
func (s *fields) greOptional(l *layers.GRE) {
	at := 32
	if l.ChecksumPresent || l.RoutingPresent {
		s.number("gre.checksum", "Checksum", Hex, at, 16)
		s.number("gre.offset", "Offset", Number, at+16, 16)
		at += 32
	}
	if l.KeyPresent {
		s.number("gre.key", "Key", Hex, at, 32)
		at += 32
	}
	if l.SeqPresent {
		s.number("gre.sequence_number", "Sequence number", Number, at, 32)
		at += 32
	}
	if l.AckPresent && !l.RoutingPresent {
		s.number("gre.ack_number", "Acknowledgement number", Number, at, 32)
	}
}

// icmpRest adds the second four bytes of an ICMP message, which its type gives
// a meaning.
func (s *fields) icmpRest(l *layers.ICMPv4) {
	switch l.TypeCode.Type() {
	case layers.ICMPv4TypeEchoReply, layers.ICMPv4TypeEchoRequest, layers.ICMPv4TypeTimestampRequest,
		layers.ICMPv4TypeTimestampReply, layers.ICMPv4TypeInfoRequest, layers.ICMPv4TypeInfoReply,
		layers.ICMPv4TypeAddressMaskRequest, layers.ICMPv4TypeAddressMaskReply:
		s.number("icmp.ident", "Identifier", Number, 32, 16)
		s.number("icmp.seq", "Sequence number", Number, 48, 16)
		s.icmpBody(l)
	case layers.ICMPv4TypeDestinationUnreachable:
		if l.TypeCode.Code() != layers.ICMPv4CodeFragmentationNeeded {
			s.number("icmp.unused", "Unused", Bytes, 32, 32)
			break
		}
		s.number("icmp.unused", "Unused", Bytes, 32, 16)
		s.number("icmp.mtu", "MTU of the next hop", Number, 48, 16)
	case layers.ICMPv4TypeRedirect:
		s.number("icmp.redir_gw", "Gateway", Address, 32, 32)
	case layers.ICMPv4TypeParameterProblem:
		s.number("icmp.pointer", "Pointer", Number, 32, 8)
		s.number("icmp.unused", "Unused", Bytes, 40, 24)
	case layers.ICMPv4TypeRouterAdvertisement:
		s.number("icmp.num_addrs", "Addresses", Number, 32, 8)
		s.number("icmp.addr_entry_size", "Address entry size", Number, 40, 8)
		s.number("icmp.lifetime", "Lifetime, in s", Number, 48, 16)
	default:
		s.number("icmp.unused", "Unused", Bytes, 32, 32)
	}
}

// icmpBody adds the numbers that follow the eight bytes that gopacket takes for
// the header.
func (s *fields) icmpBody(l *layers.ICMPv4) {
	header := s.b
	s.b = l.Contents[:len(l.Contents):len(l.Contents)]
	s.b = append(s.b, l.Payload...)
	switch l.TypeCode.Type() {
	case layers.ICMPv4TypeTimestampRequest, layers.ICMPv4TypeTimestampReply:
		s.number("icmp.originate_timestamp", "Originate timestamp, in ms since midnight UTC", Number, 64, 32)
		s.number("icmp.receive_timestamp", "Receive timestamp, in ms since midnight UTC", Number, 96, 32)
		s.number("icmp.transmit_timestamp", "Transmit timestamp, in ms since midnight UTC", Number, 128, 32)
	case layers.ICMPv4TypeAddressMaskRequest, layers.ICMPv4TypeAddressMaskReply:
		s.number("icmp.address_mask", "Address mask", Address, 64, 32)
	}
	s.b = header
}

// icmpv6Rest adds the four bytes before the packet that ICMPv6 quotes.
func (s *fields) icmpv6Rest(before gopacket.Layer) {
	l, ok := before.(*layers.ICMPv6)
	if !ok {
		return
	}
	switch l.TypeCode.Type() {
	case layers.ICMPv6TypePacketTooBig:
		s.number("icmpv6.mtu", "MTU of the next hop", Number, 0, 32)
	case layers.ICMPv6TypeParameterProblem:
		s.number("icmpv6.pointer", "Pointer", Number, 0, 32)
	default:
		s.number("icmpv6.reserved", "Reserved", Bytes, 0, 32)
	}
}

// neighborOptions adds the options of neighbour discovery from byte at on.
// Their lengths count units of 8 bytes.
func (s *fields) neighborOptions(at int) {
	for at+2 <= len(s.b) && len(s.out) < maxFields {
		n := 8 * int(s.b[at+1])
		if n == 0 || at+n > len(s.b) {
			n = len(s.b) - at
		}
		kind := layers.ICMPv6Opt(s.b[at])
		s.group("icmpv6.opt", "Option "+kind.String())
		s.depth++
		s.number("icmpv6.opt.type", "Type", Number, 8*at, 8)
		s.number("icmpv6.opt.length", "Length, in 8 bytes", Number, 8*at+8, 8)
		switch {
		case kind == layers.ICMPv6OptSourceAddress && n == 8:
			s.number("icmpv6.opt.src_linkaddr", "Hardware address", Address, 8*at+16, 48)
		case kind == layers.ICMPv6OptTargetAddress && n == 8:
			s.number("icmpv6.opt.target_linkaddr", "Hardware address", Address, 8*at+16, 48)
		case kind == layers.ICMPv6OptMTU && n == 8:
			s.number("icmpv6.opt.mtu", "MTU", Number, 8*at+32, 32)
		case kind == layers.ICMPv6OptPrefixInfo && n == 32:
			s.number("icmpv6.opt.prefix.length", "Prefix length", Number, 8*at+16, 8)
			s.number("icmpv6.opt.prefix.flag", "Flags", Hex, 8*at+24, 8)
			s.number("icmpv6.opt.prefix.valid_lifetime", "Valid lifetime, in s", Number, 8*at+32, 32)
			s.number("icmpv6.opt.prefix.preferred_lifetime", "Preferred lifetime, in s", Number, 8*at+64, 32)
			s.number("icmpv6.opt.prefix", "Prefix", Address, 8*at+128, 128)
		default:
			s.number("icmpv6.opt.data", "Value", Bytes, 8*at+16, 8*(n-2))
		}
		s.depth--
		at += n
	}
}

// dnsRecords adds the questions and records. gopacket has joined their names,
// which may continue elsewhere in the message, so that they have no one place.
func (s *fields) dnsRecords(l *layers.DNS) {
	for i := range l.Questions {
		q := &l.Questions[i]
		s.group("dns.qry", "Question")
		s.depth++
		s.text("dns.qry.name", "Name", string(q.Name))
		s.coded("dns.qry.type", "Type", Number, uint64(q.Type), q.Type.String())
		s.coded("dns.qry.class", "Class", Hex, uint64(q.Class), q.Class.String())
		s.depth--
	}
	for _, list := range []struct {
		label   string
		records []layers.DNSResourceRecord
	}{{"Answer", l.Answers}, {"Authority", l.Authorities}, {"Additional record", l.Additionals}} {
		for i := range list.records {
			r := &list.records[i]
			s.group("dns.resp", list.label)
			s.depth++
			s.text("dns.resp.name", "Name", string(r.Name))
			s.coded("dns.resp.type", "Type", Number, uint64(r.Type), r.Type.String())
			s.coded("dns.resp.class", "Class", Hex, uint64(r.Class), r.Class.String())
			s.coded("dns.resp.ttl", "Time to live, in s", Number, uint64(r.TTL), "")
			if v := dnsValue(r); v != "" {
				s.text("dns.resp.value", "Value", v)
			}
			s.depth--
		}
	}
}

// dnsValue returns what a record says, for the types that gopacket reads.
func dnsValue(r *layers.DNSResourceRecord) string {
	switch r.Type {
	case layers.DNSTypeA, layers.DNSTypeAAAA:
		return r.IP.String()
	case layers.DNSTypeNS:
		return string(r.NS)
	case layers.DNSTypeCNAME:
		return string(r.CNAME)
	case layers.DNSTypePTR:
		return string(r.PTR)
	case layers.DNSTypeTXT:
		var parts []string
		for _, t := range r.TXTs {
			parts = append(parts, string(t))
		}
		return strings.Join(parts, " ")
	case layers.DNSTypeSRV:
		return fmt.Sprintf("%s port %d, priority %d, weight %d", r.SRV.Name, r.SRV.Port, r.SRV.Priority, r.SRV.Weight)
	case layers.DNSTypeMX:
		return fmt.Sprintf("%s, preference %d", r.MX.Name, r.MX.Preference)
	case layers.DNSTypeSOA:
		return fmt.Sprintf("%s %s, serial %d", r.SOA.MName, r.SOA.RName, r.SOA.Serial)
	}
	return ""
}

// dhcpOptions adds the options after the magic cookie; 0 and 255 stand alone.
func (s *fields) dhcpOptions() {
	for at := 240; at < len(s.b) && len(s.out) < maxFields; {
		kind, n := layers.DHCPOpt(s.b[at]), 1
		if kind != layers.DHCPOptPad && kind != layers.DHCPOptEnd && at+1 < len(s.b) {
			n = min(2+int(s.b[at+1]), len(s.b)-at)
		}
		if kind != layers.DHCPOptPad {
			s.dhcpOption(kind, at, n)
		}
		if kind == layers.DHCPOptEnd {
			return
		}
		at += n
	}
}

func (s *fields) dhcpOption(kind layers.DHCPOpt, at, n int) {
	s.group("dhcp.option", "Option "+kind.String())
	s.depth++
	s.number("dhcp.option.type", "Type", Number, 8*at, 8)
	if n > 1 {
		s.number("dhcp.option.length", "Length", Number, 8*at+8, 8)
	}
	bit, bits := 8*at+16, 8*(n-2)
	switch kind {
	case layers.DHCPOptMessageType:
		s.add(&spec{
			name: "dhcp.option.dhcp", label: "Message", bit: bit, bits: bits,
			word: func(v uint64) string { return layers.DHCPMsgType(v).String() },
		})
	case layers.DHCPOptHostname, layers.DHCPOptDomainName:
		s.number("dhcp.option.value", "Value", Text, bit, bits)
	case layers.DHCPOptSubnetMask, layers.DHCPOptRouter, layers.DHCPOptDNS, layers.DHCPOptRequestIP,
		layers.DHCPOptServerID, layers.DHCPOptBroadcastAddr:
		for ; bits >= 32; bit, bits = bit+32, bits-32 {
			s.number("dhcp.option.value", "Value", Address, bit, 32)
		}
	default:
		s.number("dhcp.option.value", "Value", Bytes, bit, bits)
	}
	s.depth--
}
