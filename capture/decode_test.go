package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var (
	four = Envelope{
		Src: netip.MustParseAddrPort("10.0.0.1:30000"), Dst: netip.MustParseAddrPort("10.0.0.2:40000"),
		TTL: 61, ID: 77,
	}
	six = Envelope{
		Src: netip.MustParseAddrPort("[fd77::1]:30000"),
		Dst: netip.MustParseAddrPort("[fd77::2]:40000"), TTL: 62,
	}
)

func udpPacket(t testing.TB, e Envelope, payload string) []byte {
	t.Helper()
	b, err := AppendUDP(nil, e, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// join concatenates bytes, text and big-endian 16-bit numbers.
func join(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			b = append(b, p...)
		case string:
			b = append(b, p...)
		case int:
			b = binary.BigEndian.AppendUint16(b, uint16(p))
		}
	}
	return b
}

// with returns a copy of b with the bytes from at on replaced.
func with(b []byte, at int, values ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], values)
	return b
}

// extended inserts extension headers into an IPv6 packet. first is the number
// of the first.
func extended(packet []byte, first byte, headers ...[]byte) []byte {
	all := slices.Concat(headers...)
	b := slices.Concat(packet[:40], all, packet[40:])
	b[6] = first
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	return b
}

const macs = "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01"

// TestDecodeShapes decodes one datagram in every encapsulation, and every fault
// of one.
func TestDecodeShapes(t *testing.T) {
	v4, v6 := udpPacket(t, four, "payload"), udpPacket(t, six, "payload")
	ethernet := func(kind int, rest ...any) []byte { return join(append([]any{macs, kind}, rest...)...) }
	sll := func(protocol int, rest []byte) []byte {
		return join(0, 1, 6, "\x02\x00\x00\x00\x00\x01\x00\x00", protocol, rest)
	}
	sll2 := func(protocol int, rest []byte) []byte {
		return join(protocol, 0, 0, 3, 1, "\x04\x06\x02\x00\x00\x00\x00\x01\x00\x00", rest)
	}
	family := func(word string, rest []byte) []byte { return join(word, rest) }
	tcp, err := AppendTCP(nil, four, 5, 6, FlagSYN, 100, []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	type shape struct {
		name   string
		link   uint32
		data   []byte
		want   string // transport, payload, length, layers
		faulty string // in the problem
	}
	shapes := []shape{
		{"ethernet", LinkEthernet, ethernet(etherIPv4, v4), "UDP payload/7 Ethernet@0+14 IPv4@14+20 UDP@34+8", ""},
		{"ethernet, IPv6", LinkEthernet, ethernet(etherIPv6, v6), "UDP payload/7 Ethernet@0+14 IPv6@14+40 UDP@54+8", ""},
		{
			"padding", LinkEthernet, ethernet(etherIPv4, v4, "\x00\x00\x00\x00\x00\x00"),
			"UDP payload/7 Ethernet@0+14 IPv4@14+20 UDP@34+8", "",
		},
		{
			"vlan", LinkEthernet, ethernet(etherVLAN, 5, etherIPv4, v4),
			"UDP payload/7 Ethernet@0+14 VLAN tag@14+4 IPv4@18+20 UDP@38+8", "",
		},
		{
			"three tags", LinkEthernet, ethernet(etherQinQ, 5, etherQinQ9, 6, etherVLAN, 7, etherIPv6, v6),
			"UDP payload/7 Ethernet@0+14 VLAN tag@14+4 VLAN tag@18+4 VLAN tag@22+4 IPv6@26+40 UDP@66+8", "",
		},
		{
			"pppoe", LinkEthernet, ethernet(etherPPPoE, "\x11\x00\x00\x01\x00\x00", 0x21, v4),
			"UDP payload/7 Ethernet@0+14 PPPoE@14+8 IPv4@22+20 UDP@42+8", "",
		},
		{
			"pppoe, IPv6", LinkEthernet, ethernet(etherPPPoE, "\x11\x00\x00\x01\x00\x00", 0x57, v6),
			"UDP payload/7 Ethernet@0+14 PPPoE@14+8 IPv6@22+40 UDP@62+8", "",
		},
		{
			"snap", LinkEthernet, ethernet(50, "\xaa\xaa\x03\x00\x00\x00", etherIPv4, v4),
			"UDP payload/7 Ethernet@0+14 LLC/SNAP@14+8 IPv4@22+20 UDP@42+8", "",
		},
		{"arp", LinkEthernet, ethernet(0x0806, v4), "none Ethernet@0+14", ""},
		{"llc", LinkEthernet, ethernet(50, "\x42\x42\x03\x00\x00\x00\x00\x00"), "none Ethernet@0+14", ""},
		{
			"ethernet, cut", LinkEthernet, ethernet(etherIPv4)[:13], "none",
			"Ethernet at byte 0: captured bytes: expected at least 14, found 13",
		},
		{
			"vlan, cut", LinkEthernet, ethernet(etherVLAN, 5), "none Ethernet@0+14",
			"VLAN tag at byte 14: captured bytes: expected at least 4, found 2",
		},
		{"cooked", LinkSLL, sll(etherIPv4, v4), "UDP payload/7 Linux cooked v1@0+16 IPv4@16+20 UDP@36+8", ""},
		{
			"cooked, tagged", LinkSLL, sll(etherVLAN, join(9, etherIPv6, v6)),
			"UDP payload/7 Linux cooked v1@0+16 VLAN tag@16+4 IPv6@20+40 UDP@60+8", "",
		},
		{
			"cooked, cut", LinkSLL, sll(etherIPv4, v4)[:15], "none",
			"Linux cooked v1 at byte 0: captured bytes: expected at least 16, found 15",
		},
		{"cooked, netlink", LinkSLL, with(sll(etherIPv4, v4), 2, 3, 0x38), "none Linux cooked v1@0+16", ""},
		{"cooked 2", LinkSLL2, sll2(etherIPv6, v6), "UDP payload/7 Linux cooked v2@0+20 IPv6@20+40 UDP@60+8", ""},
		{
			"cooked 2, cut", LinkSLL2, sll2(etherIPv6, v6)[:19], "none",
			"Linux cooked v2 at byte 0: captured bytes: expected at least 20, found 19",
		},
		{
			"null, little", LinkNull, family("\x02\x00\x00\x00", v4),
			"UDP payload/7 loopback header@0+4 IPv4@4+20 UDP@24+8", "",
		},
		{"null, big", LinkNull, family("\x00\x00\x00\x02", v4), "UDP payload/7 loopback header@0+4 IPv4@4+20 UDP@24+8", ""},
		{"null, other family", LinkNull, family("\x07\x00\x00\x00", v4), "none loopback header@0+4", ""},
		{
			"null, cut", LinkNull,
			[]byte{2, 0},
			"none",
			"loopback header at byte 0: captured bytes: expected at least 4, found 2",
		},
		{"loop", LinkLoop, family("\x00\x00\x00\x18", v6), "UDP payload/7 loopback header@0+4 IPv6@4+40 UDP@44+8", ""},
		{"raw", LinkRaw, v4, "UDP payload/7 IPv4@0+20 UDP@20+8", ""},
		{"raw 12", LinkRaw12, v6, "UDP payload/7 IPv6@0+40 UDP@40+8", ""},
		{"raw 14", LinkRaw14, v4, "UDP payload/7 IPv4@0+20 UDP@20+8", ""},
		{"raw, version 5", LinkRaw, with(v4, 0, 0x55), "none", "IPv4 at byte 0: version: expected 4 or 6, found 5"},
		{"raw, empty", LinkRaw, nil, "none", "IPv4 at byte 0: captured bytes: expected at least 1, found 0"},
		{"228", LinkIPv4, v4, "UDP payload/7 IPv4@0+20 UDP@20+8", ""},
		{"228 with IPv6", LinkIPv4, v6, "none", "IPv4 at byte 0: version: expected 4, found 6"},
		{"229", LinkIPv6, v6, "UDP payload/7 IPv6@0+40 UDP@40+8", ""},
		{"unknown link type", 147, v4, "none", ""},
		{"257, not 1", 257, ethernet(etherIPv4, v4), "none", ""},

		{
			"options", LinkRaw, with(join(v4[:20], "\x94\x04\x00\x00", v4[20:]), 0, 0x46, 0, 0, byte(len(v4)+4)),
			"UDP payload/7 IPv4@0+24 UDP@24+8", "",
		},
		{
			"header length 4", LinkRaw, with(v4, 0, 0x44), "none",
			"IPv4 at byte 0: header length: expected at least 20, found 16",
		},
		{
			"header length above", LinkRaw, with(v4, 0, 0x4f)[:40-8], "none",
			"IPv4 at byte 0: captured bytes: expected at least 60, found 32",
		},
		{"total length 0", LinkRaw, with(v4, 2, 0, 0), "UDP payload/7 IPv4@0+20 UDP@20+8", ""},
		{
			"total length below", LinkRaw, with(v4, 2, 0, 19), "none",
			"IPv4 at byte 0: total length: expected at least 20, found 19",
		},
		{"icmp", LinkRaw, with(v4, 9, 1), "none IPv4@0+20", ""},
		{"udp length 0", LinkRaw, with(v4, 24, 0, 0), "UDP payload/7 IPv4@0+20 UDP@20+8", ""},
		{
			"udp length 7", LinkRaw, with(v4, 24, 0, 7), "none IPv4@0+20",
			"UDP at byte 20: length: expected at least 8, found 7",
		},
		{"udp length 10", LinkRaw, with(v4, 24, 0, 10), "UDP pa/2 IPv4@0+20 UDP@20+8", ""},
		{
			"udp length above", LinkRaw, with(v4, 24, 1, 0), "UDP payload/7 IPv4@0+20 UDP@20+8",
			"UDP at byte 20: length: expected no more than the IP payload holds, found 256",
		},
		{"snap in the payload", LinkRaw, v4[:31], "UDP pay/7 IPv4@0+20 UDP@20+8", ""},
		{
			"snap in the udp header", LinkRaw, v4[:25], "UDP /7 IPv4@0+20",
			"UDP at byte 20: captured bytes: expected at least 8, found 5",
		},
		{
			"snap in the ports", LinkRaw, v4[:23], "none IPv4@0+20",
			"UDP at byte 20: captured bytes: expected at least 8, found 3",
		},
		{
			"no udp header", LinkRaw, with(v4[:24], 2, 0, 24), "none IPv4@0+20",
			"UDP at byte 20: captured bytes: expected at least 8, found 4",
		},
		{"IPv6, cut", LinkRaw, v6[:39], "none", "IPv6 at byte 0: captured bytes: expected at least 40, found 39"},
		{"IPv6 length 0", LinkRaw, with(v6, 4, 0, 0), "UDP payload/7 IPv6@0+40 UDP@40+8", ""},
		{
			"hop by hop, routing, destination", LinkRaw,
			extended(v6, 0, []byte{43, 0, 1, 4, 0, 0, 0, 0}, make6(60, 2, 4), make6(17, 1, 0)),
			"UDP payload/7 IPv6@0+40 IPv6 extension header@40+8 IPv6 extension header@48+24 IPv6 extension header@72+16 " +
				"UDP@88+8", "",
		},
		{
			"authentication", LinkRaw,
			extended(v6, 51, []byte{17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
			"UDP payload/7 IPv6@0+40 IPv6 extension header@40+24 UDP@64+8", "",
		},
		{
			"atomic fragment", LinkRaw, extended(v6, 44, []byte{17, 0, 0, 0, 0, 0, 1, 2}),
			"UDP payload/7 IPv6@0+40 IPv6 extension header@40+8 UDP@48+8", "",
		},
		{
			"extension header cut", LinkRaw, extended(v6, 0, []byte{17, 9, 0, 0, 0, 0, 0, 0}), "none IPv6@0+40",
			"IPv6 extension header at byte 40: captured bytes: expected at least 80, found 23",
		},
		{"no next header", LinkRaw, with(v6, 6, 59), "none IPv6@0+40", ""},
		{"tcp", LinkRaw, tcp, "TCP payload/7 IPv4@0+20 TCP@20+20", ""},
		{
			"tcp header length 4", LinkRaw, with(tcp, 32, 0x40), "none IPv4@0+20",
			"TCP at byte 20: header length: expected at least 20, found 16",
		},
		{
			"tcp header length above", LinkRaw, with(tcp, 32, 0xf0), "none IPv4@0+20",
			"TCP at byte 20: header length: expected no more than the IP payload holds, found 60",
		},
		{
			"tcp options cut", LinkRaw, with(tcp, 32, 0x60)[:42], "TCP /3 IPv4@0+20",
			"TCP at byte 20: captured bytes: expected at least 24, found 22",
		},
		{
			"tcp header cut", LinkRaw, tcp[:30], "TCP /0 IPv4@0+20",
			"TCP at byte 20: captured bytes: expected at least 20, found 10",
		},
	}
	for _, family := range []byte{10, 23, 24, 26, 28, 30} {
		shapes = append(shapes, shape{
			fmt.Sprintf("null, family %d", family), LinkNull, join([]byte{family, 0, 0, 0}, v6),
			"UDP payload/7 loopback header@0+4 IPv6@4+40 UDP@44+8", "",
		})
	}
	for _, s := range shapes {
		f := Frame{Ref: 3, At: 5, LinkType: s.link, Length: 0, Data: s.data}
		f.Length = len(s.data)
		var p Packet
		NewDecoder(DecodeOptions{}).Decode(&f, &p)
		if got := describe(&p); got != s.want {
			t.Errorf("%s: %s\nexpected %s", s.name, got, s.want)
		}
		switch {
		case p.Problem == nil && s.faulty != "" || p.Problem != nil && (s.faulty == "" || p.Problem.Error() != s.faulty):
			t.Errorf("%s: problem %v, expected %q", s.name, p.Problem, s.faulty)
		}
		if p.Transport != NoTransport && len(s.data) > 60 &&
			(p.Src != four.Src && p.Src != six.Src || p.Dst != four.Dst && p.Dst != six.Dst) {
			t.Errorf("%s: from %s to %s", s.name, p.Src, p.Dst)
		}
		checkInvariants(t, &f, &p)
	}
}

// make6 makes an IPv6 extension header of 8+8*more bytes.
func make6(next, more, kind byte) []byte {
	b := make([]byte, 8+8*int(more))
	b[0], b[1], b[2] = next, more, kind
	return b
}

func describe(p *Packet) string {
	s := "none"
	if p.Transport != NoTransport {
		s = fmt.Sprintf("%s %s/%d", [...]string{UDP: "UDP", TCP: "TCP", Fragment: "fragment"}[p.Transport],
			p.Payload, p.Length)
	}
	for _, l := range p.Layers {
		s += fmt.Sprintf(" %s@%d+%d", l.Kind, l.Offset, l.Length)
	}
	if q := p.Quote; q != nil {
		s += fmt.Sprintf(" %v of %v→%v %d/%d mtu %d id %d sum %x %q", q.Reason, q.Src, q.Dst, q.Length, q.Size, q.MTU, q.IPID,
			q.Checksum, q.Payload)
	}
	return s
}

// checkInvariants checks what is true of every decoded frame.
func checkInvariants(t testing.TB, f *Frame, p *Packet) {
	t.Helper()
	if len(p.Payload) > p.Length && p.Transport != NoTransport {
		t.Errorf("%d bytes of payload, %d on the wire", len(p.Payload), p.Length)
	}
	if p.Transport == NoTransport && (p.Payload != nil || len(p.Spans) != 0) {
		t.Errorf("a payload without a transport: %+v", p)
	}
	total := 0
	for _, s := range p.Spans {
		if s.Ref == f.Ref && !bytes.Equal(f.Data[s.Offset:s.Offset+s.Length], p.Payload[total:total+s.Length]) {
			t.Errorf("span %+v is not of the payload", s)
		}
		total += s.Length
	}
	if total != len(p.Payload) {
		t.Errorf("spans of %d bytes for a payload of %d", total, len(p.Payload))
	}
	at := 0
	for _, l := range p.Layers {
		if l.Offset < at || l.Length <= 0 || l.Offset+l.Length > len(f.Data) {
			t.Errorf("layers %v in a frame of %d bytes", p.Layers, len(f.Data))
		}
		at = l.Offset + l.Length
	}
	if q := p.Quote; q != nil && (p.Transport != NoTransport || q.Length < -1 || q.MTU < 0 ||
		len(q.Payload) > max(0, q.Length) || !q.Src.IsValid() || q.Src.Addr().Is4In6() || q.Dst.Addr().Is4In6()) {
		t.Errorf("%v carries a quote %+v", p.Transport, q)
	}
	if p.Src.Addr().Is4In6() || p.Dst.Addr().Is4In6() {
		t.Errorf("a mapped address: %s to %s", p.Src, p.Dst)
	}
	if e, ok := p.Problem.(*DecodeError); p.Problem != nil && (!ok || strings.Contains(e.Error(), "%!")) {
		t.Errorf("problem %v", p.Problem)
	}
}

// TestDepthIsCapped decodes 64 kB of VLAN tags, and of extension headers.
func TestDepthIsCapped(t *testing.T) {
	tags := []byte(macs)
	for len(tags) < 64<<10 {
		tags = join(tags, etherVLAN, 1)
	}
	headers := udpPacket(t, six, "")[:40]
	for len(headers) < 60<<10 {
		headers = append(headers, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	headers[6] = 0
	binary.BigEndian.PutUint16(headers[4:], uint16(len(headers)-40))
	d := NewDecoder(DecodeOptions{})
	for _, f := range []Frame{{LinkType: LinkEthernet, Data: tags}, {LinkType: LinkRaw, Data: headers}} {
		var p Packet
		d.Decode(&f, &p)
		if p.Problem == nil || !strings.Contains(p.Problem.Error(), "expected at most 16, found 17") || len(p.Layers) != 17 {
			t.Errorf("%d layers, problem %v", len(p.Layers), p.Problem)
		}
	}
}

func TestVerify(t *testing.T) {
	for _, e := range []Envelope{four, six} {
		for _, payload := range []string{"", "odd", "even"} {
			good := udpPacket(t, e, payload)
			head := len(good) - 8 - len(payload)
			for name, c := range map[string]struct {
				data []byte
				bad  bool
			}{
				"right":         {good, false},
				"wrong":         {with(good, len(good)-1, ^good[len(good)-1]), true},
				"none":          {with(good, head+6, 0, 0), e == six}, // IPv6 has no "none"
				"cut":           {good[:len(good)-min(1, len(payload))], false},
				"wrong address": {with(good, 15, 9), true},
			} {
				f := Frame{LinkType: LinkRaw, Length: len(good), Data: c.data}
				var p Packet
				if NewDecoder(DecodeOptions{Verify: true}).Decode(&f, &p); p.BadChecksum != c.bad {
					t.Errorf("%s, payload %q, %s: BadChecksum is %v", e.Src, payload, name, p.BadChecksum)
				}
				if NewDecoder(DecodeOptions{}).Decode(&f, &p); p.BadChecksum {
					t.Errorf("%s, %s: a checksum was computed unasked", e.Src, name)
				}
			}
		}
	}
}

// TestCommonAsAny checks that decodeCommon and decodeAny agree.
func TestCommonAsAny(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seeds := seedFrames(t)
	fast, general := NewDecoder(DecodeOptions{}), NewDecoder(DecodeOptions{})
	general.duplicates.seed = fast.duplicates.seed // equal hashes, so that both tables forget the same datagrams
	var p, q Packet
	taken := 0
	for i := range 30000 {
		f := seeds[r.IntN(len(seeds))]
		if i%2 == 0 {
			f = seeds[0]
		}
		f.Ref, f.Interface = 1+f.Ref, r.IntN(2)
		f.At += 1e3 * 10 // so that duplicates occur
		if f.LinkType == LinkEthernet && len(f.Data) > 14 && r.IntN(3) == 0 {
			f.LinkType, f.Data, f.Length = []uint32{LinkRaw, LinkIPv4}[r.IntN(2)], f.Data[14:], f.Length-14
		}
		f.Data = bytes.Clone(f.Data)
		if r.IntN(3) == 0 {
			for range r.IntN(4) {
				f.Data[r.IntN(min(len(f.Data), 50))] = byte(r.Uint32() >> r.IntN(24))
			}
		}
		if r.IntN(10) == 0 {
			f.Data = f.Data[:len(f.Data)-r.IntN(len(f.Data)/2)]
		}
		if fast.decodeCommon(&f, &p) {
			taken++
		} else {
			fast.decodeAny(&f, &p)
		}
		general.decodeAny(&f, &q)
		x, y := p, q
		x.Quote, y.Quote = nil, nil // describe shows what they point at
		if a, b := fmt.Sprintf("%+v %s", x, describe(&p)), fmt.Sprintf("%+v %s", y, describe(&q)); a != b {
			t.Fatalf("frame %d, % x:\n%s\nthe general way:\n%s", i, f.Data, a, b)
		}
	}
	if taken < 3000 || taken > 27000 {
		t.Errorf("the short way was taken %d times of 30000", taken)
	}
}

// TestSteadyStateAllocatesNothing reads and decodes shipped captures of several
// shapes.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, path := range captures(t, "linktype-", "reliable-loss40.client", "ipv6.client", "snap60.client", "loss10.") {
		in := mustOpen(t, Options{}, path)
		d := NewDecoder(DecodeOptions{})
		var f Frame
		var p Packet
		for range 50 { // slices of p grow to their final size
			if in.Next(&f) == nil {
				d.Decode(&f, &p)
			}
		}
		if n := testing.AllocsPerRun(200, func() {
			if in.Next(&f) == nil {
				d.Decode(&f, &p)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations a frame", path, n)
		}
	}
}
