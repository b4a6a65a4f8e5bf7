package stack

import (
	"slices"
	"testing"
)

// TestNames: every field of the samples that a table has is among Names, and
// Names are what the samples have, but for a few.
func TestNames(t *testing.T) {
	names := map[string]Name{}
	for _, n := range Names() {
		if n.Label == "" || n.Header == "" || names[n.Name].Name != "" {
			t.Errorf("%+v: expected a label, a header, and the name once", n)
		}
		names[n.Name] = n
	}
	seen := map[string]bool{}
	var look func(s *Stack)
	look = func(s *Stack) {
		for i := range s.Layers {
			for _, f := range append(s.Fields(i), s.Parts(nil, i)...) {
				n, ok := names[f.Name]
				switch {
				case f.Kind == Group:
				case !ok:
					t.Errorf("%s: %s is not among the names", s.Layers[i].LayerType(), f.Name)
				case n.Kind != f.Kind && f.Name != "dhcp.option.value": // which has several
					t.Errorf("%s: of kind %d, its name says %d", f.Name, f.Kind, n.Kind)
				case n.ByPort != s.Layers[i].ByPort && n.ByPort:
					t.Errorf("%s: expected a layer by its port", f.Name)
				}
				seen[f.Name] = true
			}
			if q := s.Layers[i].Quoted; q != nil {
				look(q)
			}
		}
	}
	for _, s := range samples(t) {
		look(stackOf(s))
	}
	for name := range names {
		if !seen[name] && !slices.Contains(otherFrames, name) {
			t.Errorf("%s: no sample has it", name)
		}
	}
}

// otherFrames are names of fields that no sample has: of other link types and of
// rare headers. A test of package cli compares them with tshark's.
var otherFrames = []string{
	"sll.pkttype", "sll.hatype", "sll.halen", "sll.src.eth", "sll.etype", "sll.ifindex", "null.family",
	"ip.opt.type", "ip.opt.len", "ip.opt.data", "ah.next_header", "ah.length", "ah.reserved", "ah.spi", "ah.sequence",
	"arp.src.hw", "arp.src.proto", "arp.dst.hw", "arp.dst.proto", "icmp.num_addrs", "icmp.addr_entry_size",
	"icmp.lifetime", "icmpv6.opt.data", "gre.checksum", "gre.offset", "gre.ack_number",
}

// TestSpaceIsReused: a caller that hands its slice back gets the same fields.
func TestSpaceIsReused(t *testing.T) {
	space := make([]Field, 0, maxFields)
	for _, s := range samples(t) {
		k := stackOf(s)
		for i := range k.Layers {
			want := k.Fields(i)
			if got := k.FieldsInto(space, i); !slices.EqualFunc(got, want, sameField) {
				t.Errorf("%s: layer %d: %v, expected %v", s.name, i, got, want)
			}
		}
	}
}

func sameField(a, b Field) bool {
	return a.Name == b.Name && a.Bit == b.Bit && a.Bits == b.Bits && a.Uint == b.Uint && a.Text == b.Text &&
		slices.Equal(a.Bytes, b.Bytes)
}
