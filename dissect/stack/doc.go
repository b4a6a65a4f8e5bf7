// Package stack takes a captured frame apart as a gopacket.Packet: a stack of
// layers, outermost first.
//
//	Ethernet, IPv4, UDP, Datagram          a packet of a game
//	Ethernet, IPv4, ICMPv4 → IPv4, UDP     an error, with the packet that it quotes
//
// gopacket decodes the layers that it knows. This package has the layers that
// gopacket 1.1.19 lacks: Linux cooked v2, tag 0x9100, IPv6 segment routing and
// atomic fragments. The payload of a recognised flow is a Datagram: a layer
// that holds the fields of ackscope's own dissector.
//
// Decode trees, exports and tests use it. The commands that only count and
// track use capture.Decoder, which is faster and allocates nothing. A test
// holds the two decoders against each other.
package stack
