package srdp

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/noise"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

func datagram(t testing.TB, s string) *machine.Datagram {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return &machine.Datagram{Bytes: b, Length: len(b)}
}

func profile(t testing.TB, name string) *dissect.Config {
	t.Helper()
	for _, p := range builtin() {
		if p.Name == name {
			return p.Config
		}
	}
	t.Fatalf("no profile %q", name)
	return nil
}

// TestInfo checks the one line of each kind of packet.
func TestInfo(t *testing.T) {
	for _, e := range []struct{ profile, bytes, want string }{
		{"direct", "53 0005 00 616263", "data id 5, 3 bytes"},
		{"direct", "53 7fff 03", "data id 32767 order dont-duplicate, 0 bytes"},
		{"direct", "53 0005 82 61", "data id 5 order flags 0x80, 1 bytes"},
		{"direct", "41 8005", "ack id 5"},
		{"direct", "53 8005", "ack id 5 command 0x53"},
		{"direct", "41 0005 00", "data id 5 command 0x41, 0 bytes"},
		{"direct", "80 6012", "foreign, 3 bytes"},
		{"direct", "53 00", "malformed: packet_id at byte 1: packet ends before the field does: expected at least 3 bytes, " +
			"found 2"},
		{
			"direct", "41 8005 00",
			"malformed: packet_id at byte 3: bytes are left after the last field: expected 3 bytes, found 4",
		},
		{"direct-le", "53 0500 01 61", "data id 5 dont-duplicate, 1 bytes"},
		{"direct-le", "41 0580", "ack id 5"},
		{"proxied", "53 0005 0a000001 1770 c0000202 270f 02 6162", "data id 5 10.0.0.1:6000→192.0.2.2:9999 order, 2 bytes"},
		{"proxied", "41 8005 c0000202 270f 0a000001 1770", "ack id 5 192.0.2.2:9999→10.0.0.1:6000"},
		{"proxied-le", "41 0580 c0000202 0f27 0a000001 7017", "ack id 5 192.0.2.2:9999→10.0.0.1:6000"},
	} {
		if got := string(Info(dissect.Context{Config: profile(t, e.profile)}, datagram(t, e.bytes), nil)); got != e.want {
			t.Errorf("%s %s:\n got %q\nwant %q", e.profile, e.bytes, got, e.want)
		}
	}
}

// TestFields checks every field of a packet, with its place.
func TestFields(t *testing.T) {
	show := func(profileName, bytes string) string {
		var d dissect.Dissection
		Dissect(dissect.Context{Config: profile(t, profileName)}, datagram(t, bytes), &d)
		var b strings.Builder
		for _, f := range d.Fields {
			b.WriteString(strings.TrimPrefix(f.Spec.Name, "srdp."))
			b.WriteString("@" + string(rune('0'+f.Bit/8/10)) + string(rune('0'+f.Bit/8%10)) + " ")
		}
		return strings.TrimSpace(b.String())
	}
	for _, e := range []struct{ profile, bytes, want string }{
		{"direct", "53 0005 82 61", "srdp@00 command@00 ack@01 packet_id@01 flags@03 flags.dont_duplicate@03 " +
			"flags.order@03 flags.unknown@03 payload@04"},
		{"direct", "41 8005", "srdp@00 command@00 ack@01 packet_id@01"},
		{"direct-le", "41 0580", "srdp@00 command@00 ack@02 packet_id@01"},
		{"direct", "53 8005", "srdp@00 command@00 ack@01 packet_id@01 oddity@00"},
		{"direct", "80 6012", "srdp@00 foreign@00"},
		{
			"proxied", "53 0005 0a000001 1770 c0000202 270f 02 6162",
			"srdp@00 command@00 ack@01 packet_id@01 source.addr@03 source.port@07 destination.addr@09 destination.port@13 " +
				"flags@15 flags.dont_duplicate@15 flags.order@15 payload@16",
		},
		{"proxied", "53 0005 0a000001 17", "srdp@00 command@00 ack@01 packet_id@01 source.addr@03"},
		{
			"direct", "53 0005 00" + strings.Repeat("00", 544),
			"srdp@00 command@00 ack@01 packet_id@01 flags@03 flags.dont_duplicate@03 flags.order@03 payload@04",
		},
		{
			"direct", "53 0005 00" + strings.Repeat("00", 545),
			"srdp@00 command@00 ack@01 packet_id@01 flags@03 flags.dont_duplicate@03 flags.order@03 payload@04 oddity@00",
		},
	} {
		if got := show(e.profile, e.bytes); got != e.want {
			t.Errorf("%s %.60s:\n got %s\nwant %s", e.profile, e.bytes, got, e.want)
		}
	}
}

// TestForeignIsNoFault checks that foreign datagrams are shown and are not
// malformed.
func TestForeignIsNoFault(t *testing.T) {
	var d dissect.Dissection
	Dissect(dissect.Context{Config: profile(t, "direct")}, datagram(t, "800102"), &d)
	if d.Problem != nil {
		t.Errorf("a foreign datagram is malformed: %v", d.Problem)
	}
	d.Reset()
	Dissect(dissect.Context{Config: profile(t, "direct")}, datagram(t, "5301"), &d)
	if d.Problem == nil {
		t.Error("half a header is not malformed")
	}
	d.Reset()
	cut := datagram(t, "5301")
	cut.Length = 100
	if Dissect(dissect.Context{Config: profile(t, "direct")}, cut, &d); d.Problem != nil || !d.Snapped {
		t.Errorf("cut by the snap length: problem %v, snapped %v", d.Problem, d.Snapped)
	}
}

// exchange returns the datagrams of a conversation: A's data and B's answers,
// with foreign datagrams between them. Every tenth answer is lost.
func exchange(p wire.Profile, n, foreign int, r *rand.Rand) (out []machine.Datagram) {
	from := wire.Packet{
		Command: p.DataCommand, Source: wire.Address{IP: [4]byte{10, 0, 0, 1}, Port: 6000},
		Destination: wire.Address{IP: [4]byte{10, 0, 0, 2}, Port: 6000},
	}
	add := func(side machine.Side, b []byte) {
		out = append(out, machine.Datagram{From: side, Bytes: b, Length: len(b)})
	}
	for i := range n {
		from.ID = uint16(32760+i) &^ wire.AckMark
		payload := make([]byte, 5+r.IntN(40))
		add(machine.A, p.Append(nil, &from, payload))
		if i%10 != 3 {
			ack := p.AckOf(&from)
			add(machine.B, p.Append(nil, &ack, nil))
		}
		for range foreign {
			b := make([]byte, 1+r.IntN(100))
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			add(machine.Side(r.IntN(2)), b)
		}
	}
	return out
}

func verdict(flow []machine.Datagram) dissect.Verdict {
	c := Protocol.Classify()
	for i := range flow {
		c.Feed(&flow[i])
	}
	return c.Verdict()
}

// TestClassify checks that each form is recognised, on a port of its own and on
// a shared one. A single answered packet is enough.
func TestClassify(t *testing.T) {
	for _, p := range builtin() {
		for _, foreign := range []int{0, 1, 5} {
			for _, n := range []int{1, 3, 30} {
				flow := exchange(settingsOf(p.Config).Wire, n, foreign, rand.New(rand.NewPCG(uint64(n), uint64(foreign))))
				v := verdict(flow)
				// One or two ids can parse in both byte orders.
				if v.Config == nil || v.Config.Dialect != p.Name && n > 3 || !strings.HasPrefix(v.Config.Dialect, p.Name[:6]) {
					t.Errorf("%s, %d packets, %d foreign each: %+v", p.Name, n, foreign, v)
				}
			}
		}
	}
}

// TestAcknowledgementsAreAskedFor checks that the classifier refuses data
// alone, acknowledgements alone, and acknowledgements that answer nothing.
func TestAcknowledgementsAreAskedFor(t *testing.T) {
	flow := exchange(wire.Default(), 100, 0, rand.New(rand.NewPCG(1, 1)))
	var halves [2][]machine.Datagram
	for _, d := range flow {
		halves[d.From] = append(halves[d.From], d)
	}
	for _, half := range halves {
		if v := verdict(half); v.Config != nil || v.Reason == "" {
			t.Errorf("half of a conversation is claimed: %+v", v)
		}
	}
	astray := append([]machine.Datagram(nil), flow...)
	for i := range astray {
		if b := astray[i].Bytes; len(b) == 3 {
			astray[i].Bytes = []byte{b[0], b[1], b[2] ^ 0x55}
		}
	}
	if v := verdict(astray[:20]); v.Config != nil {
		t.Errorf("acknowledgements of nothing are believed: %+v", v)
	}
}

// TestNoise checks that the classifier never accepts what other protocols send.
func TestNoise(t *testing.T) {
	for name, protocol := range noise.Protocols {
		for seed := range uint64(40) {
			for _, every := range []int{2, 1000, 20} {
				next := protocol(rand.New(rand.NewPCG(seed, 7)))
				c := Protocol.Classify()
				for i := range 128 {
					side := machine.Side(i % 2)
					if every > 2 && i%every != 0 {
						side = machine.A
					}
					b := next(i, side)
					c.Feed(&machine.Datagram{From: side, Bytes: b, Length: len(b)})
				}
				if v := c.Verdict(); v.Config != nil || v.Reason == "" {
					t.Errorf("%s, seed %d: %+v", name, seed, v)
				}
			}
		}
	}
}

// TestDissectAllocatesNothing also checks the classifier.
func TestDissectAllocatesNothing(t *testing.T) {
	flow := exchange(wire.Default().In(wire.Proxied), 50, 1, rand.New(rand.NewPCG(1, 1)))
	var d dissect.Dissection
	ctx := dissect.Context{Config: profile(t, "proxied")}
	c := Protocol.Classify()
	line := make([]byte, 0, 200)
	for _, do := range []struct {
		what string
		do   func()
	}{
		{"Dissect", func() {
			for i := range flow {
				d.Reset()
				Dissect(ctx, &flow[i], &d)
			}
		}},
		{"Info", func() { line = Info(ctx, &flow[0], line[:0]) }},
		{"Feed", func() {
			c.Reset()
			for i := range flow {
				c.Feed(&flow[i])
			}
			c.Sure()
		}},
	} {
		do.do()
		if n := testing.AllocsPerRun(20, do.do); n != 0 {
			t.Errorf("%s allocates %v times", do.what, n)
		}
	}
}
