package riptide

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

func datagram(t testing.TB, s string) *machine.Datagram {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return &machine.Datagram{Bytes: b, Length: len(b)}
}

func contextOf(c wire.Codec) dissect.Context {
	return dissect.Context{Config: config(both(Sender{Codec: c, Builds: wire.BuildsOf(c.Dialect)}))}
}

// TestInfo checks the one line of each kind of packet.
func TestInfo(t *testing.T) {
	for _, e := range []struct {
		dialect *wire.Dialect
		bytes   string
		want    string
	}{
		{wire.V21, "5210c6963656760000", "Connect, 8 bytes"},
		{wire.V21, "02", "Connect"},
		{wire.V21, "1800100000", "Welcome seq 1 client 1"},
		{wire.V21, "21003000300000", "Ack last 2 bits 0x0003 answers 1"},
		{wire.V21, "11001000200000", "Ack last 1 bits 0x0001"},
		{wire.V21, "04f0ff0f", "Heartbeat ping 0 rtt -1 ms"},
		{wire.V21, "1400", "Heartbeat ping 1"},
		{wire.V21, "2300", "Reject ServerFull"},
		{wire.V20, "0403", "Reject ServerFull"},
		{wire.V21, "9300", "Reject reason 9"},
		{wire.V21, "0505", "Disconnect ServerStopped (written as a whole byte)"},
		{wire.V21, "05", "Disconnect"},
		{wire.V21, "37001000", "Reliable seq 3 id 1"},
		{wire.V21, "0702001810610f", "Reliable seq 32 id 128, 2 bytes"},
		{wire.V21, "260030300000", "Notify seq 3 last 2 bits 0x03"},
		{wire.Notes, "060300ff", "Notify id 3, 1 byte"},
		{wire.DevD, "060200000080", "Reliable seq 2 id 0, 1 byte"},
		{wire.V20, "022c00ffff2b00", "AckExtra last 44 bits 0xffff answers 43"},
		{wire.V21, "0b", "malformed: type at byte 0: value out of range: expected 0 to 10, found 11"},
		{wire.V21, "141002", "Heartbeat ping 1, Heartbeat at byte 1 bit 4: bytes are left after the last field: expected 2 " +
			"bytes, found 3"},
	} {
		if got := string(Info(contextOf(wire.Codec{Dialect: e.dialect}), datagram(t, e.bytes), nil)); got != e.want {
			t.Errorf("%s %s:\n got %q\nwant %q", e.dialect.Name, e.bytes, got, e.want)
		}
	}
	d := datagram(t, "3700")
	d.Length = 100
	if got := string(Info(contextOf(wire.Codec{Dialect: wire.V21}), d, nil)); !strings.HasPrefix(got,
		"cut by the capture's snap length") {
		t.Errorf("snapped: %q", got)
	}
}

// TestDissectExample checks every field of one packet and its place.
func TestDissectExample(t *testing.T) {
	var d dissect.Dissection
	Dissect(contextOf(wire.Codec{Dialect: wire.V21}), datagram(t, "47002030041000c07812"), &d)
	type field struct {
		name      string
		bit, bits uint32
		value     uint64
	}
	want := []field{
		{"riptide", 0, 80, 0},
		{"riptide.type", 0, 4, 7},
		{"riptide.sequence", 4, 16, 4},
		{"riptide.message_id", 20, 8, 2},
		{"riptide.payload", 28, 52, 0},
	}
	if len(d.Fields) != len(want) {
		t.Fatalf("%d fields, want %d: %+v", len(d.Fields), len(want), d.Fields)
	}
	for i, w := range want {
		f := d.Fields[i]
		if got := (field{f.Spec.Name, f.Bit, f.Bits, f.Uint}); got != w {
			t.Errorf("field %d: %+v, want %+v", i, got, w)
		}
	}
	if got := d.Fields[4].Bytes[:2]; !bytes.Equal(got, []byte{67, 0}) { // byte 67, sbyte 0
		t.Errorf("payload begins with %x", got)
	}
}

// TestDissectCaptures dissects every message of every capture. There is no problem, and the fields
// cover the message without gaps.
func TestDissectCaptures(t *testing.T) {
	var d dissect.Dissection
	known := map[*dissect.FieldSpec]bool{}
	for _, f := range allFields {
		known[f] = true
	}
	n := 0
	for _, path := range captures(t, riptideRuns...) {
		for _, f := range flowsOf(t, path) {
			v := classify(f.datagrams)
			if v.Config == nil {
				t.Fatalf("%s: %s", path, v.Reason)
			}
			for i := range f.datagrams {
				dg := &f.datagrams[i]
				d.Reset()
				Dissect(dissect.Context{Config: v.Config, From: dg.From}, dg, &d)
				if d.Problem != nil || d.Snapped {
					t.Errorf("%s frame %d: %v", filepath.Base(path), dg.Ref.Frame(), d.Problem)
				}
				at := uint32(0)
				for _, field := range d.Fields[1:] {
					if !known[field.Spec] {
						t.Fatalf("field %s is not listed", field.Spec.Name)
					}
					if field.Bits == 0 {
						continue
					}
					if field.Bit != at {
						t.Errorf("%s frame %d: %s at bit %d, want %d", filepath.Base(path), dg.Ref.Frame(), field.Spec.Name,
							field.Bit, at)
					}
					at += field.Bits
				}
				if at != uint32(dg.Length)*8 {
					t.Errorf("%s frame %d: fields cover %d of %d bits", filepath.Base(path), dg.Ref.Frame(), at, dg.Length*8)
				}
				n++
			}
		}
	}
	t.Logf("%d messages", n)
}

func TestProfiles(t *testing.T) {
	names := map[string]bool{}
	for i, p := range Protocol.Profiles {
		if names[p.Name] || p.Doc == "" || p.Config == nil {
			t.Errorf("%+v", p)
		}
		names[p.Name] = true
		if i == 0 && p.Name != "2.1" {
			t.Errorf("the first profile is %s", p.Name)
		}
	}
	for _, want := range []string{
		"notes", "2.0", "2.1-dev-d", "2.1-dev-n", "2.1", "notes-be", "2.2.1",
		"pytide-2.1.0-alpha",
	} {
		if !names[want] {
			t.Errorf("no profile %s", want)
		}
	}
	names = map[string]bool{}
	for _, f := range Protocol.Fields {
		if names[f.Name] || f.Doc == "" || f.Label == "" {
			t.Errorf("field %+v", f)
		}
		names[f.Name] = true
	}
}

// FuzzDissect dissects arbitrary bytes in every dialect.
func FuzzDissect(f *testing.F) {
	for _, s := range []string{"47002030041000c07812", "0403", "1400", "21003000300000", "0b", ""} {
		f.Add(datagram(f, s).Bytes, uint8(0), uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, which, cut uint8) {
		ctx := contextOf(hypotheses[int(which)%len(hypotheses)])
		dg := &machine.Datagram{Bytes: b, Length: len(b) + int(cut)}
		var d dissect.Dissection
		Dissect(ctx, dg, &d)
		Info(ctx, dg, nil)
		for _, field := range d.Fields {
			if uint64(field.Bit)+uint64(field.Bits) > uint64(dg.Length)*8 {
				t.Fatalf("%s lies behind the end: %+v", field.Spec.Name, field)
			}
		}
		c := newClassifier(nil)
		for i := range 3 {
			dg.From = machine.Side(i & 1)
			c.Feed(dg)
		}
		c.Verdict()
		for _, framing := range framings {
			if len(b) > 0 {
				framing.Weigh(b, dg.Length)
			}
		}
	})
}

func BenchmarkDissect(b *testing.B) {
	flows := flowsOf(b, filepath.Join(pcaps, "u210_clean.client.pcap.gz"))
	ctx := contextOf(wire.Codec{Dialect: wire.V21})
	var d dissect.Dissection
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Reset()
		Dissect(ctx, &flows[0].datagrams[i%len(flows[0].datagrams)], &d)
	}
}
