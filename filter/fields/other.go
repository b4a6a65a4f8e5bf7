package fields

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
)

// Offsets of the field that says which header follows.
var (
	etherType = map[capture.LayerKind]int{
		capture.LayerEthernet: 12, capture.LayerVLAN: 2, capture.LayerSLL: 14,
		capture.LayerSLL2: 0, capture.LayerSNAP: 6,
	}
	nextHeader = map[capture.LayerKind]int{capture.LayerIPv6: 6, capture.LayerIPv6Extension: 0}
)

// otherFields returns the fields that name frames without UDP and TCP, so that
// filters can exclude them.
func otherFields() []*filter.Field {
	kind := func(name, doc string, holds func(data []byte, last *capture.Layer) bool) *filter.Field {
		return &filter.Field{Name: name, Doc: doc, Present: func(r *filter.Record) bool {
			l := layers(r)
			return len(l) > 0 && r.Transport == capture.NoTransport && holds(r.Frame.Data, &l[len(l)-1])
		}}
	}
	return append(quoteFields(), []*filter.Field{
		kind("arp", "An ARP packet.", func(data []byte, l *capture.Layer) bool {
			const arp = 0x0806
			at, ok := etherType[l.Kind]
			at += l.Offset
			return ok && at+2 <= len(data) && binary.BigEndian.Uint16(data[at:]) == arp
		}),
		kind("icmp", "An ICMP packet.", func(data []byte, l *capture.Layer) bool {
			const icmp = 1
			return l.Kind == capture.LayerIPv4 && l.Offset+20 <= len(data) && data[l.Offset+9] == icmp &&
				binary.BigEndian.Uint16(data[l.Offset+6:])&0x1fff == 0
		}),
		kind("icmpv6", "An ICMPv6 packet.", func(data []byte, l *capture.Layer) bool {
			const icmp = 58
			at, ok := nextHeader[l.Kind]
			at += l.Offset
			return ok && at < len(data) && data[at] == icmp
		}),
	}...)
}

// quoteFields returns the fields of what ICMP and ICMPv6 errors concern, and of datagrams that
// were captured as one.
func quoteFields() []*filter.Field {
	counted := func(name, doc string, get func(*filter.Record) int) *filter.Field {
		f := number(name, "", doc, func(r *filter.Record) (uint64, bool) { return uint64(get(r)), r.Batched > 0 })
		f.Needs = filter.NeedFlow
		return f
	}
	quoted := func(name, doc string, get func(*filter.Quoted) uint64) *filter.Field {
		f := number(name, "", doc, func(r *filter.Record) (uint64, bool) {
			n := get(&r.Quoted)
			return n, n > 0
		})
		f.Needs = filter.NeedFlow
		return f
	}
	return []*filter.Field{
		{
			Name: "icmp.reason", Kind: filter.Text,
			Doc:   "What an ICMP error says: why it could not deliver the packet that it quotes.",
			Words: capture.Reasons(),
			Values: filter.TextValues(filter.One(func(r *filter.Record) (string, bool) {
				if r.Packet == nil || r.Packet.Quote == nil {
					return "", false
				}
				return r.Packet.Quote.Reason.String(), true
			})),
		},
		quoted("icmp.flow", "Number of the flow that an ICMP error is about.",
			func(q *filter.Quoted) uint64 { return uint64(q.Flow) }),
		quoted("icmp.about", "The frame of the datagram that an ICMP error quotes.",
			func(q *filter.Quoted) uint64 { return q.Ref.Frame() }),
		counted("batch.count", "Of datagrams that were captured as one frame (see the rule offload): how many they are.",
			func(r *filter.Record) int { return r.Batched }),
		counted("batch.index", "Which of these datagrams this is, from 0.", func(r *filter.Record) int { return r.Nth }),
	}
}
