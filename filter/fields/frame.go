package fields

import (
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
)

// frameFields returns the fields of frames and their headers, with Wireshark's
// names and meanings.
func frameFields() []*filter.Field {
	duration := func(name, doc string, get func(*filter.Record) (int64, bool)) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Duration, Unit: "s", Doc: doc,
			Values: filter.Values{Int: filter.One(get)},
		}
	}
	fields := []*filter.Field{
		{
			Name: "frame", Kind: filter.Bytes, Doc: "The whole frame as captured.",
			Values: filter.Values{Bytes: filter.One(func(r *filter.Record) ([]byte, bool) {
				if r.Frame == nil {
					return nil, false
				}
				return r.Frame.Data, true
			})},
		},
		number("frame.number", "", "Number of the frame in its file, from 1.",
			func(r *filter.Record) (uint64, bool) { return r.Datagram.Ref.Frame(), true }),
		number("frame.len", "bytes", "Length on the wire.", func(r *filter.Record) (uint64, bool) {
			if r.Frame == nil {
				return 0, false
			}
			return uint64(r.Frame.Length), true
		}),
		number("frame.cap_len", "bytes", "Length captured; less than frame.len where a snap length cut the frame.",
			func(r *filter.Record) (uint64, bool) {
				if r.Frame == nil {
					return 0, false
				}
				return uint64(len(r.Frame.Data)), true
			}),
		number("frame.interface_id", "", "Index of the interface within its pcapng file, from 0.",
			func(r *filter.Record) (uint64, bool) {
				if r.Frame == nil || r.Frame.Classic {
					return 0, false
				}
				return uint64(r.Frame.Interface), true
			}),
		{
			Name: "frame.file", Kind: filter.Text, Doc: "Name of the capture file.",
			Values: filter.TextValues(filter.One(func(r *filter.Record) (string, bool) { return r.File, r.File != "" })),
		},
		{
			Name: "frame.time", Kind: filter.Time, Doc: "When the frame was captured: text in local time, as tshark's.",
			Values: filter.Values{Int: filter.One(func(r *filter.Record) (int64, bool) { return int64(r.Datagram.At), true })},
		},
		{
			Name: "frame.time_epoch", Kind: filter.Time, Unit: "s", Doc: "When the frame was captured, in seconds since 1970.",
			Seconds: true,
			Values:  filter.Values{Int: filter.One(func(r *filter.Record) (int64, bool) { return int64(r.Datagram.At), true })},
		},
		duration("frame.time_relative", "Time since the capture's first frame.",
			func(r *filter.Record) (int64, bool) { return int64(r.Datagram.At.Sub(r.Start)), true }),
		duration("frame.time_delta", "Time since the frame before.",
			func(r *filter.Record) (int64, bool) { return int64(r.Datagram.At.Sub(r.Previous)), r.Frame != nil }),
		{
			Name: "malformed", Doc: "The packet, or a header before it, could not be taken apart to its end.",
			Needs: filter.NeedFlow | filter.NeedFields,
			Present: func(r *filter.Record) bool {
				return r.Packet != nil && r.Packet.Problem != nil || r.Dissection().Problem != nil
			},
		},

		layer("eth", "Ethernet header.", capture.LayerEthernet),
		mac("eth.src", "Ethernet source address.", 6, -1),
		mac("eth.dst", "Ethernet destination address.", 0, -1),
		mac("eth.addr", "Either Ethernet address.", 0, 6),
		etherTypeField(),
		layer("vlan", "802.1Q tag.", capture.LayerVLAN),
		tag("vlan.id", "VLAN of an 802.1Q tag.", false, func(v uint64) uint64 { return v & 0xfff }),
		tag("vlan.priority", "Priority of an 802.1Q tag.", false, func(v uint64) uint64 { return v >> 13 }),
		tag("ieee8021ad.id", "Outer VLAN, of an 802.1ad service tag.", true, func(v uint64) uint64 { return v & 0xfff }),
		tag("ieee8021ad.priority", "Priority of an 802.1ad service tag.", true, func(v uint64) uint64 { return v >> 13 }),

		layer("ip", "IPv4 header.", capture.LayerIPv4),
		address("ip.src", "IPv4 source address.", capture.LayerIPv4, 12, true, false),
		address("ip.dst", "IPv4 destination address.", capture.LayerIPv4, 12, false, true),
		address("ip.addr", "Either IPv4 address.", capture.LayerIPv4, 12, true, true),
		{
			Name: "ip.version", Kind: filter.Uint, Doc: "IP version: 4 or 6.",
			Values: filter.Values{Uint: filter.Each(layers, func(r *filter.Record, l *capture.Layer) (uint64, bool) {
				b, ok := header(r, l, capture.LayerIPv4, 0, 1)
				if !ok {
					b, ok = header(r, l, capture.LayerIPv6, 0, 1)
				}
				if !ok {
					return 0, false
				}
				return uint64(b[0] >> 4), true
			})},
		},
		headerUint("ip.hdr_len", "bytes", "Length of the IPv4 header.", capture.LayerIPv4, 0,
			1, func(v uint64) uint64 { return v & 15 * 4 }),
		hexed(8, headerUint("ip.dsfield", "", "Differentiated services field.", capture.LayerIPv4, 1,
			1, func(v uint64) uint64 { return v })),
		headerUint("ip.dsfield.dscp", "", "Differentiated services codepoint; 46 is expedited forwarding.", capture.LayerIPv4,
			1, 1, func(v uint64) uint64 { return v >> 2 }),
		headerUint("ip.dsfield.ecn", "", "Explicit congestion notification; 3 says that congestion was met.",
			capture.LayerIPv4, 1, 1, func(v uint64) uint64 { return v & 3 }),
		headerUint("ip.len", "bytes", "Total length of the IPv4 packet.", capture.LayerIPv4, 2,
			2, func(v uint64) uint64 { return v }),
		hexed(16, headerUint("ip.id", "", "IPv4 identification.", capture.LayerIPv4, 4,
			2, func(v uint64) uint64 { return v })),
		hexed(8, headerUint("ip.flags", "", "Flags of the IPv4 header: 2 is don't fragment, 1 more fragments.",
			capture.LayerIPv4, 6, 1, func(v uint64) uint64 { return v >> 5 })),
		truth(headerUint("ip.flags.df", "", "Don't fragment.", capture.LayerIPv4, 6,
			2, func(v uint64) uint64 { return v >> 14 & 1 })),
		truth(headerUint("ip.flags.mf", "", "More fragments follow.", capture.LayerIPv4, 6,
			2, func(v uint64) uint64 { return v >> 13 & 1 })),
		headerUint("ip.frag_offset", "", "Offset of the fragment, in units of 8 bytes.", capture.LayerIPv4, 6,
			2, func(v uint64) uint64 { return v & 0x1fff }),
		headerUint("ip.ttl", "", "Time to live.", capture.LayerIPv4, 8, 1, func(v uint64) uint64 { return v }),
		named(transports,
			headerUint("ip.proto", "", "Protocol above IPv4; 17 is UDP.", capture.LayerIPv4, 9,
				1, func(v uint64) uint64 { return v })),

		hexed(16, headerUint("ip.checksum", "", "Checksum of the IPv4 header.", capture.LayerIPv4, 10,
			2, func(v uint64) uint64 { return v })),

		layer("ipv6", "IPv6 header.", capture.LayerIPv6),
		address("ipv6.src", "IPv6 source address.", capture.LayerIPv6, 8, true, false),
		address("ipv6.dst", "IPv6 destination address.", capture.LayerIPv6, 8, false, true),
		address("ipv6.addr", "Either IPv6 address.", capture.LayerIPv6, 8, true, true),
		hexed(32, headerUint("ipv6.tclass", "", "Traffic class.", capture.LayerIPv6, 0,
			2, func(v uint64) uint64 { return v >> 4 & 0xff })),
		headerUint("ipv6.plen", "bytes", "Length of the IPv6 payload.", capture.LayerIPv6, 4,
			2, func(v uint64) uint64 { return v }),
		named(transports, headerUint("ipv6.nxt", "", "Header after the IPv6 header; 17 is UDP.", capture.LayerIPv6, 6,
			1, func(v uint64) uint64 { return v })),
		headerUint("ipv6.hlim", "", "Hop limit.", capture.LayerIPv6, 7, 1, func(v uint64) uint64 { return v }),
	}
	for _, t := range []struct {
		name, title string
		kind        capture.Transport
		layer       capture.LayerKind
	}{{"udp", "UDP", capture.UDP, capture.LayerUDP}, {"tcp", "TCP", capture.TCP, capture.LayerTCP}} {
		fields = append(fields,
			&filter.Field{
				Name: t.name, Kind: filter.Bytes, Doc: "The packet carries " + t.title +
					"; its header and payload, where one frame holds both.",
				Present: func(r *filter.Record) bool { return r.Transport == t.kind },
				Values:  filter.Values{Bytes: filter.One(func(r *filter.Record) ([]byte, bool) { return whole(r, t.layer) })},
			},
			number(t.name+".srcport", "",
				t.title+" source port.", func(r *filter.Record) (uint64, bool) {
					return uint64(r.Src.Port()),
						r.Transport == t.kind
				}),
			number(t.name+".dstport", "",
				t.title+" destination port.", func(r *filter.Record) (uint64, bool) {
					return uint64(r.Dst.Port()),
						r.Transport == t.kind
				}),
			&filter.Field{
				Name: t.name + ".port", Kind: filter.Uint, Doc: "Either " + t.title + " port.",
				Values: filter.Values{Uint: filter.Two(func(r *filter.Record) (uint64, uint64, bool) {
					return uint64(r.Src.Port()), uint64(r.Dst.Port()), r.Transport == t.kind
				})},
			},
			&filter.Field{
				Name: t.name + ".payload", Kind: filter.Bytes, Doc: "Payload of the " + t.title + " packet.",
				Values: filter.Values{Bytes: filter.One(func(r *filter.Record) ([]byte, bool) {
					b, _ := carriedBytes(r)
					return b, r.Transport == t.kind && len(b) > 0
				})},
			},
		)
	}
	return append(fields,
		number("udp.length", "bytes", "Length of the UDP packet with its 8 bytes of header.",
			func(r *filter.Record) (uint64, bool) {
				return uint64(r.Datagram.Length) + 8, r.Transport == capture.UDP
			}),
		stream("udp", "UDP", capture.UDP),
		stream("tcp", "TCP", capture.TCP),
		payload("data", "What a UDP packet or TCP segment carries, as Wireshark shows it where nothing takes it apart."),
		payload("data.data", "The same: its bytes."),
		number("data.len", "bytes", "Length of what a UDP packet or TCP segment carries.",
			func(r *filter.Record) (uint64, bool) {
				b, _ := carriedBytes(r)
				return uint64(len(b)), (r.Transport == capture.UDP || r.Transport == capture.TCP) && len(b) > 0
			}),
		hexed(16, headerUint("tcp.flags", "", "Flags of the TCP header.", capture.LayerTCP, 12,
			2, func(v uint64) uint64 { return v & 0xfff })),
		flag("tcp.flags.syn", "The segment opens a connection.", 1),
		flag("tcp.flags.fin", "Its sender has nothing more to send.", 0),
		flag("tcp.flags.reset", "The connection is torn down.", 2),
		flag("tcp.flags.push", "The receiver is to hand the data on at once.", 3),
		flag("tcp.flags.ack", "The acknowledgement number counts.", 4),
		headerUint("tcp.window_size_value", "", "Receive window as it stands in the header, not scaled.", capture.LayerTCP,
			14, 2, func(v uint64) uint64 { return v }),
		headerUint("tcp.hdr_len", "bytes", "Length of the TCP header.", capture.LayerTCP, 12,
			1, func(v uint64) uint64 { return v >> 4 * 4 }),
		number("tcp.len", "bytes", "Length of the TCP payload.", func(r *filter.Record) (uint64, bool) {
			_, n := carriedBytes(r)
			return uint64(max(n, 0)), r.Transport == capture.TCP && n >= 0
		}),
		number("tcp.seq_raw", "", "TCP sequence number.", func(r *filter.Record) (uint64, bool) {
			if r.Packet == nil {
				return 0, false
			}
			return uint64(r.Packet.TCPSeq), r.Transport == capture.TCP
		}),
		number("tcp.ack_raw", "", "TCP acknowledgement number.", func(r *filter.Record) (uint64, bool) {
			if r.Packet == nil {
				return 0, false
			}
			return uint64(r.Packet.TCPAck), r.Transport == capture.TCP
		}),
	)
}

// carriedBytes returns the payload of a packet and its length on the wire. For
// TCP that is the payload of the segment, not of the message that it completes.
// The length is -1 if the segment is no longer available.
func carriedBytes(r *filter.Record) ([]byte, int) {
	switch {
	case r.Packet != nil:
		return r.Packet.Payload, r.Packet.Length
	case r.Transport == capture.TCP:
		return nil, -1
	}
	return r.Datagram.Bytes, r.Datagram.Length
}

func number(name, unit, doc string, get func(*filter.Record) (uint64, bool)) *filter.Field {
	return &filter.Field{Name: name, Kind: filter.Uint, Unit: unit, Doc: doc, Values: filter.Values{Uint: filter.One(get)}}
}

// stream returns the field for the number of a flow's conversation.
func stream(name, title string, t capture.Transport) *filter.Field {
	f := number(name+".stream", "", "Number of the "+title+" conversation, from 0, as Wireshark counts.",
		func(r *filter.Record) (uint64, bool) {
			return uint64(r.Stream), r.Flow != 0 && r.Transport == t
		})
	f.Needs = filter.NeedFlow
	return f
}

// payload returns the field for the payload of a transport.
func payload(name, doc string) *filter.Field {
	return &filter.Field{
		Name: name, Kind: filter.Bytes, Doc: doc,
		Values: filter.Values{Bytes: filter.One(func(r *filter.Record) ([]byte, bool) {
			b, _ := carriedBytes(r)
			return b, (r.Transport == capture.UDP || r.Transport == capture.TCP) && len(b) > 0
		})},
	}
}

// flag returns the field for a bit of the TCP flags.
func flag(name, doc string, bit int) *filter.Field {
	return truth(headerUint(name, "", doc, capture.LayerTCP, 13, 1, func(v uint64) uint64 { return v >> bit & 1 }))
}

func hexed(bits int, f *filter.Field) *filter.Field { f.Hex, f.Bits = true, bits; return f }

// transports are the names of protocol numbers above IP.
var transports = map[uint64]string{1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "IPv6-ICMP"}

func named(enum map[uint64]string, f *filter.Field) *filter.Field { f.Enum = enum; return f }

func truth(f *filter.Field) *filter.Field { f.Kind = filter.Bool; return f }
