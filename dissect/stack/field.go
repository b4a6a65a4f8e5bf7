package stack

import (
	"net/netip"

	"github.com/google/gopacket/layers"
)

// FieldKind is the type of a field's value.
type FieldKind uint8

const (
	Number  FieldKind = iota // Field.Uint
	Hex                      // Field.Uint, shown in hexadecimal
	Flag                     // Field.Uint, 0 or 1
	Address                  // Field.Bytes: a hardware address, or an IP address
	Bytes                    // Field.Bytes
	Text                     // Field.Text
	Group                    // no value: a heading for the fields below it
)

// Field is one field of a layer.
type Field struct {
	Name  string // as Wireshark names it: "ip.ttl"
	Label string // "Time to live"
	Depth int    // 0 for the layer's own fields
	// Bit is the first bit within the decoded bytes. Bits count as RFCs number
	// them: the high bit of a byte first. Bits is the width; it is 0 where
	// gopacket does not say where the value was.
	Bit, Bits int
	Kind      FieldKind
	Uint      uint64
	Raw       uint64 // Uint as the wire has it, where Uint is that in bytes
	Bytes     []byte
	Text      string
	Word      string // what Uint means: "UDP" for protocol 17; empty for most
}

// IP returns the value of an Address field that is an IP address.
func (f *Field) IP() (netip.Addr, bool) {
	if len(f.Bytes) != 4 && len(f.Bytes) != 16 {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(f.Bytes)
}

// spec says where a field is in its layer.
type spec struct {
	name, label string
	bit, bits   int
	kind        FieldKind
	word        func(v uint64) string
	scale       uint64 // the value counts units of so many bytes; 0 for 1
}

// maxFields bounds the fields of one layer: a hostile layer holds options
// without end.
const maxFields = 256

// fields collects the fields of one layer.
type fields struct {
	layer *Layer
	b     []byte // the layer's header
	out   []Field
	depth int
}

// table adds the fields of a fixed header. A field beyond the captured bytes
// has no value, so that it is left out.
func (s *fields) table(list []spec) {
	for i := range list {
		s.add(&list[i])
	}
}

// add adds one field.
func (s *fields) add(x *spec) {
	bit := x.bit
	if bit < 0 || x.bits <= 0 || bit+x.bits > 8*len(s.b) || len(s.out) >= maxFields {
		return
	}
	f := Field{Name: x.name, Label: x.label, Depth: s.depth, Bit: 8*s.layer.Offset + bit, Bits: x.bits, Kind: x.kind}
	switch x.kind {
	case Address, Bytes:
		f.Bytes = s.b[bit/8 : (bit+x.bits)/8]
	case Text:
		f.Text = untilZero(s.b[bit/8 : (bit+x.bits)/8])
	default:
		f.Raw = bitsAt(s.b, bit, x.bits)
		f.Uint = f.Raw
		if x.scale > 0 {
			f.Uint *= x.scale
		}
		if x.word != nil {
			f.Word = x.word(f.Uint)
		}
	}
	s.out = append(s.out, f)
}

// number adds a number that is not in a table.
func (s *fields) number(name, label string, kind FieldKind, bit, bits int) {
	s.add(&spec{name: name, label: label, kind: kind, bit: bit, bits: bits})
}

// text adds a value of which gopacket does not say where it was.
func (s *fields) text(name, label, value string) {
	if len(s.out) < maxFields {
		s.out = append(s.out, Field{Name: name, Label: label, Depth: s.depth, Kind: Text, Text: value})
	}
}

// coded adds a number of which gopacket does not say where it was.
func (s *fields) coded(name, label string, kind FieldKind, v uint64, word string) {
	if len(s.out) < maxFields {
		s.out = append(s.out, Field{Name: name, Label: label, Depth: s.depth, Kind: kind, Uint: v, Word: knownWord(word)})
	}
}

func (s *fields) group(name, label string) {
	if len(s.out) < maxFields {
		s.out = append(s.out, Field{Name: name, Label: label, Depth: s.depth, Kind: Group})
	}
}

// bitsAt returns up to 64 bits of b, the high bit of a byte first.
func bitsAt(b []byte, bit, bits int) (v uint64) {
	for bits > 0 {
		n := min(8-bit%8, bits)
		part := b[bit/8] >> (8 - bit%8 - n) & (1<<n - 1)
		v = v<<n | uint64(part)
		bit, bits = bit+n, bits-n
	}
	return v
}

func untilZero(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Fields returns the fields of the layer at index i of s, outermost first.
func (s *Stack) Fields(i int) []Field { return s.FieldsInto(nil, i) }

// FieldsInto is Fields in the space of a slice, whose values it overwrites.
func (s *Stack) FieldsInto(space []Field, i int) []Field {
	l := &s.Layers[i]
	x := fields{layer: l, b: l.header, out: space[:0]}
	switch t := l.Layer.(type) {
	case *layers.Ethernet:
		x.table(ethernetTable)
		if t.EthernetType == layers.EthernetTypeLLC {
			x.add(&ethernetLength)
		} else {
			x.add(&ethernetType)
		}
	case *layers.Dot1Q:
		x.table(s.tag(i))
	case *layers.Loopback:
		x.out = append(x.out, Field{
			Name: "null.family", Label: "Address family", Bit: 8 * l.Offset, Bits: 32,
			Uint: uint64(t.Family),
		})
	case *layers.IPv4:
		x.table(ipv4Table)
		x.ipv4Options()
	case *layers.IPv6HopByHop:
		x.table(hopByHopTable)
		x.ipv6Options()
	case *layers.IPv6Destination:
		x.table(destinationTable)
		x.ipv6Options()
	case *IPv6SegmentRouting:
		x.table(routingTable)
		if t.RoutingType == segmentRouting {
			x.table(segmentTable)
			for n := range t.Segments {
				x.number(segment.name, segment.label, Address, 64+128*n, 128)
			}
		}
	case *layers.TCP:
		x.table(tcpTable)
		x.tcpOptions()
	case *layers.ARP:
		x.table(arpTable)
		x.arpAddresses(t)
	case *layers.GRE:
		x.table(greTable)
		x.greOptional(t)
	case *layers.ICMPv4:
		x.table(icmpTable)
		x.icmpRest(t)
	case *Quote:
		if i > 0 {
			x.icmpv6Rest(s.Layers[i-1].Layer)
		}
	case *layers.DNS:
		x.table(dnsTable)
		x.dnsRecords(t)
	case *layers.DHCPv4:
		x.table(dhcpTable)
		x.dhcpOptions()
	default:
		if table := tables[l.LayerType()]; table != nil {
			x.table(table)
			if at := optionsFrom[l.LayerType()]; at > 0 {
				x.neighborOptions(at)
			}
		} else {
			x.reflected(l.Layer)
		}
	}
	return x.out
}
