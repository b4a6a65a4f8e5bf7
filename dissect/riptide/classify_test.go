package riptide

import (
	"encoding/binary"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

var riptideRuns = []string{"u2", "t2", "upy", "tpy"}

var gafferRuns = []string{"article-", "crc32-", "linktype-", "oldreliable-", "plain-", "reliable-", "yojimbo-"}

func classify(datagrams []machine.Datagram) dissect.Verdict {
	c := newClassifier(nil)
	for i := range datagrams {
		c.Feed(&datagrams[i])
	}
	return c.Verdict()
}

// TestCaptures finds dialect and versions in every capture, without any settings. It does so by the
// whole flow, and by the first 64 datagrams, after which the analyzer decides.
func TestCaptures(t *testing.T) {
	dialects := map[string]*wire.Dialect{
		"u200": wire.V20, "t200": wire.V20, "u21d": wire.DevD, "t21d": wire.DevD,
		"u21n": wire.DevN, "t21n": wire.DevN, "upy200": wire.V20, "tpy200": wire.V20,
	}
	for _, path := range captures(t, riptideRuns...) {
		tr := truthOf(t, path)
		prefix, _, _ := strings.Cut(runOf(path), "_")
		dialect := dialects[prefix]
		if dialect == nil {
			dialect = wire.V21
		}
		flows := flowsOf(t, path)
		if len(flows) == 0 {
			t.Errorf("%s: no flow", path)
		}
		for _, f := range flows {
			for _, n := range []int{len(f.datagrams), min(64, len(f.datagrams))} {
				v := classify(f.datagrams[:n])
				if v.Config == nil || v.Config.Dialect != dialect.Name {
					t.Errorf("%s %v: by %d datagrams not %s: %s", filepath.Base(path), f.addrs, n, dialect.Name, v.Reason)
					continue
				}
				if v.Bits < claimBits || v.Confidence <= 0 || v.Confidence > 1 || v.Reason == "" {
					t.Errorf("%s: %+v", filepath.Base(path), v)
				}
				checkVersions(t, path, tr, f, f.datagrams[:n], v)
			}
		}
	}
}

// checkVersions compares each sender's builds with the log. The true build is never excluded. If
// the sender acked or welcomed, it has shown what it can show. Then no other builds are left but
// those that its packets cannot exclude.
func checkVersions(t *testing.T, path string, tr *truth, f *flow, datagrams []machine.Datagram, v dissect.Verdict) {
	t.Helper()
	s := v.Config.Profile.(*Settings)
	for side := range f.addrs {
		endpoint := tr.endpoint(f.addrs[side])
		version := tr.version[endpoint]
		if version == "" {
			// No server runs in the noserver captures. Otherwise the log does not name the forwarder's port.
			if !strings.Contains(path, "noserver") && f.conn == nil {
				t.Errorf("%s: who is %v?", filepath.Base(path), f.addrs[side])
			}
			continue
		}
		name, narrow := wantBuilds(version)
		build, ok := wire.LookupBuild(name)
		if !ok {
			t.Fatalf("no build %q", name)
		}
		got := s.Senders[side].Builds
		if !got.Has(build) {
			t.Errorf("%s %s is %s, reported after %d datagrams as %s", filepath.Base(path), endpoint, version,
				len(datagrams), got)
		}
		if shows(datagrams, machine.Side(side), s.Senders[side].Codec) && !slices.Contains(narrow, got.String()) {
			t.Errorf("%s %s is %s, reported after %d datagrams as %s only", filepath.Base(path), endpoint, version,
				len(datagrams), got)
		}
	}
}

// shows reports whether a sender has sent what distinguishes versions.
func shows(datagrams []machine.Datagram, side machine.Side, c wire.Codec) bool {
	acked, welcomed, beats, users := false, false, 0, 0
	for _, d := range datagrams {
		var m wire.Message
		if d.From != side || c.Parse(d.Bytes, d.Length, &m) != nil {
			continue
		}
		switch {
		case m.Type == wire.Ack:
			acked = acked || !m.Flag
		case m.Type == wire.Welcome:
			welcomed = true
		case m.Type == wire.Heartbeat && m.HasRTT:
			beats++
		case m.Type == wire.Reliable:
			users++
		}
	}
	if c.Dialect == wire.V20 {
		return welcomed && users >= 4
	}
	return acked && welcomed
}

// TestTransport finds the length prefix of every TCP capture.
func TestTransport(t *testing.T) {
	for _, path := range captures(t, "t2", "tpy") {
		want := 4
		if p := runOf(path); strings.HasPrefix(p, "t200") || strings.HasPrefix(p, "t21d") || strings.HasPrefix(p, "tpy200") {
			want = 2
		}
		for _, f := range flowsOf(t, path) {
			if f.conn == nil || f.conn.Format() == nil || f.conn.Format().Prefix != want || f.conn.Format().BigEndian {
				t.Errorf("%s: framing %+v, want %d bytes", filepath.Base(path), f.conn.Format(), want)
				continue
			}
			for side := range 2 {
				n := f.conn.Counts(machine.Side(side))
				if limit := map[bool]uint64{true: 1300, false: 0}[strings.Contains(path, "midstream")]; n.Unframed > limit ||
					n.Gaps > 0 {
					t.Errorf("%s: %+v", filepath.Base(path), n)
				}
			}
		}
	}
}

// TestGafferIsNotClaimed: no flow of the other protocol's captures is Riptide's.
func TestGafferIsNotClaimed(t *testing.T) {
	for _, path := range captures(t, gafferRuns...) {
		for _, f := range flowsOf(t, path) {
			for _, n := range []int{4, 8, 12, 16, 32, 48, 64, len(f.datagrams)} {
				if v := classify(f.datagrams[:min(n, len(f.datagrams))]); v.Config != nil {
					t.Errorf("%s, %d datagrams: taken for Riptide: %s", filepath.Base(path), n, v.Reason)
				} else if v.Reason == "" {
					t.Errorf("%s: no reason", filepath.Base(path))
				}
			}
		}
	}
}

// exchange makes datagrams of two sides that alternate, 20 ms apart.
func exchange(n int, from func(i int) machine.Side, make func(i int) []byte) (out []machine.Datagram) {
	for i := range n {
		b := make(i)
		out = append(out,
			machine.Datagram{
				At: machine.Instant(time.Duration(i) * 20 * time.Millisecond), Ref: machine.MakeRef(0, uint64(i)+1),
				From: from(i), Bytes: b, Length: len(b),
			})
	}
	return out
}

func turns(i int) machine.Side { return machine.Side(i & 1) }

// TestNoiseIsNotClaimed classifies traffic of other shapes: random bytes, counters after small type
// bytes, acks of another kind, periodic pings.
func TestNoiseIsNotClaimed(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	random := func(n int) []byte {
		b := make([]byte, n)
		rng.Read(b)
		return b
	}
	counter := func(first byte, order binary.ByteOrder) func(i int) []byte {
		return func(i int) []byte {
			b := append([]byte{first}, random(20)...)
			order.PutUint16(b[1:], uint16(i/2))
			return b
		}
	}
	for name, make := range map[string]func(i int) []byte{
		"random":          func(int) []byte { return random(1 + rng.Intn(200)) },
		"random, short":   func(int) []byte { return random(1 + rng.Intn(8)) },
		"random, small":   func(int) []byte { return append([]byte{byte(rng.Intn(11))}, random(rng.Intn(30))...) },
		"zeros":           func(int) []byte { return []byte{0, 0, 0, 0, 0, 0} },
		"constant":        func(int) []byte { return []byte{7, 1, 0, 2, 0, 9, 9} },
		"ping byte":       func(int) []byte { return []byte{2} },
		"counter type 0":  counter(0, binary.LittleEndian),
		"counter type 7":  counter(7, binary.LittleEndian),
		"counter type 6":  counter(6, binary.BigEndian),
		"counter type 39": counter(0x27, binary.LittleEndian),
		"query": func(i int) []byte {
			return append(binary.BigEndian.AppendUint16(nil, uint16(i/2*7919)), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'w', 'w', 'w')
		},
		"media": func(i int) []byte {
			b := append([]byte{0x80, 96}, random(160)...)
			binary.BigEndian.PutUint16(b[2:], uint16(i/2))
			binary.BigEndian.PutUint32(b[4:], uint32(i/2*160))
			return b
		},
		"commands": func(i int) []byte { // command, channel, sequence, as in ENet
			b := append([]byte{0x80, 0, byte(i), byte(i >> 8)}, random(24)...)
			b[4] = []byte{0x86, 1}[i/2&1]
			binary.BigEndian.PutUint16(b[6:], uint16(i/4))
			return b
		},
	} {
		for _, n := range []int{4, 16, 64, 400} {
			for side, from := range map[string]func(int) machine.Side{
				"both ways": turns,
				"one way":   func(int) machine.Side { return machine.A },
			} {
				if v := classify(exchange(n, from, make)); v.Config != nil {
					t.Errorf("%s %s, %d datagrams: taken for Riptide: %s", name, side, n, v.Reason)
				}
			}
		}
	}
	if v := newClassifier(nil).Verdict(); v.Config != nil || v.Reason == "" {
		t.Errorf("nothing fed: %+v", v)
	}
}

// session writes a session of any dialect with the encoder, as the dialect's document describes it.
// It has Connect, Welcome, reliable messages and acks, notify messages, and heartbeats each second.
func session(t testing.TB, c wire.Codec) (out []machine.Datagram) {
	t.Helper()
	return sessionOf(t, [2]wire.Codec{c, c})
}

// sessionOf writes each side's packets with its own codec.
func sessionOf(t testing.TB, codecs [2]wire.Codec) (out []machine.Datagram) {
	t.Helper()
	at := machine.Instant(0)
	send := func(from machine.Side, m wire.Message, body ...byte) {
		b, err := codecs[from].Append(nil, &m, body, len(body)*8)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(15 * time.Millisecond)
		out = append(out, machine.Datagram{
			At: at, Ref: machine.MakeRef(0, uint64(len(out))+1), From: from, Bytes: b,
			Length: len(b),
		})
	}
	send(machine.A, wire.Message{Type: wire.Connect}, 3, 'b', 'o', 'b')
	send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
	send(machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
	send(machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
	send(machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
	for second := range 6 {
		beat := at
		for i := range uint16(4) {
			seq := 2 + uint16(second)*4 + i
			send(machine.A, wire.Message{Type: wire.Reliable, Sequence: seq, MessageID: 300 + i%2}, 1, 2, 3, 4)
			send(machine.B, wire.Message{Type: wire.Ack, Last: seq, AckBits: 0xffff, Cause: seq})
			send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 9}, 5, 6)
			if _, has := codecs[machine.A].Dialect.Value(wire.Notify); has {
				send(machine.A, wire.Message{Type: wire.Notify, Sequence: seq - 1, MessageID: 4}, 7, 7, 7, byte(seq))
			}
		}
		at = beat.Add(time.Second - 15*time.Millisecond)
		send(machine.A, wire.Message{Type: wire.Heartbeat, Ping: uint8(second), RTT: int16(20 - second), HasRTT: true})
		send(machine.B,
			wire.Message{Type: wire.Heartbeat, Ping: uint8(second), RTT: 31, HasRTT: codecs[machine.B].Dialect.RTTBothWays})
		at = at.Add(-15 * time.Millisecond)
	}
	send(machine.B, wire.Message{Type: wire.Disconnect, Reason: 5, HasReason: true})
	return out
}

// TestEncodedSessions finds every dialect in what the encoder writes, in either byte order. The
// notes' own dialect is among them.
func TestEncodedSessions(t *testing.T) {
	for _, c := range hypotheses {
		want := config(both(Sender{Codec: c})).Dialect
		datagrams := session(t, c)
		v := classify(datagrams)
		if v.Config == nil || v.Config.Dialect != want {
			t.Errorf("%s: %+v %s", want, v.Config, v.Reason)
			continue
		}
		if !v.Settled || v.Confidence < 0.99 {
			t.Errorf("%s: %+v", want, v)
		}
	}
}

// TestEachSender has two cases. In one, a client written from the notes talks to a server of the
// library's source builds, which have the same headers. In the other, no single dialect reads both
// ends.
func TestEachSender(t *testing.T) {
	notes, devN, v21, v20 := wire.Codec{Dialect: wire.Notes}, wire.Codec{Dialect: wire.DevN},
		wire.Codec{Dialect: wire.V21}, wire.Codec{Dialect: wire.V20}
	check := func(name string, datagrams []machine.Datagram, a, b *wire.Dialect) {
		v := classify(datagrams)
		if v.Config == nil {
			t.Errorf("%s: %s", name, v.Reason)
			return
		}
		s := v.Config.Profile.(*Settings)
		if s.Senders[machine.A].Codec.Dialect != a || s.Senders[machine.B].Codec.Dialect != b ||
			v.Config.Dialect != a.Name+"|"+b.Name {
			t.Errorf("%s: found %s: %s", name, v.Config.Dialect, v.Reason)
		}
	}
	check("notes at dev-n", sessionOf(t, [2]wire.Codec{notes, devN}), wire.Notes, wire.DevN)
	var apart []machine.Datagram
	for _, d := range session(t, v21) {
		if d.From == machine.A {
			apart = append(apart, d)
		}
	}
	for _, d := range session(t, v20) {
		if d.From == machine.A {
			d.From = machine.B
			apart = append(apart, d)
		}
	}
	slices.SortStableFunc(apart, func(x, y machine.Datagram) int { return int(x.At - y.At) })
	check("2.1 and 2.0", apart, wire.V21, wire.V20)
}

// TestNotesNotify distinguishes the two forms of Notify in the notes' dialect.
func TestNotesNotify(t *testing.T) {
	for _, header := range []bool{false, true} {
		c := wire.Codec{Dialect: wire.Notes, NotifyHeader: header}
		v := classify(session(t, c))
		if v.Config == nil || v.Config.Dialect != "notes" ||
			v.Config.Profile.(*Settings).Senders[machine.A].Codec.NotifyHeader != header {
			t.Errorf("with header %v: %+v, %s", header, v.Config, v.Reason)
		}
	}
}

// TestJoinedAnywhere classifies 64 and 128 datagrams from any place of every capture. Nearly all
// windows show the dialect. The rest are bursts and outages without an ack or a heartbeat. A wrong
// result must report its doubt.
func TestJoinedAnywhere(t *testing.T) {
	total, none, wrong := 0, 0, 0
	for _, path := range captures(t, riptideRuns...) {
		for _, f := range flowsOf(t, path) {
			whole := classify(f.datagrams)
			for at := 40; at+128 <= len(f.datagrams); at += 97 {
				for _, n := range []int{64, 128} {
					total++
					v := classify(f.datagrams[at : at+n])
					switch {
					case v.Config == nil:
						none++
					case v.Config.Dialect != whole.Config.Dialect:
						if wrong++; v.Confidence > 0.5 || !strings.Contains(v.Reason, "nothing seen so far tells it from") {
							t.Errorf("%s, %d datagrams from %d on: %s", filepath.Base(path), n, at, v.Reason)
						}
					}
				}
			}
		}
	}
	t.Logf("%d windows, %d not explained, %d wrong and said to be unsure", total, none, wrong)
	if none*40 > total || wrong*500 > total {
		t.Errorf("%d windows, %d not explained, %d wrong", total, none, wrong)
	}
}

func BenchmarkClassify(b *testing.B) {
	flows := flowsOf(b, filepath.Join(pcaps, "u210_clean.client.pcap.gz"))
	c := newClassifier(nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Feed(&flows[0].datagrams[i%64])
	}
}
