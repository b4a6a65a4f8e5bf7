package stack

import (
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Name is the name of a field that layers can have.
type Name struct {
	Name   string // as Wireshark names it: "icmp.type"
	Label  string // "Type"
	Header string // whose field it is: "ICMP"
	Kind   FieldKind
	Bits   int // its width; 0 where that differs
	// ByPort is set where only a port number speaks for the header.
	ByPort bool
}

// Names returns the name of every field that Fields, Parts and a packet that
// ICMP quotes can have, each once, header by header. It leaves out the fields of
// layers that have no table here.
func Names() (list []Name) {
	seen := map[string]bool{}
	for _, h := range headers() {
		for _, part := range h.specs {
			for i := range part {
				if x := &part[i]; !seen[x.name] {
					seen[x.name] = true
					list = append(list, Name{
						Name: x.name, Label: x.label, Header: h.title, Kind: x.kind, Bits: x.bits,
						ByPort: h.byPort,
					})
				}
			}
		}
	}
	return list
}

// named is a kind of header with its fields.
type named struct {
	title  string
	byPort bool
	specs  [][]spec
}

// headers returns every header with a table, in the order in which frames have
// them.
func headers() []named {
	table := func(types ...gopacket.LayerType) (list [][]spec) {
		for _, t := range types {
			list = append(list, tables[t])
		}
		return list
	}
	return []named{
		{"Ethernet", false, [][]spec{ethernetTable, {ethernetType, ethernetLength}}},
		{"802.1Q", false, [][]spec{vlanTable}},
		{"802.1ad", false, [][]spec{serviceTagTable}},
		{"Linux cooked", false, table(layers.LayerTypeLinuxSLL, LayerTypeLinuxSLL2)},
		{"BSD loopback", false, [][]spec{{{name: "null.family", label: "Address family", bits: 32}}}},
		{"PPPoE", false, table(layers.LayerTypePPPoE)},
		{"PPP", false, table(layers.LayerTypePPP)},
		{"LLC", false, table(layers.LayerTypeLLC)},
		{"SNAP", false, table(layers.LayerTypeSNAP)},
		{"IPv4", false, [][]spec{ipv4Table, ipv4Parts, ipOption.specs()}},
		{"IPv6", false, table(layers.LayerTypeIPv6)},
		{"IPv6 options", false, [][]spec{hopByHopTable, destinationTable, ipv6Option.specs()}},
		{"IPv6 routing", false, [][]spec{routingTable, segmentTable, {segment}}},
		{"IPv6 fragment", false, table(layers.LayerTypeIPv6Fragment)},
		{"Authentication header", false, table(layers.LayerTypeIPSecAH)},
		{"UDP", false, append(table(layers.LayerTypeUDP), []spec{udpPayload})},
		{"TCP", false, [][]spec{tcpTable, tcpParts, {tcpLength, tcpPayload}, tcpOption.specs()}},
		{"ARP", false, [][]spec{arpTable, arpAddressNames}},
		{"ICMP", false, [][]spec{icmpTable, icmpNames}},
		{"ICMPv6", false, append(table(layers.LayerTypeICMPv6, layers.LayerTypeICMPv6Echo,
			layers.LayerTypeICMPv6RouterSolicitation, layers.LayerTypeICMPv6RouterAdvertisement,
			layers.LayerTypeICMPv6NeighborSolicitation, layers.LayerTypeICMPv6NeighborAdvertisement,
			layers.LayerTypeICMPv6Redirect, layers.LayerTypeMLDv1MulticastListenerQuery), icmpv6Names)},
		{"GRE", false, [][]spec{greTable, greNames}},
		{"VXLAN", true, table(layers.LayerTypeVXLAN)},
		{"DHCP", true, [][]spec{dhcpTable, dhcpNames}},
		{"DNS", true, [][]spec{dnsTable, dnsNames}},
	}
}

// specs returns the names of an option's fields.
func (n optionNames) specs() []spec {
	return []spec{
		{name: n.kind, label: "Type of an option", bits: 8},
		{name: n.length, label: "Length of an option", bits: 8},
		{name: n.group + ".data", label: "Value of an option", kind: Bytes},
	}
}

// Names of fields whose places depend on the header's other fields.
var (
	ethernetLength = spec{name: "eth.len", label: "Length", bit: 96, bits: 16}
	segment        = spec{name: "ipv6.routing.srh.addr", label: "Segment", bits: 128, kind: Address}
	udpPayload     = spec{name: "udp.payload", label: "Payload", kind: Bytes}
	tcpPayload     = spec{name: "tcp.payload", label: "Payload", kind: Bytes}
	tcpLength      = spec{name: "tcp.len", label: "Length of the payload", bits: 16}

	arpAddressNames = []spec{
		{name: "arp.src.hw_mac", label: "Sender's hardware address", bits: 48, kind: Address},
		{name: "arp.src.proto_ipv4", label: "Sender's address", bits: 32, kind: Address},
		{name: "arp.dst.hw_mac", label: "Target's hardware address", bits: 48, kind: Address},
		{name: "arp.dst.proto_ipv4", label: "Target's address", bits: 32, kind: Address},
		{name: "arp.src.hw", label: "Sender's hardware address, if that is no MAC address", kind: Bytes},
		{name: "arp.src.proto", label: "Sender's address, if that is no IPv4 address", kind: Bytes},
		{name: "arp.dst.hw", label: "Target's hardware address, if that is no MAC address", kind: Bytes},
		{name: "arp.dst.proto", label: "Target's address, if that is no IPv4 address", kind: Bytes},
	}
	icmpNames = []spec{
		{name: "icmp.ident", label: "Identifier", bits: 16},
		{name: "icmp.seq", label: "Sequence number", bits: 16},
		{name: "icmp.unused", label: "Unused", kind: Bytes},
		{name: "icmp.mtu", label: "MTU of the next hop", bits: 16},
		{name: "icmp.redir_gw", label: "Gateway", bits: 32, kind: Address},
		{name: "icmp.pointer", label: "Pointer", bits: 8},
		{name: "icmp.num_addrs", label: "Addresses", bits: 8},
		{name: "icmp.addr_entry_size", label: "Address entry size", bits: 8},
		{name: "icmp.lifetime", label: "Lifetime, in s", bits: 16},
		{name: "icmp.originate_timestamp", label: "Originate timestamp, in ms since midnight UTC", bits: 32},
		{name: "icmp.receive_timestamp", label: "Receive timestamp, in ms since midnight UTC", bits: 32},
		{name: "icmp.transmit_timestamp", label: "Transmit timestamp, in ms since midnight UTC", bits: 32},
		{name: "icmp.address_mask", label: "Address mask", bits: 32, kind: Address},
	}
	icmpv6Names = []spec{
		{name: "icmpv6.mtu", label: "MTU of the next hop", bits: 32},
		{name: "icmpv6.pointer", label: "Pointer", bits: 32},
		{name: "icmpv6.opt.type", label: "Type of an option", bits: 8},
		{name: "icmpv6.opt.length", label: "Length of an option, in 8 bytes", bits: 8},
		{name: "icmpv6.opt.src_linkaddr", label: "Hardware address of the source", bits: 48, kind: Address},
		{name: "icmpv6.opt.target_linkaddr", label: "Hardware address of the target", bits: 48, kind: Address},
		{name: "icmpv6.opt.mtu", label: "MTU", bits: 32},
		{name: "icmpv6.opt.prefix.length", label: "Prefix length", bits: 8},
		{name: "icmpv6.opt.prefix.flag", label: "Flags of the prefix", bits: 8, kind: Hex},
		{name: "icmpv6.opt.prefix.valid_lifetime", label: "Valid lifetime of the prefix, in s", bits: 32},
		{name: "icmpv6.opt.prefix.preferred_lifetime", label: "Preferred lifetime of the prefix, in s", bits: 32},
		{name: "icmpv6.opt.prefix", label: "Prefix", bits: 128, kind: Address},
		{name: "icmpv6.opt.data", label: "Value of another option", kind: Bytes},
	}
	greNames = []spec{
		{name: "gre.checksum", label: "Checksum", bits: 16, kind: Hex},
		{name: "gre.offset", label: "Offset", bits: 16},
		{name: "gre.key", label: "Key", bits: 32, kind: Hex},
		{name: "gre.sequence_number", label: "Sequence number", bits: 32},
		{name: "gre.ack_number", label: "Acknowledgement number", bits: 32},
	}
	dhcpNames = []spec{
		{name: "dhcp.option.type", label: "Type of an option", bits: 8},
		{name: "dhcp.option.length", label: "Length of an option", bits: 8},
		{name: "dhcp.option.dhcp", label: "Message", bits: 8},
		{name: "dhcp.option.value", label: "Value of an option", kind: Bytes},
	}
	dnsNames = []spec{
		{name: "dns.qry.name", label: "Name in a question", kind: Text},
		{name: "dns.qry.type", label: "Type in a question"},
		{name: "dns.qry.class", label: "Class in a question", bits: 16, kind: Hex},
		{name: "dns.resp.name", label: "Name in a record", kind: Text},
		{name: "dns.resp.type", label: "Type of a record"},
		{name: "dns.resp.class", label: "Class of a record", bits: 16, kind: Hex},
		{name: "dns.resp.ttl", label: "Time to live of a record, in s"},
		{name: "dns.resp.value", label: "What a record says", kind: Text},
	}
)

// Parts are fields that a tree shows in pieces, or as other layers.
var (
	ipv4Parts = []spec{
		{name: "ip.dsfield", label: "Differentiated services field", bit: 8, bits: 8, kind: Hex},
		{name: "ip.flags", label: "Flags", bit: 48, bits: 3, kind: Hex},
	}
	tcpParts = []spec{{name: "tcp.flags", label: "Flags", bit: 100, bits: 12, kind: Hex}}
)

// Parts returns the fields of the layer at index i that Fields has only in
// pieces, or not at all. They are the flags of a header as one number, and the
// payload of UDP and TCP with its length. Parts uses the space of a slice, whose
// values it overwrites.
func (s *Stack) Parts(space []Field, i int) []Field {
	l := &s.Layers[i]
	x := fields{layer: l, b: l.header, out: space[:0]}
	switch t := l.Layer.(type) {
	case *layers.IPv4:
		x.table(ipv4Parts)
	case *layers.UDP:
		x.payload(&udpPayload)
	case *layers.TCP:
		x.table(tcpParts)
		if n, ok := s.segmentLength(i, t); ok {
			x.coded(tcpLength.name, tcpLength.label, Number, uint64(n), "")
		}
		x.payload(&tcpPayload)
	}
	return x.out
}

// payload adds what the layer carries.
func (s *fields) payload(x *spec) {
	if b := s.layer.LayerPayload(); len(b) > 0 {
		s.out = append(s.out, Field{
			Name: x.name, Label: x.label, Bit: 8 * (s.layer.Offset + s.layer.Length),
			Bits: 8 * len(b), Kind: Bytes, Bytes: b,
		})
	}
}

// segmentLength returns the bytes of payload of the TCP segment at index i, by
// the length that the IP header before it claims. A snap length may have cut
// the segment. ok is false where no header says it.
func (s *Stack) segmentLength(i int, t *layers.TCP) (n int, ok bool) {
	n = -4 * int(t.DataOffset)
	for _, l := range slices.Backward(s.Layers[:i]) {
		switch ip := l.Layer.(type) {
		case *layers.IPv4:
			n += int(ip.Length) - 4*int(ip.IHL)
			return n, n >= 0
		case *layers.IPv6:
			n += int(ip.Length)
			return n, n >= 0
		}
		n -= l.Length
	}
	return 0, false
}
