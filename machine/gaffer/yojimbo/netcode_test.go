package yojimbo

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/netcode"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// netcodeScript writes the datagrams of a netcode flow, unencrypted. Plaintext takes
// the place of ciphertext, and the tag is eight zero bytes and a number.
type netcodeScript struct {
	t       testing.TB
	profile *wire.Profile
	at      machine.Instant
	frame   uint64
	flow    []machine.Datagram
	expire  uint64 // of the tokens, in seconds
}

func newNetcodeScript(t testing.TB) *netcodeScript {
	t.Helper()
	p, _, err := wire.Builtin(wire.Netcode)
	if err != nil {
		t.Fatal(err)
	}
	return &netcodeScript{t: t, profile: p, at: machine.Instant(time.Hour), expire: 1 << 40}
}

func (s *netcodeScript) wait(d time.Duration) { s.at = s.at.Add(d) }

func (s *netcodeScript) add(from machine.Side, b []byte) {
	s.frame++
	s.flow = append(s.flow,
		machine.Datagram{At: s.at, Ref: machine.MakeRef(0, s.frame), From: from, Bytes: b, Length: len(b)})
}

func (s *netcodeScript) request(token byte) {
	q := wire.NetcodeRequest{
		ProtocolID: 7, Expire: s.expire, Nonce: bytes.Repeat([]byte{token}, wire.TokenNonceLen),
		Token: make([]byte, wire.TokenLen),
	}
	s.add(machine.A, q.Append(nil))
}

func (s *netcodeScript) send(from machine.Side, kind uint8, counter uint64, plain []byte, tag uint64) {
	pk := wire.Packet{Kind: wire.KindEncrypted, NetcodeType: kind, NetcodeSequence: counter}
	body := append(bytes.Clone(plain), make([]byte, 8)...)
	s.add(from, s.profile.Append(nil, &pk, binary.LittleEndian.AppendUint64(body, tag)))
}

func (s *netcodeScript) payload(from machine.Side, counter uint64) {
	s.send(from, wire.NetcodePayload, counter, []byte{1, 2, 3}, 1000+counter)
}

// run tracks the flow and returns what was reported, by rule.
func (s *netcodeScript) run(tr machine.Tracker) (rules map[string][]machine.Anomaly, out machine.Effects,
	sessions int,
) {
	s.t.Helper()
	rules = map[string][]machine.Anomaly{}
	var step machine.Effects
	keep := func() {
		for _, a := range step.Anomalies {
			rules[a.Rule.ID] = append(rules[a.Rule.ID], a)
		}
		out.Events = append(out.Events, step.Events...)
		out.Messages = append(out.Messages, step.Messages...)
		if step.NewSession {
			sessions++
		}
	}
	for i := range s.flow {
		step.Reset()
		tr.Observe(&s.flow[i], &step)
		keep()
	}
	step.Reset()
	tr.Finish(&step)
	keep()
	return rules, out, sessions
}

func TestNetcodeFindings(t *testing.T) {
	for _, c := range []struct {
		name   string
		script func(s *netcodeScript)
		rule   string // "" if only losses are expected
		figure float64
	}{
		{"nothing", func(s *netcodeScript) {
			s.request(1)
			s.send(machine.B, wire.NetcodeChallenge, 1<<63, make([]byte, 308), 1)
			s.send(machine.A, wire.NetcodeResponse, 1, make([]byte, 308), 2)
			for i := range uint64(40) {
				s.wait(50 * time.Millisecond)
				s.payload(machine.A, 2+i)
				s.payload(machine.B, i)
			}
		}, "", 0},
		{"copy", func(s *netcodeScript) {
			s.payload(machine.A, 2)
			s.wait(30 * time.Millisecond)
			s.payload(machine.A, 2)
		}, "netcode-duplicate", 30},
		{"replay", func(s *netcodeScript) {
			s.payload(machine.A, 2)
			s.wait(3 * time.Second)
			s.payload(machine.A, 2)
		}, "netcode-replay", 3000},
		{"too old", func(s *netcodeScript) {
			s.payload(machine.A, 1000)
			s.payload(machine.A, 1000-256)
			s.payload(machine.A, 1000-255)
		}, "netcode-too-old", 256},
		{"nonce reuse", func(s *netcodeScript) {
			s.payload(machine.A, 9)
			s.send(machine.A, wire.NetcodePayload, 9, []byte{4, 5, 6}, 77)
		}, "netcode-nonce-reuse", 9},
		{"token reuse", func(s *netcodeScript) {
			s.request(1)
			s.send(machine.A, wire.NetcodeResponse, 1, make([]byte, 308), 2)
			s.wait(2 * time.Second)
			s.request(1)
			// its counter starts over, which is no nonce reuse within one connection
			s.send(machine.A, wire.NetcodeResponse, 1, make([]byte, 308), 3)
		}, "netcode-token-reuse", 2000},
		{"a request that was delayed", func(s *netcodeScript) {
			s.request(1)
			s.send(machine.A, wire.NetcodeResponse, 1, make([]byte, 308), 2)
			s.wait(200 * time.Millisecond)
			s.request(1)
		}, "", 0},
		{"denied", func(s *netcodeScript) {
			s.request(1)
			s.wait(40 * time.Millisecond)
			s.send(machine.B, wire.NetcodeDenied, 1<<63, nil, 5)
		}, "netcode-denied", 40},
		{"silence", func(s *netcodeScript) {
			for range 30 {
				s.request(1)
				s.wait(100 * time.Millisecond)
			}
		}, "netcode-no-answer", 30},
		{"timeout", func(s *netcodeScript) {
			s.request(1)
			for i := range uint64(200) {
				s.wait(50 * time.Millisecond)
				s.payload(machine.A, 2+i)
				if i < 60 {
					s.payload(machine.B, i)
				}
			}
		}, "netcode-timeout", 7},
		{"an end with a disconnect", func(s *netcodeScript) {
			s.request(1)
			s.payload(machine.B, 0)
			s.send(machine.B, wire.NetcodeDisconnect, 1, nil, 5)
			for i := range uint64(200) {
				s.wait(50 * time.Millisecond)
				s.payload(machine.A, 2+i)
			}
		}, "", 0},
	} {
		s := newNetcodeScript(t)
		c.script(s)
		rules, _, sessions := s.run(netcode.NewTracker(s.profile, machine.Facts{}))
		delete(rules, "netcode-loss")
		if sessions != 0 {
			t.Errorf("%s: taken for a new session", c.name)
		}
		if c.rule == "" {
			if len(rules) != 0 {
				t.Errorf("%s: reported %v", c.name, rules)
			}
			continue
		}
		if got := rules[c.rule]; len(rules) != 1 || len(got) != 1 || int(got[0].Figures[0]) != int(c.figure) {
			t.Errorf("%s: reported %v, expected %s once with %v", c.name, rules, c.rule, c.figure)
		}
	}
}

// TestNetcodeMissing: counters that never passed are losses. A connection request uses
// one too.
func TestNetcodeMissing(t *testing.T) {
	s := newNetcodeScript(t)
	s.request(1)
	s.send(machine.A, wire.NetcodeResponse, 3, make([]byte, 308), 2) // two more requests were lost
	for _, n := range []uint64{4, 5, 8, 7, 12} {                     // 6, 9, 10, 11 were too
		s.payload(machine.A, n)
	}
	tr := netcode.NewTracker(s.profile, machine.Facts{})
	s.run(tr)
	if got := tr.Summary(machine.B).Missing; got != 6 {
		t.Errorf("%d missing, expected 6", got)
	}
}

// TestNetcodeNewSession: another token begins another connection.
func TestNetcodeNewSession(t *testing.T) {
	s := newNetcodeScript(t)
	s.request(1)
	s.payload(machine.A, 2)
	s.wait(time.Second)
	s.request(2)
	if _, _, sessions := s.run(netcode.NewTracker(s.profile, machine.Facts{})); sessions != 1 {
		t.Errorf("%d new sessions, expected 1", sessions)
	}
}

// plaintextOpener opens the datagrams of a netcodeScript.
type plaintextOpener struct{}

func (plaintextOpener) Request(*machine.Datagram) error { return nil }
func (plaintextOpener) Clone() Opener                   { return plaintextOpener{} }
func (plaintextOpener) Connection() any                 { return nil }
func (plaintextOpener) Open(d *machine.Datagram, pk *wire.Packet) ([]byte, error) {
	if len(d.Bytes) < pk.PayloadOffset+16 {
		return nil, ErrForged
	}
	return d.Bytes[pk.PayloadOffset : len(d.Bytes)-16], nil
}

// fixedBody is bodies that all have one width.
type fixedBody int

func (f fixedBody) Skip(_ uint32, r *bits.Reader) error { return skipBits(r, int(f)) }

func clearYojimbo(t testing.TB, s *netcodeScript, facts machine.Facts) (*Yojimbo, *wire.Yojimbo) {
	t.Helper()
	y := &wire.Yojimbo{Channels: make([]wire.YojimboChannel, 1), MessageTypes: 1, Bodies: fixedBody(8)}
	if err := y.Validate(); err != nil {
		t.Fatal(err)
	}
	reliable, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	return NewTracker(Layers{Netcode: s.profile, Reliable: reliable, Connection: y}, plaintextOpener{}, facts), y
}

// carry sends a packet with messages of the given ids.
func (s *netcodeScript) carry(y *wire.Yojimbo, from machine.Side, n int, h wire.Header, ids ...uint16) {
	p := wire.ConnectionPacket{}
	if len(ids) > 0 {
		p.Entries = []wire.ChannelEntry{{Count: len(ids)}}
	}
	for _, id := range ids {
		p.Messages = append(p.Messages, wire.ConnectionMessage{ID: id, Body: 0, End: 8})
	}
	reliable, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(from, wire.NetcodePayload, uint64(n), y.Append(reliable.AppendHeader(nil, h), &p, []byte{0x5a}), uint64(n)+9)
}

// TestStuckMessage: a message is stuck if no packet carries it while later ones are
// sent. One that was only late is not.
func TestStuckMessage(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := newNetcodeScript(t)
		tr, y := clearYojimbo(t, s, machine.Facts{Vantage: machine.VantageA})
		s.request(1)
		for i := range 60 {
			s.wait(50 * time.Millisecond)
			ids := []uint16{uint16(i)}
			if i == 7 && !late {
				ids = []uint16{6}
			}
			if i > 7 && !late {
				ids = []uint16{uint16(i - 1), uint16(i)}
				if i == 8 {
					ids = ids[1:]
				}
			}
			s.carry(y, machine.A, 1+i, wire.Header{Sequence: uint32(i), Ack: 0xffff}, ids...)
		}
		rules, _, _ := s.run(tr)
		got := rules["stuck-message"]
		if late && len(got) != 0 ||
			!late && (len(got) != 1 || got[0].Figures[0] != 7 || got[0].Certainty != machine.Certain) {
			t.Errorf("late %v: reported %v", late, rules)
		}
	}
}

// TestYojimboOrder: messages arrive with the packets that the peer's headers name. They
// are held behind a missing one, and are acked when the ack is read.
func TestYojimboOrder(t *testing.T) {
	s := newNetcodeScript(t)
	tr, y := clearYojimbo(t, s, machine.Facts{Vantage: machine.VantageA})
	s.request(1)
	s.carry(y, machine.A, 2, wire.Header{Sequence: 0, Ack: 0xffff}, 0)
	s.wait(10 * time.Millisecond)
	s.carry(y, machine.A, 3, wire.Header{Sequence: 1, Ack: 0xffff}, 1) // lost
	s.wait(10 * time.Millisecond)
	s.carry(y, machine.A, 4, wire.Header{Sequence: 2, Ack: 0xffff}, 2)
	s.wait(10 * time.Millisecond)
	s.carry(y, machine.B, 0, wire.Header{Sequence: 0, Ack: 2, AckBits: 5})
	s.wait(90 * time.Millisecond)
	s.carry(y, machine.A, 5, wire.Header{Sequence: 3, Ack: 0, AckBits: 1}, 1)
	s.wait(10 * time.Millisecond)
	s.carry(y, machine.B, 1, wire.Header{Sequence: 1, Ack: 3, AckBits: 11})
	s.wait(10 * time.Millisecond)
	s.carry(y, machine.A, 6, wire.Header{Sequence: 4, Ack: 1, AckBits: 3})
	_, out, _ := s.run(tr)
	if len(out.Messages) != 3 {
		t.Fatalf("%d messages, expected 3: %+v", len(out.Messages), out.Messages)
	}
	for i, want := range []struct {
		attempts  int
		wait      time.Duration
		blockedBy int64
	}{{1, 0, -1}, {2, 0, -1}, {1, 100 * time.Millisecond, 1}} {
		m := &out.Messages[i]
		if m.ID != int64(i) || m.Attempts != want.attempts || m.Wait != want.wait || m.BlockedBy != want.blockedBy ||
			m.Delivered != machine.Yes || m.Acked != machine.Yes {
			t.Errorf("message %d: %+v, expected %+v", i, m, want)
		}
	}
}

// FuzzYojimboTracker: whatever is decrypted, nothing panics and memory stays bounded.
func FuzzYojimboTracker(f *testing.F) {
	s := newNetcodeScript(f)
	_, y := clearYojimbo(f, s, machine.Facts{})
	s.carry(y, machine.A, 2, wire.Header{Sequence: 0, Ack: 0xffff}, 0, 1, 5, 400)
	f.Add(s.flow[0].Bytes[2:len(s.flow[0].Bytes)-16], uint8(3))
	f.Add([]byte{1, 0, 0, 0, 9, 0, 1, 2, 3}, uint8(40))
	f.Fuzz(func(t *testing.T, plain []byte, times uint8) {
		if len(plain) == 0 || len(plain) > 1200 {
			return
		}
		for _, known := range []bool{true, false} {
			s := newNetcodeScript(t)
			tr, _ := clearYojimbo(t, s, machine.Facts{Vantage: machine.VantageB})
			if !known {
				tr.layers.Connection, tr.sample = nil, &Sample{}
			}
			for i := range int(times) {
				b := bytes.Clone(plain)
				b[i%len(b)] += byte(i)
				s.wait(time.Millisecond)
				s.send(machine.Side(i&1), wire.NetcodePayload, uint64(i/2), b, uint64(i))
			}
			s.run(tr)
			tr.Learned()
			var v machine.View
			tr.Inspect(machine.A, &v)
			tr.Inspect(machine.B, &v)
			if n := tr.Size(); n > 16<<20 {
				t.Fatalf("a tracker of %d bytes", n)
			}
			tr.Clone()
		}
	})
}
