package stack

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Words of numbers, as gopacket has them.
func etherWord(v uint64) string    { return knownWord(layers.EthernetType(v).String()) }
func protocolWord(v uint64) string { return knownWord(layers.IPProtocol(v).String()) }
func packetTypeWord(v uint64) string {
	if v > 6 {
		return ""
	}
	return layers.LinuxSLLPacketType(v).String()
}

// knownWord leaves out gopacket's words for numbers that it does not know.
func knownWord(word string) string {
	if len(word) > 7 && word[:7] == "Unknown" {
		return ""
	}
	return word
}

var ethernetTable = []spec{
	{name: "eth.dst", label: "Destination", bits: 48, kind: Address},
	{name: "eth.src", label: "Source", bit: 48, bits: 48, kind: Address},
}

var ethernetType = spec{name: "eth.type", label: "Type", bit: 96, bits: 16, kind: Hex, word: etherWord}

var vlanTable = []spec{
	{name: "vlan.priority", label: "Priority", bits: 3},
	{name: "vlan.dei", label: "Drop eligible", bit: 3, bits: 1, kind: Flag},
	{name: "vlan.id", label: "VLAN", bit: 4, bits: 12},
	{name: "vlan.etype", label: "Type", bit: 16, bits: 16, kind: Hex, word: etherWord},
}

var serviceTagTable = []spec{
	{name: "ieee8021ad.priority", label: "Priority", bits: 3},
	{name: "ieee8021ad.dei", label: "Drop eligible", bit: 3, bits: 1, kind: Flag},
	{name: "ieee8021ad.id", label: "VLAN", bit: 4, bits: 12},
	{name: "ieee8021ah.etype", label: "Type", bit: 16, bits: 16, kind: Hex, word: etherWord},
}

// tag returns the table of the VLAN tag at index i: the type before it says
// whether it is a service tag.
func (s *Stack) tag(i int) []spec {
	if i > 0 {
		switch l := s.Layers[i-1].Layer.(type) {
		case *layers.Ethernet:
			if l.EthernetType == layers.EthernetTypeQinQ {
				return serviceTagTable
			}
		case *layers.Dot1Q:
			if l.Type == layers.EthernetTypeQinQ {
				return serviceTagTable
			}
		}
	}
	return vlanTable
}

var ipv4Table = []spec{
	{name: "ip.version", label: "Version", bits: 4},
	{name: "ip.hdr_len", label: "Header length", bit: 4, bits: 4, scale: 4},
	{name: "ip.dsfield.dscp", label: "Differentiated services codepoint", bit: 8, bits: 6},
	{name: "ip.dsfield.ecn", label: "Explicit congestion notification", bit: 14, bits: 2},
	{name: "ip.len", label: "Total length", bit: 16, bits: 16},
	{name: "ip.id", label: "Identification", bit: 32, bits: 16, kind: Hex},
	{name: "ip.flags.rb", label: "Reserved", bit: 48, bits: 1, kind: Flag},
	{name: "ip.flags.df", label: "Don't fragment", bit: 49, bits: 1, kind: Flag},
	{name: "ip.flags.mf", label: "More fragments", bit: 50, bits: 1, kind: Flag},
	{name: "ip.frag_offset", label: "Fragment offset, in 8 bytes", bit: 51, bits: 13},
	{name: "ip.ttl", label: "Time to live", bit: 64, bits: 8},
	{name: "ip.proto", label: "Protocol", bit: 72, bits: 8, word: protocolWord},
	{name: "ip.checksum", label: "Header checksum", bit: 80, bits: 16, kind: Hex},
	{name: "ip.src", label: "Source", bit: 96, bits: 32, kind: Address},
	{name: "ip.dst", label: "Destination", bit: 128, bits: 32, kind: Address},
}

var hopByHopTable = []spec{
	{name: "ipv6.hopopts.nxt", label: "Next header", bits: 8, word: protocolWord},
	{name: "ipv6.hopopts.len", label: "Length, in 8 bytes after the first", bit: 8, bits: 8},
}

var destinationTable = []spec{
	{name: "ipv6.dstopts.nxt", label: "Next header", bits: 8, word: protocolWord},
	{name: "ipv6.dstopts.len", label: "Length, in 8 bytes after the first", bit: 8, bits: 8},
}

var routingTable = []spec{
	{name: "ipv6.routing.nxt", label: "Next header", bits: 8, word: protocolWord},
	{name: "ipv6.routing.len", label: "Length, in 8 bytes after the first", bit: 8, bits: 8},
	{name: "ipv6.routing.type", label: "Routing type", bit: 16, bits: 8},
	{name: "ipv6.routing.segleft", label: "Segments left", bit: 24, bits: 8},
}

var segmentTable = []spec{
	{name: "ipv6.routing.srh.last_entry", label: "Last entry", bit: 32, bits: 8},
	{name: "ipv6.routing.srh.flags", label: "Flags", bit: 40, bits: 8, kind: Hex},
	{name: "ipv6.routing.srh.tag", label: "Tag", bit: 48, bits: 16, kind: Hex},
}

var tcpTable = []spec{
	{name: "tcp.srcport", label: "Source port", bits: 16},
	{name: "tcp.dstport", label: "Destination port", bit: 16, bits: 16},
	{name: "tcp.seq_raw", label: "Sequence number", bit: 32, bits: 32},
	{name: "tcp.ack_raw", label: "Acknowledgement number", bit: 64, bits: 32},
	{name: "tcp.hdr_len", label: "Header length", bit: 96, bits: 4, scale: 4},
	{name: "tcp.flags.res", label: "Reserved", bit: 100, bits: 3, kind: Flag},
	{name: "tcp.flags.ae", label: "Accurate ECN", bit: 103, bits: 1, kind: Flag},
	{name: "tcp.flags.cwr", label: "CWR", bit: 104, bits: 1, kind: Flag},
	{name: "tcp.flags.ece", label: "ECE", bit: 105, bits: 1, kind: Flag},
	{name: "tcp.flags.urg", label: "URG", bit: 106, bits: 1, kind: Flag},
	{name: "tcp.flags.ack", label: "ACK", bit: 107, bits: 1, kind: Flag},
	{name: "tcp.flags.push", label: "PSH", bit: 108, bits: 1, kind: Flag},
	{name: "tcp.flags.reset", label: "RST", bit: 109, bits: 1, kind: Flag},
	{name: "tcp.flags.syn", label: "SYN", bit: 110, bits: 1, kind: Flag},
	{name: "tcp.flags.fin", label: "FIN", bit: 111, bits: 1, kind: Flag},
	{name: "tcp.window_size_value", label: "Window", bit: 112, bits: 16},
	{name: "tcp.checksum", label: "Checksum", bit: 128, bits: 16, kind: Hex},
	{name: "tcp.urgent_pointer", label: "Urgent pointer", bit: 144, bits: 16},
}

var arpTable = []spec{
	{name: "arp.hw.type", label: "Hardware type", bits: 16},
	{name: "arp.proto.type", label: "Protocol type", bit: 16, bits: 16, kind: Hex, word: etherWord},
	{name: "arp.hw.size", label: "Hardware address size", bit: 32, bits: 8},
	{name: "arp.proto.size", label: "Protocol address size", bit: 40, bits: 8},
	{
		name: "arp.opcode", label: "Operation", bit: 48, bits: 16,
		word: operationWord,
	},
}

func operationWord(v uint64) string {
	switch v {
	case layers.ARPRequest:
		return "request"
	case layers.ARPReply:
		return "reply"
	}
	return ""
}

var greTable = []spec{
	{name: "gre.flags.checksum", label: "Has a checksum", bits: 1, kind: Flag},
	{name: "gre.flags.routing", label: "Has routing", bit: 1, bits: 1, kind: Flag},
	{name: "gre.flags.key", label: "Has a key", bit: 2, bits: 1, kind: Flag},
	{name: "gre.flags.sequence_number", label: "Has a sequence number", bit: 3, bits: 1, kind: Flag},
	{name: "gre.flags.strict_source_route", label: "Strict source route", bit: 4, bits: 1, kind: Flag},
	{name: "gre.flags.recursion_control", label: "Recursion control", bit: 5, bits: 3},
	{name: "gre.flags.ack", label: "Has an acknowledgement", bit: 8, bits: 1, kind: Flag},
	{name: "gre.flags.version", label: "Version", bit: 13, bits: 3},
	{name: "gre.proto", label: "Protocol", bit: 16, bits: 16, kind: Hex, word: etherWord},
}

var icmpTable = []spec{
	{name: "icmp.type", label: "Type", bits: 8},
	{name: "icmp.code", label: "Code", bit: 8, bits: 8},
	{name: "icmp.checksum", label: "Checksum", bit: 16, bits: 16, kind: Hex},
}

var dnsTable = []spec{
	{name: "dns.id", label: "Transaction", bits: 16, kind: Hex},
	{name: "dns.flags.response", label: "Response", bit: 16, bits: 1, kind: Flag},
	{
		name: "dns.flags.opcode", label: "Operation", bit: 17, bits: 4,
		word: func(v uint64) string { return knownWord(layers.DNSOpCode(v).String()) },
	},
	{name: "dns.flags.authoritative", label: "Authoritative", bit: 21, bits: 1, kind: Flag},
	{name: "dns.flags.truncated", label: "Truncated", bit: 22, bits: 1, kind: Flag},
	{name: "dns.flags.recdesired", label: "Recursion desired", bit: 23, bits: 1, kind: Flag},
	{name: "dns.flags.recavail", label: "Recursion available", bit: 24, bits: 1, kind: Flag},
	{name: "dns.flags.z", label: "Reserved", bit: 25, bits: 1, kind: Flag},
	{name: "dns.flags.authenticated", label: "Authenticated", bit: 26, bits: 1, kind: Flag},
	{name: "dns.flags.checkdisable", label: "Checking disabled", bit: 27, bits: 1, kind: Flag},
	{
		name: "dns.flags.rcode", label: "Reply code", bit: 28, bits: 4,
		word: func(v uint64) string { return knownWord(layers.DNSResponseCode(v).String()) },
	},
	{name: "dns.count.queries", label: "Questions", bit: 32, bits: 16},
	{name: "dns.count.answers", label: "Answers", bit: 48, bits: 16},
	{name: "dns.count.auth_rr", label: "Authorities", bit: 64, bits: 16},
	{name: "dns.count.add_rr", label: "Additional records", bit: 80, bits: 16},
}

var dhcpTable = []spec{
	{
		name: "dhcp.type", label: "Operation", bits: 8,
		word: func(v uint64) string { return knownWord(layers.DHCPOp(v).String()) },
	},
	{name: "dhcp.hw.type", label: "Hardware type", bit: 8, bits: 8, kind: Hex},
	{name: "dhcp.hw.len", label: "Hardware address length", bit: 16, bits: 8},
	{name: "dhcp.hops", label: "Hops", bit: 24, bits: 8},
	{name: "dhcp.id", label: "Transaction", bit: 32, bits: 32, kind: Hex},
	{name: "dhcp.secs", label: "Seconds elapsed", bit: 64, bits: 16},
	{name: "dhcp.flags", label: "Flags", bit: 80, bits: 16, kind: Hex},
	{name: "dhcp.ip.client", label: "Client", bit: 96, bits: 32, kind: Address},
	{name: "dhcp.ip.your", label: "Your (client)", bit: 128, bits: 32, kind: Address},
	{name: "dhcp.ip.server", label: "Next server", bit: 160, bits: 32, kind: Address},
	{name: "dhcp.ip.relay", label: "Relay agent", bit: 192, bits: 32, kind: Address},
	{name: "dhcp.hw.mac_addr", label: "Client hardware address", bit: 224, bits: 48, kind: Address},
	{name: "dhcp.server", label: "Server name", bit: 352, bits: 512, kind: Text},
	{name: "dhcp.file", label: "Boot file", bit: 864, bits: 1024, kind: Text},
	{name: "dhcp.cookie", label: "Magic cookie", bit: 1888, bits: 32, kind: Hex},
}

// tables are the headers that have the same fields in every packet.
var tables = map[gopacket.LayerType][]spec{
	layers.LayerTypeLinuxSLL: {
		{name: "sll.pkttype", label: "Packet type", bits: 16, word: packetTypeWord},
		{name: "sll.hatype", label: "Hardware type", bit: 16, bits: 16},
		{name: "sll.halen", label: "Address length", bit: 32, bits: 16},
		{name: "sll.src.eth", label: "Source", bit: 48, bits: 48, kind: Address},
		{name: "sll.etype", label: "Type", bit: 112, bits: 16, kind: Hex, word: etherWord},
	},
	LayerTypeLinuxSLL2: {
		{name: "sll.etype", label: "Type", bits: 16, kind: Hex, word: etherWord},
		{name: "sll.ifindex", label: "Interface", bit: 32, bits: 32},
		{name: "sll.hatype", label: "Hardware type", bit: 64, bits: 16},
		{name: "sll.pkttype", label: "Packet type", bit: 80, bits: 8, word: packetTypeWord},
		{name: "sll.halen", label: "Address length", bit: 88, bits: 8},
		{name: "sll.src.eth", label: "Source", bit: 96, bits: 48, kind: Address},
	},
	layers.LayerTypePPPoE: {
		{name: "pppoe.version", label: "Version", bits: 4},
		{name: "pppoe.type", label: "Type", bit: 4, bits: 4},
		{name: "pppoe.code", label: "Code", bit: 8, bits: 8, kind: Hex},
		{name: "pppoe.session_id", label: "Session", bit: 16, bits: 16, kind: Hex},
		{name: "pppoe.payload_length", label: "Payload length", bit: 32, bits: 16},
	},
	layers.LayerTypePPP: {{name: "ppp.protocol", label: "Protocol", bits: 16, kind: Hex}},
	layers.LayerTypeLLC: {
		{name: "llc.dsap", label: "Destination service", bits: 8, kind: Hex},
		{name: "llc.ssap", label: "Source service", bit: 8, bits: 8, kind: Hex},
		{name: "llc.control", label: "Control", bit: 16, bits: 8, kind: Hex},
	},
	layers.LayerTypeSNAP: {
		{name: "llc.oui", label: "Organization", bits: 24},
		{name: "llc.type", label: "Type", bit: 24, bits: 16, kind: Hex, word: etherWord},
	},
	layers.LayerTypeIPv6: {
		{name: "ipv6.version", label: "Version", bits: 4},
		{name: "ipv6.tclass", label: "Traffic class", bit: 4, bits: 8, kind: Hex},
		{name: "ipv6.flow", label: "Flow label", bit: 12, bits: 20, kind: Hex},
		{name: "ipv6.plen", label: "Payload length", bit: 32, bits: 16},
		{name: "ipv6.nxt", label: "Next header", bit: 48, bits: 8, word: protocolWord},
		{name: "ipv6.hlim", label: "Hop limit", bit: 56, bits: 8},
		{name: "ipv6.src", label: "Source", bit: 64, bits: 128, kind: Address},
		{name: "ipv6.dst", label: "Destination", bit: 192, bits: 128, kind: Address},
	},
	layers.LayerTypeIPv6Fragment: {
		{name: "ipv6.fraghdr.nxt", label: "Next header", bits: 8, word: protocolWord},
		{name: "ipv6.fraghdr.reserved_octet", label: "Reserved", bit: 8, bits: 8, kind: Hex},
		{name: "ipv6.fraghdr.offset", label: "Fragment offset, in 8 bytes", bit: 16, bits: 13},
		{name: "ipv6.fraghdr.reserved_bits", label: "Reserved", bit: 29, bits: 2},
		{name: "ipv6.fraghdr.more", label: "More fragments", bit: 31, bits: 1, kind: Flag},
		{name: "ipv6.fraghdr.ident", label: "Identification", bit: 32, bits: 32, kind: Hex},
	},
	layers.LayerTypeIPSecAH: {
		{name: "ah.next_header", label: "Next header", bits: 8, word: protocolWord},
		{name: "ah.length", label: "Length, in 4 bytes after the second", bit: 8, bits: 8},
		{name: "ah.reserved", label: "Reserved", bit: 16, bits: 16, kind: Hex},
		{name: "ah.spi", label: "Security parameters index", bit: 32, bits: 32, kind: Hex},
		{name: "ah.sequence", label: "Sequence number", bit: 64, bits: 32},
	},
	layers.LayerTypeUDP: {
		{name: "udp.srcport", label: "Source port", bits: 16},
		{name: "udp.dstport", label: "Destination port", bit: 16, bits: 16},
		{name: "udp.length", label: "Length", bit: 32, bits: 16},
		{name: "udp.checksum", label: "Checksum", bit: 48, bits: 16, kind: Hex},
	},
	layers.LayerTypeVXLAN: {
		{name: "vxlan.flag_g", label: "Group policy", bits: 1, kind: Flag},
		{name: "vxlan.flag_i", label: "Network identifier is valid", bit: 4, bits: 1, kind: Flag},
		{name: "vxlan.flag_d", label: "Don't learn", bit: 9, bits: 1, kind: Flag},
		{name: "vxlan.flag_a", label: "Policy applied", bit: 12, bits: 1, kind: Flag},
		{name: "vxlan.gbp", label: "Group policy identifier", bit: 16, bits: 16},
		{name: "vxlan.vni", label: "Network identifier", bit: 32, bits: 24},
	},
	layers.LayerTypeICMPv6: {
		{name: "icmpv6.type", label: "Type", bits: 8},
		{name: "icmpv6.code", label: "Code", bit: 8, bits: 8},
		{name: "icmpv6.checksum", label: "Checksum", bit: 16, bits: 16, kind: Hex},
	},
	layers.LayerTypeICMPv6Echo: {
		{name: "icmpv6.echo.identifier", label: "Identifier", bits: 16, kind: Hex},
		{name: "icmpv6.echo.sequence_number", label: "Sequence number", bit: 16, bits: 16},
	},
	layers.LayerTypeICMPv6RouterSolicitation: {{name: "icmpv6.reserved", label: "Reserved", bits: 32, kind: Bytes}},
	layers.LayerTypeICMPv6RouterAdvertisement: {
		{name: "icmpv6.nd.ra.cur_hop_limit", label: "Hop limit", bits: 8},
		{name: "icmpv6.nd.ra.flag.m", label: "Managed addresses", bit: 8, bits: 1, kind: Flag},
		{name: "icmpv6.nd.ra.flag.o", label: "Other configuration", bit: 9, bits: 1, kind: Flag},
		{name: "icmpv6.nd.ra.flag.prf", label: "Router preference", bit: 11, bits: 2},
		{name: "icmpv6.nd.ra.router_lifetime", label: "Router lifetime, in s", bit: 16, bits: 16},
		{name: "icmpv6.nd.ra.reachable_time", label: "Reachable time, in ms", bit: 32, bits: 32},
		{name: "icmpv6.nd.ra.retrans_timer", label: "Retransmission timer, in ms", bit: 64, bits: 32},
	},
	layers.LayerTypeICMPv6NeighborSolicitation: {
		{name: "icmpv6.reserved", label: "Reserved", bits: 32, kind: Bytes},
		{name: "icmpv6.nd.ns.target_address", label: "Target", bit: 32, bits: 128, kind: Address},
	},
	layers.LayerTypeICMPv6NeighborAdvertisement: {
		{name: "icmpv6.nd.na.flag.r", label: "From a router", bits: 1, kind: Flag},
		{name: "icmpv6.nd.na.flag.s", label: "Solicited", bit: 1, bits: 1, kind: Flag},
		{name: "icmpv6.nd.na.flag.o", label: "Override", bit: 2, bits: 1, kind: Flag},
		{name: "icmpv6.nd.na.target_address", label: "Target", bit: 32, bits: 128, kind: Address},
	},
	layers.LayerTypeICMPv6Redirect: {
		{name: "icmpv6.reserved", label: "Reserved", bits: 32, kind: Bytes},
		{name: "icmpv6.nd.rd.target_address", label: "Target", bit: 32, bits: 128, kind: Address},
		{name: "icmpv6.rd.na.destination_address", label: "Destination", bit: 160, bits: 128, kind: Address},
	},
	layers.LayerTypeMLDv1MulticastListenerQuery:  mldTable,
	layers.LayerTypeMLDv1MulticastListenerReport: mldTable,
	layers.LayerTypeMLDv1MulticastListenerDone:   mldTable,
	gopacket.LayerTypePayload:                    {},
	gopacket.LayerTypeFragment:                   {},
	LayerTypeDatagram:                            {},
}

var mldTable = []spec{
	{name: "icmpv6.mld.maximum_response_delay", label: "Maximum response delay, in ms", bits: 16},
	{name: "icmpv6.reserved", label: "Reserved", bit: 16, bits: 16, kind: Bytes},
	{name: "icmpv6.mld.multicast_address", label: "Multicast address", bit: 32, bits: 128, kind: Address},
}

// optionsFrom says at which byte the options of neighbour discovery begin.
var optionsFrom = map[gopacket.LayerType]int{
	layers.LayerTypeICMPv6RouterSolicitation:    4,
	layers.LayerTypeICMPv6RouterAdvertisement:   12,
	layers.LayerTypeICMPv6NeighborSolicitation:  20,
	layers.LayerTypeICMPv6NeighborAdvertisement: 20,
	layers.LayerTypeICMPv6Redirect:              36,
}
