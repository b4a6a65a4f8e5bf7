package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// icmpShape is an ICMP message, and what the decoder reads of it: "" for no quote.
type icmpShape struct {
	name string
	data []byte
	want string
}

// icmpError returns a packet from the host of e's destination. It is an ICMP message with a
// type and a code, its second word, and what it quotes.
func icmpError(t testing.TB, e Envelope, kind, code byte, word uint32, quoted []byte) []byte {
	e.Src, e.Dst = e.Dst, e.Src
	n := ipv4Header
	protocol := byte(protocolICMP)
	if e.Src.Addr().Is6() {
		n, protocol = ipv6Header, protocolICMPv6
	}
	b := udpPacket(t, e, strings.Repeat("x", len(quoted)))[:n] // a UDP header is as long as that of ICMP
	if n == ipv4Header {
		b[9] = protocol
	} else {
		b[6] = protocol
	}
	b = append(b, kind, code, 0, 0)
	return append(binary.BigEndian.AppendUint32(b, word), quoted...)
}

func icmpShapes(t testing.TB) []icmpShape {
	v4, v6 := udpPacket(t, four, "game payload"), udpPacket(t, six, "game payload")
	both := func(reason string, mtu int, payload string) string {
		return fmt.Sprintf("%s of %v→%v 12/40 mtu %d id 77 sum %x %q", reason, four.Src, four.Dst, mtu, v4[26:28], payload)
	}
	both6 := func(reason string, size, mtu, id int, payload string) string {
		return fmt.Sprintf("%s of %v→%v 12/%d mtu %d id %d sum %x %q", reason, six.Src, six.Dst, size, mtu, id, v6[46:48],
			payload)
	}
	unread := fmt.Sprintf("port unreachable of %v→%v -1/40 mtu 0 id 77 sum 0 %q", four.Src, four.Dst, "")
	options := with(join(v4[:20], "\x94\x04\x00\x00", v4[20:]), 0, 0x46, 0, 0, byte(len(v4)+4))
	tcp, err := AppendTCP(nil, four, 5, 6, FlagSYN, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	ah := extended(v6, 51, []byte{17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1})
	list := []icmpShape{
		{"port", icmpError(t, four, 3, 3, 0, v4), both("port unreachable", 0, "game payload")},
		{"port, eight bytes", icmpError(t, four, 3, 3, 0, v4[:28]), both("port unreachable", 0, "")},
		{"port, some payload", icmpError(t, four, 3, 3, 0, v4[:32]), both("port unreachable", 0, "game")},
		{"ports only", icmpError(t, four, 3, 3, 0, v4[:24]), unread},
		{"half the ports", icmpError(t, four, 3, 3, 0, v4[:23]), ""},
		{"too big", icmpError(t, four, 3, 4, 1400, v4[:28]), both("packet too big", 1400, "")},
		{"too big, no MTU", icmpError(t, four, 3, 4, 0, v4[:28]), both("packet too big", 0, "")},
		{"ttl", icmpError(t, four, 11, 0, 0, v4[:28]), both("time to live exceeded", 0, "")},
		{"reassembly", icmpError(t, four, 11, 1, 0, v4[:28]), both("fragment reassembly time exceeded", 0, "")},
		{"code 200", icmpError(t, four, 3, 200, 0, v4[:28]), both("destination unreachable", 0, "")},
		{"time exceeded, code 9", icmpError(t, four, 11, 9, 0, v4[:28]), both("destination unreachable", 0, "")},
		{
			"options", icmpError(t, four, 3, 3, 0, options),
			strings.Replace(both("port unreachable", 0, "game payload"), "12/40", "12/44", 1),
		},
		{"echo", icmpError(t, four, 8, 0, 0, v4), ""},
		{"redirect", icmpError(t, four, 5, 1, 0, v4), ""},
		{"a later fragment", icmpError(t, four, 3, 3, 0, with(v4, 6, 0, 1)), ""},
		{"a first fragment", icmpError(t, four, 3, 3, 0, with(v4, 6, 0x20, 0)), both("port unreachable", 0, "game payload")},
		{"quoted header length 4", icmpError(t, four, 3, 3, 0, with(v4, 0, 0x44)), ""},
		{"quoted header beyond", icmpError(t, four, 3, 3, 0, with(v4, 0, 0x4f)[:40]), ""},
		{"nothing quoted", icmpError(t, four, 3, 3, 0, nil), ""},
		{"version 5", icmpError(t, four, 3, 3, 0, with(v4, 0, 0x55)), ""},
		{"SCTP quoted", icmpError(t, four, 3, 3, 0, with(v4, 9, 132)), ""},
		{
			"udp length 3", icmpError(t, four, 3, 3, 0, with(v4, 24, 0, 3)),
			fmt.Sprintf("port unreachable of %v→%v -1/40 mtu 0 id 77 sum %x %q", four.Src, four.Dst, v4[26:28], ""),
		},
		{
			"TCP", icmpError(t, four, 3, 3, 0, tcp[:28]),
			fmt.Sprintf("port unreachable of %v→%v -1/40 mtu 0 id 77 sum 0 %q", four.Src, four.Dst, ""),
		},

		{"port, IPv6", icmpError(t, six, 1, 4, 0, v6), both6("port unreachable", 60, 0, 0, "game payload")},
		{"no route, IPv6", icmpError(t, six, 1, 0, 0, v6[:48]), both6("network unreachable", 60, 0, 0, "")},
		{"policy, IPv6", icmpError(t, six, 1, 5, 0, v6[:48]), both6("administratively prohibited", 60, 0, 0, "")},
		{"too big, IPv6", icmpError(t, six, 2, 0, 1280, v6), both6("packet too big", 60, 1280, 0, "game payload")},
		{"hops, IPv6", icmpError(t, six, 3, 0, 0, v6[:48]), both6("time to live exceeded", 60, 0, 0, "")},
		{"neighbour, IPv6", icmpError(t, six, 135, 0, 0, v6), ""},
		{
			"extensions, IPv6", icmpError(t, six, 1, 4, 0, extended(v6, 0, make6(60, 1, 4), make6(17, 0, 0))),
			both6("port unreachable", 84, 0, 0, "game payload"),
		},
		{"authentication, IPv6", icmpError(t, six, 1, 4, 0, ah), both6("port unreachable", 72, 0, 0, "game payload")},
		{
			"a first fragment, IPv6", icmpError(t, six, 1, 4, 0, extended(v6, 44, []byte{17, 0, 0, 1, 0, 0, 1, 2})),
			both6("port unreachable", 68, 0, 258, "game payload"),
		},
		{"a later fragment, IPv6", icmpError(t, six, 1, 4, 0, extended(v6, 44, []byte{17, 0, 0, 9, 0, 0, 1, 2})), ""},
		{"extension cut, IPv6", icmpError(t, six, 1, 4, 0, extended(v6, 0, []byte{17, 9, 0, 0, 0, 0, 0, 0})), ""},
	}
	for code, reason := range []string{
		"network unreachable", "host unreachable", "protocol unreachable", "port unreachable", "packet too big",
		"destination unreachable", "network unreachable", "host unreachable", "host unreachable",
		"administratively prohibited", "administratively prohibited", "network unreachable", "host unreachable",
		"administratively prohibited", "administratively prohibited", "administratively prohibited",
	} {
		list = append(list, icmpShape{
			"code " + strconv.Itoa(code), icmpError(t, four, 3, byte(code), 0, v4[:28]), both(reason, 0, ""),
		})
	}
	return list
}

// TestQuotes reads ICMP errors of every kind, and every fault of one.
func TestQuotes(t *testing.T) {
	for _, s := range icmpShapes(t) {
		f := Frame{Ref: 3, At: 5, LinkType: LinkRaw, Length: len(s.data), Data: s.data}
		var p Packet
		NewDecoder(DecodeOptions{}).Decode(&f, &p)
		checkInvariants(t, &f, &p)
		_, got, _ := strings.Cut(describe(&p), " ")
		if _, quote, ok := strings.Cut(got, "+20 "); ok {
			got = quote
		} else if _, quote, ok = strings.Cut(got, "+40 "); ok {
			got = quote
		} else {
			got = ""
		}
		if got != s.want {
			t.Errorf("%s: %q\nexpected %q", s.name, got, s.want)
		}
	}
}

// TestQuoteEnds: a frame without an error has no quote of the frame before it, and a quote
// costs no allocation.
func TestQuoteEnds(t *testing.T) {
	quoted := Frame{Ref: 1, LinkType: LinkRaw, Data: icmpError(t, four, 3, 3, 0, udpPacket(t, four, "payload"))}
	plain := Frame{Ref: 2, LinkType: LinkRaw, Data: udpPacket(t, four, "payload")}
	odd := Frame{Ref: 3, LinkType: LinkRaw, Data: udpPacket(t, six, "payload")}
	d := NewDecoder(DecodeOptions{})
	var p Packet
	for _, f := range []*Frame{&plain, &odd} {
		d.Decode(&quoted, &p)
		if p.Quote == nil || p.Transport != NoTransport {
			t.Fatalf("%+v", p)
		}
		if d.Decode(f, &p); p.Quote != nil || p.Transport != UDP {
			t.Errorf("frame %d: quote %+v", f.Ref.Frame(), p.Quote)
		}
	}
	if n := testing.AllocsPerRun(100, func() { d.Decode(&quoted, &p) }); n != 0 {
		t.Errorf("%v allocations for an ICMP error", n)
	}
}

// TestQuoteCapturedTwice: the same error on another interface is a duplicate.
func TestQuoteCapturedTwice(t *testing.T) {
	data := icmpError(t, four, 3, 3, 0, udpPacket(t, four, "payload"))
	d := NewDecoder(DecodeOptions{})
	var p Packet
	for i, want := range []bool{false, true} {
		f := Frame{Ref: 1, At: 5, Interface: i, LinkType: LinkRaw, Data: data}
		if d.Decode(&f, &p); p.Duplicate != want || p.Quote == nil {
			t.Errorf("copy %d: duplicate %v, quote %v", i, p.Duplicate, p.Quote)
		}
	}
}

// TestQuoteUnfilled: a checksum that the card is to compute fits the quote's addresses.
func TestQuoteUnfilled(t *testing.T) {
	for _, e := range []Envelope{four, six} {
		packet := udpPacket(t, e, "payload")
		f := Frame{Ref: 1, LinkType: LinkRaw, Data: packet}
		var sent, p Packet
		d := NewDecoder(DecodeOptions{})
		d.Decode(&f, &sent)
		sent.Checksum = onesComplement(pseudoHeader(e.Src.Addr(), e.Dst.Addr(), protocolUDP, sent.Length+8), nil)
		kind := byte(3)
		if e.Src.Addr().Is6() {
			kind = 1
		}
		f = Frame{Ref: 2, LinkType: LinkRaw, Data: icmpError(t, e, kind, 3, 0, packet)}
		d.Decode(&f, &p)
		if p.Quote == nil || !sent.Unfilled() || !p.Quote.Unfilled(sent.Checksum) || p.Quote.Unfilled(sent.Checksum^1) {
			t.Errorf("%v: %+v", e.Src, p.Quote)
		}
	}
}

// FuzzQuote reads any bytes as ICMP and ICMPv6 messages.
func FuzzQuote(f *testing.F) {
	for _, s := range icmpShapes(f) {
		f.Add(s.data[0]>>4 == 6, s.data[20:])
	}
	f.Fuzz(func(t *testing.T, six bool, message []byte) {
		var d Decoder
		d.duplicates.init()
		var p Packet
		fr := Frame{Data: bytes.Clone(message)}
		c := cursor{f: &fr, p: &p, data: fr.Data}
		protocol := uint8(protocolICMP)
		if six {
			protocol = protocolICMPv6
		}
		d.icmp(&c, protocol, fr.Data)
		checkInvariants(t, &fr, &p)
		if !bytes.Equal(fr.Data, message) {
			t.Fatal("the frame changed")
		}
		if p.Quote != nil && (len(message) < 8+20+4 || p.Quote.Protocol != UDP && p.Quote.Protocol != TCP) {
			t.Fatalf("%+v of %d bytes", p.Quote, len(message))
		}
	})
}

// TestQuotesAsTshark compares the quotes of a capture that has ICMP errors of many kinds.
func TestQuotesAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	path := testenv.Module(t) + "/testdata/layers/kinds.pcap"
	// Where several headers have a field, the last one is the quoted packet's. Frame 19 is an
	// error about an error, which hosts never send (RFC 1122, 3.2.2).
	out := testenv.Output(t, tshark, "-n", "-r", path, "-o", "tcp.desegment_tcp_streams:FALSE",
		"-Y", "(icmp.type == 3 || icmp.type == 11 || icmpv6.type <= 3) && udp.length && frame.number != 19", "-T", "fields",
		"-E", "occurrence=l", "-e", "frame.number",
		"-e", "ip.src", "-e", "ip.dst", "-e", "ipv6.src", "-e", "ipv6.dst", "-e", "udp.srcport", "-e", "udp.dstport",
		"-e", "udp.length", "-e", "udp.checksum", "-e", "icmp.mtu", "-e", "icmpv6.mtu")
	var want []string
	for line := range strings.Lines(string(out)) {
		want = append(want, strings.TrimSuffix(line, "\n"))
	}
	in := mustOpen(t, Options{}, path)
	d := NewDecoder(DecodeOptions{})
	var f Frame
	var p Packet
	var got []string
	for in.Next(&f) == nil {
		d.Decode(&f, &p)
		q := p.Quote
		if q == nil || q.Protocol != UDP || q.Length < 0 {
			continue
		}
		cells := []string{fmt.Sprint(f.Ref.Frame()), "", "", "", ""}
		at := 1
		if q.Src.Addr().Is6() {
			at = 3
		}
		cells[at], cells[at+1] = q.Src.Addr().String(), q.Dst.Addr().String()
		cells = append(cells, fmt.Sprint(q.Src.Port()), fmt.Sprint(q.Dst.Port()), fmt.Sprint(q.Length+8),
			fmt.Sprintf("0x%04x", q.Checksum), "", "")
		if q.Reason == ReasonSize {
			cells[len(cells)-2+(at-1)/2] = fmt.Sprint(q.MTU)
		}
		got = append(got, strings.Join(cells, "\t"))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(want) == 0 {
		t.Errorf("%s\ntshark:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
