package fields

import (
	"encoding/binary"
	"net/netip"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
)

func layers(r *filter.Record) []capture.Layer {
	if r.Packet == nil || r.Frame == nil {
		return nil
	}
	return r.Packet.Layers
}

// header returns n bytes at an offset of a header of the given kind.
func header(r *filter.Record, l *capture.Layer, kind capture.LayerKind, offset, n int) ([]byte, bool) {
	at := l.Offset + offset
	if l.Kind != kind || at < 0 || at+n > len(r.Frame.Data) {
		return nil, false
	}
	return r.Frame.Data[at : at+n], true
}

// whole returns a transport header with its payload.
func whole(r *filter.Record, kind capture.LayerKind) ([]byte, bool) {
	if l := layers(r); len(l) > 0 && r.Packet.Fragments <= 1 {
		last := &l[len(l)-1]
		return header(r, last, kind, 0, last.Length+len(r.Datagram.Bytes))
	}
	return nil, false
}

// headerUint returns the field for a number of one or two bytes in every header
// of a kind.
func headerUint(name, unit, doc string, kind capture.LayerKind, offset, n int, of func(uint64) uint64) *filter.Field {
	return &filter.Field{
		Name: name, Kind: filter.Uint, Unit: unit, Doc: doc,
		Values: filter.Values{Uint: filter.Each(layers, func(r *filter.Record, l *capture.Layer) (uint64, bool) {
			b, ok := header(r, l, kind, offset, n)
			switch {
			case !ok:
				return 0, false
			case n == 1:
				return of(uint64(b[0])), true
			default:
				return of(uint64(binary.BigEndian.Uint16(b))), true
			}
		})},
	}
}

// tag returns the field for a number of VLAN tags: of 802.1ad's service tags,
// or of all others.
func tag(name, doc string, service bool, of func(uint64) uint64) *filter.Field {
	const etherService = 0x88a8
	return &filter.Field{
		Name: name, Kind: filter.Uint, Doc: doc,
		Values: filter.Values{Uint: filter.Each(layers, func(r *filter.Record, l *capture.Layer) (uint64, bool) {
			// The type of a tag precedes it, as the EtherType of the header before.
			b, ok := header(r, l, capture.LayerVLAN, -2, 4)
			if !ok || (binary.BigEndian.Uint16(b) == etherService) != service {
				return 0, false
			}
			return of(uint64(binary.BigEndian.Uint16(b[2:]))), true
		})},
	}
}

// etherTypeField returns the field for the type after the Ethernet addresses. A
// value below 0x0600 is the length of an 802.3 frame, which has no type.
func etherTypeField() *filter.Field {
	const least = 0x0600
	return &filter.Field{
		Name: "eth.type", Kind: filter.Uint, Doc: "EtherType.", Hex: true, Bits: 16,
		Values: filter.Values{Uint: filter.Each(layers, func(r *filter.Record, l *capture.Layer) (uint64, bool) {
			b, ok := header(r, l, capture.LayerEthernet, 12, 2)
			if !ok {
				return 0, false
			}
			v := uint64(binary.BigEndian.Uint16(b))
			return v, v >= least
		})},
	}
}

// layer returns the field for a whole header.
func layer(name, doc string, kind capture.LayerKind) *filter.Field {
	return &filter.Field{
		Name: name, Kind: filter.Bytes, Doc: doc,
		Values: filter.Values{Bytes: filter.Each(layers, func(r *filter.Record, l *capture.Layer) ([]byte, bool) {
			return header(r, l, kind, 0, l.Length)
		})},
	}
}

// mac returns the field for one Ethernet address, or for two.
func mac(name, doc string, offset, second int) *filter.Field {
	f := &filter.Field{Name: name, Kind: filter.Bytes, Doc: doc, Colons: true}
	at := func(r *filter.Record, offset int) ([]byte, bool) {
		if l := layers(r); len(l) > 0 {
			return header(r, &l[0], capture.LayerEthernet, offset, 6)
		}
		return nil, false
	}
	if second < 0 {
		f.Bytes = filter.One(func(r *filter.Record) ([]byte, bool) { return at(r, offset) })
		return f
	}
	f.Bytes = filter.Two(func(r *filter.Record) ([]byte, []byte, bool) {
		v, _ := at(r, offset)
		w, ok := at(r, second)
		return v, w, ok
	})
	return f
}

// address returns the field for the source, the destination or both of every IP
// header of a kind. If the frame is no longer available, it uses the addresses
// of the flow.
func address(name, doc string, kind capture.LayerKind, offset int, src, dst bool) *filter.Field {
	size := 4
	if kind == capture.LayerIPv6 {
		size = 16
	}
	f := &filter.Field{
		Name: name, Kind: filter.Address, Doc: doc,
		Values: filter.Values{Address: func(pass filter.Test[netip.Addr], all bool) filter.Predicate {
			return func(r *filter.Record) bool {
				found := false
				if r.Frame == nil {
					for i, ap := range [...]netip.AddrPort{r.Src, r.Dst} {
						if a := ap.Addr(); (i == 0 && src || i == 1 && dst) && a.BitLen() == 8*size {
							found = true
							if pass(r, a) != all {
								return !all
							}
						}
					}
					return found && all
				}
				if r.Packet == nil {
					return false
				}
				for i := range r.Packet.Layers {
					b, ok := header(r, &r.Packet.Layers[i], kind, offset, 2*size)
					if !ok {
						continue
					}
					found = true
					if src && pass(r, addrFrom(b[:size])) != all || dst && pass(r, addrFrom(b[size:])) != all {
						return !all
					}
				}
				return found && all
			}
		}},
	}
	if kind == capture.LayerIPv4 {
		f.In4 = func(n filter.Network4, all bool) filter.Predicate { return inNetwork(f.Address, n, src, dst, all) }
	}
	return f
}

// inNetwork tests the address bytes of a frame's headers in place. If the frame
// is no longer available, it uses slow.
func inNetwork(slow filter.Source[netip.Addr], n filter.Network4, src, dst, all bool) filter.Predicate {
	gone := slow(func(_ *filter.Record, a netip.Addr) bool {
		b := a.As4()
		return n.Passes(binary.BigEndian.Uint32(b[:]))
	}, all)
	return func(r *filter.Record) bool {
		if r.Frame == nil || r.Packet == nil {
			return gone(r)
		}
		found := false
		data := r.Frame.Data
		for i := range r.Packet.Layers {
			l := &r.Packet.Layers[i]
			if l.Kind != capture.LayerIPv4 || l.Offset < 0 || l.Offset+20 > len(data) {
				continue
			}
			found = true
			addrs := data[l.Offset+12 : l.Offset+20]
			if src && n.Passes(binary.BigEndian.Uint32(addrs)) != all ||
				dst && n.Passes(binary.BigEndian.Uint32(addrs[4:])) != all {
				return !all
			}
		}
		return found && all
	}
}

// addrFrom converts 4 or 16 bytes to an address.
func addrFrom(b []byte) netip.Addr {
	if len(b) == 4 {
		return netip.AddrFrom4([4]byte(b))
	}
	return netip.AddrFrom16([16]byte(b))
}
