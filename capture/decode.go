package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// DecodeOptions say how frames are decoded. The zero value selects every
// default.
type DecodeOptions struct {
	// Verify computes IPv4 header and UDP checksums for Packet.BadChecksum.
	Verify bool
	// FragmentBytes and FragmentDatagrams bound the memory for IP datagrams that
	// are not yet whole (default 16 MiB and 1024 datagrams). Beyond them the
	// decoder drops the oldest.
	FragmentBytes     int
	FragmentDatagrams int
}

// Decoder decodes frames down to UDP or TCP and no further. It allocates
// nothing per frame. The cost of one frame is bounded, whatever its bytes are.
// It is not safe for concurrent use.
type Decoder struct {
	verify     bool
	defrag     defragmenter
	duplicates duplicateTable
	problem    DecodeError // what Packet.Problem points at
	quote      Quote       // what Packet.Quote points at
}

// maxHeaders bounds the VLAN tags of a frame, and its IPv6 extension headers.
const maxHeaders = 16

// NewDecoder returns a decoder.
func NewDecoder(o DecodeOptions) *Decoder {
	d := &Decoder{verify: o.Verify}
	d.defrag.init(o)
	d.duplicates.init()
	return d
}

// FragmentStats returns what has become of IP fragments so far.
func (d *Decoder) FragmentStats() FragmentStats {
	s := d.defrag.stats
	s.Held, s.HeldBytes = len(d.defrag.held), d.defrag.bytes
	return s
}

// FragmentsFit reports whether the fragments that the decoder held at a time fit in a part of its room:
// one of so many. If that is so for as many decoders, one for all of their frames would have had room.
func (d *Decoder) FragmentsFit(parts int) bool {
	return d.defrag.mostHeld*parts <= d.defrag.maxCount && d.defrag.mostBytes*parts <= d.defrag.maxBytes
}

// Duplicates returns how many datagrams and fragments so far the tap had
// captured before.
func (d *Decoder) Duplicates() uint64 { return d.duplicates.count }

// DecodeError says why a frame could not be decoded further.
type DecodeError struct {
	Layer    LayerKind
	Offset   int // of that layer within the frame's data, or within a reassembled IP payload
	Field    string
	Expected string
	Least    int // the smallest value expected, if Expected is empty
	Found    int
}

func (e *DecodeError) Error() string {
	expected := e.Expected
	if expected == "" {
		expected = fmt.Sprintf("at least %d", e.Least)
	}
	return fmt.Sprintf("%s at byte %d: %s: expected %s, found %d", e.Layer, e.Offset, e.Field, expected, e.Found)
}

var layerNames = [...]string{
	LayerEthernet: "Ethernet", LayerVLAN: "VLAN tag", LayerSLL: "Linux cooked v1", LayerSLL2: "Linux cooked v2",
	LayerNull: "loopback header", LayerIPv4: "IPv4", LayerIPv6: "IPv6", LayerIPv6Extension: "IPv6 extension header",
	LayerUDP: "UDP", LayerTCP: "TCP", LayerPPPoE: "PPPoE", LayerSNAP: "LLC/SNAP",
}

func (k LayerKind) String() string { return layerNames[k] }

// cursor is the decoder's position in a frame.
type cursor struct {
	f      *Frame
	p      *Packet
	data   []byte // the frame's, or a reassembled IP payload
	at     int
	length int    // of data on the wire
	kind   uint8  // SLL packet type plus one; 0 means none
	device uint32 // SLL2 interface index
	tag    uint32 // of the last VLAN tag, plus one; 0 means none
	spans  []Span // the frames that data came from, once it is reassembled; nil before

	src, dst netip.Addr
	mix      uint64 // hash of the IP header, for the duplicate table
	protocol uint8  // of a reassembled datagram
}

// Decode decodes f into p.
func (d *Decoder) Decode(f *Frame, p *Packet) {
	if !d.decodeCommon(f, p) {
		d.decodeAny(f, p)
	}
}

// decodeAny decodes a frame of any shape.
func (d *Decoder) decodeAny(f *Frame, p *Packet) {
	var c cursor
	d.walk(&c, f, p)
}

// walk decodes a frame of any shape, and leaves the cursor where it ends.
func (d *Decoder) walk(c *cursor, f *Frame, p *Packet) {
	p.Ref, p.At = f.Ref, f.At
	p.Transport = NoTransport
	p.Src, p.Dst = netip.AddrPort{}, netip.AddrPort{}
	p.Payload, p.Length = nil, 0
	p.TTL, p.IPID, p.Fragments, p.Joined, p.Checksum = 0, 0, 0, nil, 0
	p.Spans, p.Layers = p.Spans[:0], p.Layers[:0]
	p.Duplicate, p.Overlap, p.BadChecksum = false, false, false
	p.TCPSeq, p.TCPAck, p.TCPFlags = 0, 0, 0
	p.Problem, p.Quote = nil, nil
	p.Direction = NoDirection
	if len(f.Options) != 0 {
		p.Direction = f.direction()
	}
	*c = cursor{f: f, p: p, data: f.Data, length: f.Length}
	switch f.LinkType {
	case LinkEthernet:
		d.ethernet(c)
	case LinkSLL:
		d.cooked(c)
	case LinkSLL2:
		d.cooked2(c)
	case LinkNull, LinkLoop:
		d.loopback(c)
	case LinkRaw, LinkRaw12, LinkRaw14:
		d.rawIP(c)
	case LinkIPv4:
		d.ipv4(c)
	case LinkIPv6:
		d.ipv6(c)
	}
}

// short records that a layer has too few bytes, or that a length field is too
// small.
func (d *Decoder) short(c *cursor, layer LayerKind, field string, least, found int) {
	d.problem = DecodeError{Layer: layer, Offset: c.at, Field: field, Least: least, Found: found}
	c.p.Problem = &d.problem
}

func (d *Decoder) wrong(c *cursor, layer LayerKind, field, expected string, found int) {
	d.problem = DecodeError{Layer: layer, Offset: c.at, Field: field, Expected: expected, Found: found}
	c.p.Problem = &d.problem
}

// layer records a header of n bytes at the cursor and moves the cursor past it.
func (c *cursor) layer(kind LayerKind, n int) {
	if c.spans == nil {
		c.p.Layers = append(c.p.Layers, Layer{Kind: kind, Offset: c.at, Length: n})
	} else if s := c.spans[0]; s.Ref == c.p.Ref && c.at+n <= s.Length {
		c.p.Layers = append(c.p.Layers, Layer{Kind: kind, Offset: s.Offset + c.at, Length: n})
	}
	c.at += n
}

const (
	etherIPv4  = 0x0800
	etherIPv6  = 0x86dd
	etherVLAN  = 0x8100
	etherQinQ  = 0x88a8
	etherQinQ9 = 0x9100 // in use before IEEE 802.1ad
	etherPPPoE = 0x8864
	etherLeast = 0x0600 // a smaller value is a length
)

func (d *Decoder) ethernet(c *cursor) {
	if len(c.data) < 14 {
		d.short(c, LayerEthernet, "captured bytes", 14, len(c.data))
		return
	}
	kind := binary.BigEndian.Uint16(c.data[12:])
	c.layer(LayerEthernet, 14)
	d.etherType(c, kind)
}

// etherType decodes what an EtherType names, through any VLAN tags.
func (d *Decoder) etherType(c *cursor, kind uint16) {
	for tags := 0; ; tags++ {
		rest := len(c.data) - c.at
		switch kind {
		case etherIPv4:
			d.ipv4(c)
			return
		case etherIPv6:
			d.ipv6(c)
			return
		case etherVLAN, etherQinQ, etherQinQ9:
			if tags == maxHeaders {
				d.wrong(c, LayerVLAN, "tags", "at most 16", tags+1)
				return
			}
			if rest < 4 {
				d.short(c, LayerVLAN, "captured bytes", 4, rest)
				return
			}
			c.tag = uint32(binary.BigEndian.Uint16(c.data[c.at:])) + 1
			kind = binary.BigEndian.Uint16(c.data[c.at+2:])
			c.layer(LayerVLAN, 4)
		case etherPPPoE:
			d.pppoe(c)
			return
		default:
			// LLC with a SNAP header carries an EtherType under the OUI of Ethernet or
			// of bridge tunnels.
			if kind >= etherLeast || rest < 8 || c.data[c.at] != 0xaa || c.data[c.at+1] != 0xaa || c.data[c.at+2] != 3 {
				return
			}
			if oui := uint32(c.data[c.at+3])<<16 | uint32(c.data[c.at+4])<<8 | uint32(c.data[c.at+5]); oui != 0 && oui != 0xf8 {
				return
			}
			kind = binary.BigEndian.Uint16(c.data[c.at+6:])
			if kind < etherLeast {
				return // a SNAP header never holds another
			}
			c.layer(LayerSNAP, 8)
		}
	}
}

func (d *Decoder) pppoe(c *cursor) {
	rest := len(c.data) - c.at
	if rest < 8 {
		d.short(c, LayerPPPoE, "captured bytes", 8, rest)
		return
	}
	protocol := binary.BigEndian.Uint16(c.data[c.at+6:])
	if c.data[c.at+1] != 0 {
		return // not session data
	}
	c.layer(LayerPPPoE, 8)
	switch protocol {
	case 0x0021:
		d.ipv4(c)
	case 0x0057:
		d.ipv6(c)
	}
}

// Cooked captures name the protocol of a packet by an EtherType, except for
// these hardware types.
const (
	hardwareFrameRelay = 770
	hardwareGRE        = 778
	hardwareRadiotap   = 803
	hardwareNetlink    = 824

	cookedOutgoing = 4
)

func (d *Decoder) cooked(c *cursor) {
	if len(c.data) < 16 {
		d.short(c, LayerSLL, "captured bytes", 16, len(c.data))
		return
	}
	b := c.data
	c.layer(LayerSLL, 16)
	d.cookedPayload(c, binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[14:]))
}

func (d *Decoder) cooked2(c *cursor) {
	if len(c.data) < 20 {
		d.short(c, LayerSLL2, "captured bytes", 20, len(c.data))
		return
	}
	b := c.data
	c.device = binary.BigEndian.Uint32(b[4:])
	c.layer(LayerSLL2, 20)
	d.cookedPayload(c, uint16(b[10]), binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b))
}

func (d *Decoder) cookedPayload(c *cursor, packetType, hardware, protocol uint16) {
	c.kind = uint8(min(packetType, 254)) + 1
	c.p.Direction = Inbound
	if packetType == cookedOutgoing {
		c.p.Direction = Outbound
	}
	switch hardware {
	case hardwareFrameRelay, hardwareGRE, hardwareRadiotap, hardwareNetlink:
		return
	}
	if protocol >= etherLeast {
		d.etherType(c, protocol)
	}
}

// loopback reads the address family of a BSD loopback frame. Its numbers are
// those of the capturing system: IPv4 is 2 everywhere, IPv6 has six numbers.
// Some files have the family in network byte order under the link type for host
// byte order. So loopback accepts both byte orders.
func (d *Decoder) loopback(c *cursor) {
	if len(c.data) < 4 {
		d.short(c, LayerNull, "captured bytes", 4, len(c.data))
		return
	}
	family := binary.LittleEndian.Uint32(c.data)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(c.data)
	}
	c.layer(LayerNull, 4)
	switch family {
	case 2:
		d.ipv4(c)
	case 10, 23, 24, 26, 28, 30: // Linux, Windows, NetBSD and OpenBSD, Solaris, FreeBSD, macOS
		d.ipv6(c)
	}
}

func (d *Decoder) rawIP(c *cursor) {
	if len(c.data) == 0 {
		d.short(c, LayerIPv4, "captured bytes", 1, 0)
		return
	}
	switch version := c.data[0] >> 4; version {
	case 4:
		d.ipv4(c)
	case 6:
		d.ipv6(c)
	default:
		d.wrong(c, LayerIPv4, "version", "4 or 6", int(version))
	}
}
