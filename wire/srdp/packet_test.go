package srdp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/wire"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func address(t testing.TB, s string) Address {
	t.Helper()
	a, ok := AddressOf(netip.MustParseAddrPort(s))
	if !ok {
		t.Fatalf("%s is not IPv4", s)
	}
	return a
}

func little(p Profile) Profile {
	p.LittleEndian = true
	return p
}

// These packets are written by hand from the document's layout.
func TestPackets(t *testing.T) {
	other := Default()
	other.DataCommand, other.AckCommand = 7, 7
	a, b := address(t, "10.0.0.1:4660"), address(t, "192.168.1.2:53")
	for _, c := range []struct {
		name    string
		profile Profile
		hex     string
		want    Packet
		payload string
	}{
		{
			"data", Default(), "53 1234 03 616263",
			Packet{Command: 0x53, ID: 0x1234, Flags: 3, PayloadOffset: 4, PayloadLen: 3},
			"abc",
		},
		{"empty data", Default(), "53 0000 00", Packet{Command: 0x53, PayloadOffset: 4}, ""},
		{
			"last id", Default(), "53 7fff 80 00",
			Packet{Command: 0x53, ID: 32767, Flags: 0x80, PayloadOffset: 4, PayloadLen: 1},
			"\x00",
		},
		{"acknowledgement", Default(), "41 9234", Packet{Command: 0x41, Ack: true, ID: 0x1234}, ""},
		{"acknowledgement of id 0", Default(), "41 8000", Packet{Command: 0x41, Ack: true}, ""},
		{"the top bit decides: an acknowledgement", Default(), "53 ffff", Packet{Command: 0x53, Ack: true, ID: 32767}, ""},
		{
			"the top bit decides: data", Default(), "41 0001 02 aa",
			Packet{Command: 0x41, ID: 1, Flags: 2, PayloadOffset: 4, PayloadLen: 1},
			"\xaa",
		},
		{"one command", other, "07 8005", Packet{Command: 7, Ack: true, ID: 5}, ""},
		{
			"little-endian", little(Default()), "53 3412 00 ff",
			Packet{Command: 0x53, ID: 0x1234, PayloadOffset: 4, PayloadLen: 1},
			"\xff",
		},
		{"little-endian acknowledgement", little(Default()), "41 3492", Packet{Command: 0x41, Ack: true, ID: 0x1234}, ""},
		{
			"proxied data", Default().In(Proxied), "53 0102 0a000001 1234 c0a80102 0035 01 6869",
			Packet{Command: 0x53, ID: 0x102, Source: a, Destination: b, Flags: 1, PayloadOffset: 16, PayloadLen: 2},
			"hi",
		},
		{
			"proxied acknowledgement", Default().In(Proxied), "41 8102 c0a80102 0035 0a000001 1234",
			Packet{Command: 0x41, Ack: true, ID: 0x102, Source: b, Destination: a},
			"",
		},
		{
			"proxied little-endian", little(Default().In(Proxied)), "53 0201 0a000001 3412 c0a80102 3500 00",
			Packet{Command: 0x53, ID: 0x102, Source: a, Destination: b, PayloadOffset: 16},
			"",
		},
	} {
		raw := unhex(t, c.hex)
		var got Packet
		if err := c.profile.Parse(raw, len(raw), &got); err != nil || got != c.want {
			t.Errorf("%s: %s reads as %+v, %v; want %+v", c.name, c.hex, got, err, c.want)
		}
		if !got.Ack && string(raw[got.PayloadOffset:][:got.PayloadLen]) != c.payload {
			t.Errorf("%s: bytes %q", c.name, raw[got.PayloadOffset:])
		}
		if again := c.profile.Append([]byte("x"), &c.want, []byte(c.payload)); !bytes.Equal(again[1:], raw) ||
			again[0] != 'x' {
			t.Errorf("%s: written as %x, want %x", c.name, again[1:], raw)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		form   Form
		hex    string
		length int // 0: all of it
		kind   error
		want   string
	}{
		{
			Direct, "", 0, wire.ErrShort,
			"command at byte 0: packet ends before the field does: expected at least 3 bytes, found 0",
		},
		{Direct, "54 0001 00", 0, wire.ErrRange, "command at byte 0: value out of range: expected 0x53 or 0x41, found 0x54"},
		{
			Direct, "53 00", 0, wire.ErrShort,
			"packet_id at byte 1: packet ends before the field does: expected at least 3 bytes, found 2",
		},
		{
			Direct, "53 0001", 0, wire.ErrShort,
			"flags at byte 3: packet ends before the field does: expected at least 4 bytes, found 3",
		},
		{Direct, "53 0001", 9, wire.ErrSnapped, "flags at byte 3: cut by the capture's snap length"},
		{
			Direct, "41 8001 00", 0, wire.ErrTrailing,
			"packet_id at byte 3: bytes are left after the last field: expected 3 bytes, found 4",
		},
		{
			Direct, "41 8001", 4, wire.ErrTrailing,
			"packet_id at byte 3: bytes are left after the last field: expected 3 bytes, found 4",
		},
		{
			Proxied, "53 0001 0a0000", 0, wire.ErrShort,
			"source.addr at byte 3: packet ends before the field does: expected at least 15 bytes, found 6",
		},
		{
			Proxied, "53 0001 0a000001 12", 0, wire.ErrShort,
			"source.port at byte 7: packet ends before the field does: expected at least 15 bytes, found 8",
		},
		{
			Proxied, "53 0001 0a000001 1234 c0a80102 0035", 0, wire.ErrShort,
			"flags at byte 15: packet ends before the field does: expected at least 16 bytes, found 15",
		},
		{
			Proxied, "41 8001 0a000001 1234 c0a80102", 20, wire.ErrSnapped,
			"destination.port at byte 13: cut by the capture's snap length",
		},
	} {
		p, raw := Default().In(c.form), unhex(t, c.hex)
		length := c.length
		if length == 0 {
			length = len(raw)
		}
		var pk Packet
		err := p.Parse(raw, length, &pk)
		var pe *wire.ParseError
		if !errors.As(err, &pe) || !errors.Is(err, c.kind) || err.Error() != c.want {
			t.Errorf("%v %q of %d: %v, want %s", c.form, c.hex, length, err, c.want)
		}
		if p.Fits(raw, length, &pk) {
			t.Errorf("%v %q fits", c.form, c.hex)
		}
	}
}

func TestWalk(t *testing.T) {
	for _, c := range []struct {
		form Form
		hex  string
		want string
	}{
		{Direct, "53 1234 03 616263", "command@0+1=53 packet_id@1+2=1234 flags@3+1=3"},
		{Direct, "41 9234", "command@0+1=41 packet_id@1+2=9234"},
		{Direct, "41 9234 55", "command@0+1=41 packet_id@1+2=9234"},
		{Direct, "99 9234 55", "command@0+1=99"},
		{Direct, "53 12", "command@0+1=53"},
		{Direct, "", ""},
		{
			Proxied, "53 0102 0a000001 1234 c0a80102 0035 01 6869",
			"command@0+1=53 packet_id@1+2=102 source.addr@3+4=a000001 source.port@7+2=1234 destination.addr@9+4=c0a80102 " +
				"destination.port@13+2=35 flags@15+1=1",
		},
		{Proxied, "41 8102 0a000001 12", "command@0+1=41 packet_id@1+2=8102 source.addr@3+4=a000001"},
	} {
		var got []string
		p, raw := Default().In(c.form), unhex(t, c.hex)
		p.Walk(raw, len(raw), func(f Field, at, size int, value uint64) {
			got = append(got, fmt.Sprintf("%v@%d+%d=%x", f, at, size, value))
		})
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v %s: %s\nwant %s", c.form, c.hex, strings.Join(got, " "), c.want)
		}
	}
}

func TestProfile(t *testing.T) {
	good := Default()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if good.MaxPayload() != 544 || good.HeaderLen() != 4 || good.AckLen() != 3 {
		t.Errorf("direct: %d bytes behind %d, acks of %d", good.MaxPayload(), good.HeaderLen(), good.AckLen())
	}
	if p := good.In(Proxied); p.MaxPayload() != 532 || p.HeaderLen() != 16 || p.AckLen() != 15 {
		t.Errorf("proxied: %d bytes behind %d, acks of %d", p.MaxPayload(), p.HeaderLen(), p.AckLen())
	}
	for _, c := range []struct {
		want   string
		change func(p *Profile)
	}{
		{"form: expected direct or proxied, found 2", func(p *Profile) { p.Form = 2 }},
		{"order: expected a single bit of the flags, found 0x06", func(p *Profile) { p.Order = 6 }},
		{"dont_duplicate: expected a single bit of the flags, found 0x00", func(p *Profile) { p.DontDuplicate = 0 }},
		{"order: expected another bit than that of dont_duplicate", func(p *Profile) { p.Order = p.DontDuplicate }},
		{"frame_prefix: expected 2 or 4 bytes, found 3", func(p *Profile) { p.FramePrefix = 3 }},
	} {
		p := good
		c.change(&p)
		if err := p.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if got := good.UnknownFlags(0xff); got != 0xfc {
		t.Errorf("unknown flags %#x", got)
	}
	for _, f := range []Form{Direct, Proxied} {
		if got, ok := ParseForm(f.String()); !ok || got != f {
			t.Errorf("%v reads back as %v", f, got)
		}
	}
	if _, ok := ParseForm("tunnelled"); ok {
		t.Error("an unknown form was read")
	}
	data := Packet{
		Command: 0x53, ID: 77, Source: address(t, "10.0.0.1:1"), Destination: address(t, "10.0.0.2:2"),
		Flags: 1, PayloadLen: 4,
	}
	want := Packet{Command: 0x41, Ack: true, ID: 77, Source: data.Destination, Destination: data.Source}
	if got := good.AckOf(&data); !reflect.DeepEqual(got, want) {
		t.Errorf("acknowledged by %+v", got)
	}
	for _, c := range []struct {
		pk   Packet
		want bool
	}{
		{Packet{Command: 0x53}, false},
		{Packet{Command: 0x41}, true},
		{Packet{Command: 0x41, Ack: true}, false},
		{Packet{Command: 0x53, Ack: true}, true},
	} {
		if good.Contradicts(&c.pk) != c.want {
			t.Errorf("%+v contradicts: %v", c.pk, !c.want)
		}
	}
	if _, ok := AddressOf(netip.MustParseAddrPort("[2001:db8::1]:1")); ok {
		t.Error("an IPv6 address passed for IPv4")
	}
	if got := address(t, "[::ffff:192.0.2.7]:99").String(); got != "192.0.2.7:99" {
		t.Error(got)
	}
}

func TestFrames(t *testing.T) {
	for _, c := range []struct {
		prefix int
		little bool
		hex    string
	}{{2, false, "0003 418001"}, {2, true, "0300 418001"}, {4, false, "00000003 418001"}, {4, true, "03000000 418001"}} {
		p := Default()
		p.FramePrefix, p.FrameLittleEndian = c.prefix, c.little
		raw := unhex(t, c.hex)
		if got, err := p.AppendFrame(nil, 3); err != nil || !bytes.Equal(got, raw[:c.prefix]) {
			t.Errorf("%s: prefix %x, %v", c.hex, got, err)
		}
		two := append(bytes.Clone(raw), raw...)
		for cut := range two {
			packet, rest, ok, err := p.NextFrame(two[:cut], 3)
			if err != nil || ok != (cut >= len(raw)) ||
				ok && (!bytes.Equal(packet, raw[c.prefix:]) || len(rest) != cut-len(raw)) {
				t.Errorf("%s cut at %d: %x, %x, %v, %v", c.hex, cut, packet, rest, ok, err)
			}
		}
	}
	p := Default()
	p.FramePrefix = 4
	if _, _, _, err := p.NextFrame(unhex(t, "00010000"), MaxFrame); !errors.Is(err, wire.ErrRange) {
		t.Errorf("a frame of 65536 bytes: %v", err)
	}
	p.FramePrefix = 2
	if _, _, _, err := p.NextFrame(unhex(t, "0004"), 3); err == nil ||
		err.Error() != "length at byte 0: value out of range: expected at most 3, found 4" {
		t.Errorf("a frame of 4 bytes where 3 are the most: %v", err)
	}
	for _, n := range []int{-1, MaxFrame + 1} {
		if _, err := p.AppendFrame(nil, n); err == nil {
			t.Errorf("a frame of %d bytes was written", n)
		}
	}
}

// FuzzParse reads any bytes with every kind of profile. It must not panic. The
// fields must lie within the packet, and writing them must produce the same
// bytes.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"531234036162", "419234", "5301020a0000011234c0a801020035016869",
		"418102c0a8010200350a0000011234", "53", "",
	} {
		for kind := range uint8(4) {
			f.Add(kind, unhex(f, s), uint16(0))
			f.Add(kind, unhex(f, s), uint16(100))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte, more uint16) {
		p := Default().In(Form(kind & 1))
		p.LittleEndian = kind&2 != 0
		length := len(b) + int(more)
		var pk, second Packet
		err := p.Parse(b, length, &pk)
		if p.Fits(b, length, &second) != (err == nil) || second != pk {
			t.Fatalf("Parse gives %+v, %v and Fits %+v", pk, err, second)
		}
		next := 0
		p.Walk(b, length, func(f Field, at, size int, value uint64) {
			if at != next || at+size > len(b) || size < 8 && value>>(8*size) != 0 {
				t.Fatalf("%v of %d bytes at %d of %d, after %d: %#x", f, size, at, len(b), next, value)
			}
			next = at + size
		})
		var pe *wire.ParseError
		switch {
		case err == nil:
			if want := p.AckLen(); pk.Ack && (length != want || next != want) {
				t.Fatalf("an acknowledgement of %d bytes", length)
			}
			if !pk.Ack && (pk.PayloadOffset != p.HeaderLen() || pk.PayloadOffset+pk.PayloadLen != length ||
				next != pk.PayloadOffset) {
				t.Fatalf("%d bytes at %d of %d", pk.PayloadLen, pk.PayloadOffset, length)
			}
			var payload []byte
			if !pk.Ack {
				payload = b[pk.PayloadOffset:]
			}
			if again := p.Append(nil, &pk, payload); !bytes.Equal(again, b) {
				t.Fatalf("%x was read as %+v and written as %x", b, pk, again)
			}
		case !errors.As(err, &pe):
			t.Fatalf("an error of another kind: %v", err)
		case errors.Is(err, wire.ErrSnapped) && more == 0:
			t.Fatal("a whole packet is taken for cut")
		case pe.Bit < 0 || pe.Bit > length*8:
			t.Fatalf("%v: at bit %d of %d", err, pe.Bit, length*8)
		}
	})
}

// FuzzFrames cuts any stream. The packets and the rest must add up to the
// stream.
func FuzzFrames(f *testing.F) {
	f.Add(unhex(f, "0003418001000453000100"), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		p := Default()
		p.FramePrefix, p.FrameLittleEndian = 2+int(kind&1)*2, kind&2 != 0
		var again []byte
		for rest := b; ; {
			packet, left, ok, err := p.NextFrame(rest, MaxFrame)
			if !ok {
				if !bytes.Equal(append(again, left...), b) {
					t.Fatalf("%x became %x and %x", b, again, left)
				}
				if err == nil && len(left) > p.FramePrefix+MaxFrame {
					t.Fatalf("%d bytes wait for more", len(left))
				}
				return
			}
			if again, err = p.AppendFrame(again, len(packet)); err != nil {
				t.Fatal(err)
			}
			again, rest = append(again, packet...), left
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, hex string }{
		{"data", "53 1234 03 616263"}, {"ack", "41 9234"}, {"foreign", "00 1234 00"},
	} {
		p, raw := Default(), unhex(b, c.hex)
		b.Run(c.name, func(b *testing.B) {
			var pk Packet
			b.ReportAllocs()
			for b.Loop() {
				p.Fits(raw, len(raw), &pk)
			}
		})
	}
}
