package endpoint_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/machine/riptide/riptidetest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestReliableArrives runs every version over a network that loses, duplicates and reorders. Each
// reliable message is delivered exactly once and acked, apart from the known faults of the
// versions.
func TestReliableArrives(t *testing.T) {
	for _, v := range riptide.Versions {
		for _, stream := range []bool{false, true} {
			name := v.Name
			if stream {
				name += " tcp"
			}
			t.Run(name, func(t *testing.T) {
				s := &riptidetest.Setting{
					Version: v.Name, Stream: stream, Ask: true, Duration: 8 * time.Second, Rate: 0.1,
					Limits: endpoint.Limits{Off: true},
					Path:   sim.Path{Delay: 20 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: 0.1, Duplicate: 0.05},
				}
				pytide := v.Behaviour.Limit == 0
				if pytide {
					s.Path.Loss = 0
				}
				l := riptidetest.New(t, 11, s)
				l.Run(t, s.Duration+2*time.Second)
				client := l.Clients[0]
				for _, pair := range [][2]*sim.Host{{client, l.Server}, {l.Server, client}} {
					from, to := pair[0], pair[1]
					if !from.Endpoint().(*endpoint.Endpoint).Connected(0) {
						t.Fatalf("%s is not connected", from.Name)
					}
					sent, acked, got := l.Count(from, machine.EventSent, riptide.ChannelReliable),
						l.Count(from, machine.EventAcked, riptide.ChannelReliable), l.Got[to][riptide.ChannelReliable]
					if sent < 50 {
						t.Fatalf("%s sent %d messages: nothing would be tested", from.Name, sent)
					}
					if v.Build.OneSequence {
						continue // only the first message is delivered, or each one twice
					}
					// The notes' Ack does not name what it answers. So a late message is acked only after 16 newer
					// ones have come.
					open := 0
					if v.Build.Dialect == wire.Notes {
						open = 16
					}
					lost := l.Count(from, machine.EventLost, riptide.ChannelReliable) // given up after 15 sends
					if got != sent || acked+lost > sent || acked+lost < sent-open || lost > 0 && v.Behaviour.DropsConnection {
						t.Errorf("%s sent %d reliable messages, %d were acked, %d given up, %d handed over", from.Name, sent,
							acked, lost, got)
					}
				}
			})
		}
	}
}

// TestEndpointLaws checks the laws of endpoints for clients and servers of every version and
// transport.
func TestEndpointLaws(t *testing.T) {
	for _, v := range riptide.Versions {
		for _, stream := range []bool{false, true} {
			if testing.Short() && (stream || v.Build.Dialect != wire.V20 && v.Name != "2.1.0") {
				continue
			}
			name := v.Name
			if stream {
				name += " tcp"
			}
			s := &riptidetest.Setting{
				Version: v.Name, Stream: stream, Ask: true, Clients: 3, Slots: 2, Duration: 3 * time.Second, Rate: 0.06,
				Leave: true, Stop: true,
				Relay: []uint16{50, 51, 52, 53, 54},
				Path:  sim.Path{Delay: 15 * time.Millisecond, Jitter: 9 * time.Millisecond, Loss: 0.1, Duplicate: 0.05},
			}
			l := riptidetest.New(t, 5, s)
			l.Run(t, s.Duration+time.Second)
			for _, h := range []*sim.Host{l.Server, l.Clients[0]} {
				var script []machinetest.Timed
				for _, e := range l.Journal.Entries {
					if e.Host == h.Index {
						script = append(script, machinetest.Timed{At: e.At, In: e.In})
					}
				}
				t.Run(name+" "+h.Name, func(t *testing.T) {
					machinetest.Endpoint(t, func() machine.Endpoint { return riptidetest.NewEndpoint(t, s, h == l.Server) }, script)
				})
			}
		}
	}
}

// TestEveryone: a server's message to everyone goes to each of its clients once, with that client's
// sequence. Release 2.1.0 ORs in the sequences of the clients before.
func TestEveryone(t *testing.T) {
	for version, merges := range map[string]bool{"2.2.1": false, "2.1.0": true} {
		l := riptidetest.New(t, 7, &riptidetest.Setting{Version: version, Ask: true, Clients: 3, Duration: time.Second})
		l.Run(t, time.Second)
		server := l.Server.Endpoint()
		w := server.(*endpoint.Endpoint).Options().Codec.Writer(nil)
		w.Uint(9, 8)
		// Messages to single clients make their next sequences differ.
		var own []uint16
		for p := range machine.Peer(3) {
			for range p {
				reliableTo(t, server, p, &w)
			}
			own = append(own, reliableTo(t, server.Clone(), p, &w)[p])
		}
		got := reliableTo(t, server, endpoint.Everyone, &w)
		if len(got) != 3 || own[0] == own[1] || own[1] == own[2] {
			t.Fatalf("%s: %d clients got it, expected 3; their next sequences are %d, expected three", version, len(got), own)
		}
		want := uint16(0)
		for p, sequence := range own {
			want |= sequence
			if !merges {
				want = sequence
			}
			if got[machine.Peer(p)] != want {
				t.Errorf("%s: client %d got it as message %d, expected %d", version, p, got[machine.Peer(p)], want)
			}
		}
	}
}

// TestBodyLimit: a body has at most 1225 bytes, as the notes say. That leaves 5 bytes for the header
// of a reliable message.
func TestBodyLimit(t *testing.T) {
	l := riptidetest.New(t, 7, &riptidetest.Setting{Version: "notes", Ask: true, Clients: 1, Duration: time.Second})
	l.Run(t, time.Second)
	for size, fits := range map[int]bool{1225: true, 1226: false} {
		var out machine.Effects
		err := l.Server.Endpoint().Clone().Step(machine.Instant(time.Second),
			machine.Submit{Channel: riptide.ChannelReliable, Type: 3, Payload: make([]byte, size)}, &out)
		if fits != (err == nil) || fits && (len(out.Transmit) != 1 || len(out.Transmit[0].Bytes) != 5+size) {
			t.Errorf("%d bytes: %d messages, error %v", size, len(out.Transmit), err)
		}
	}
}

// reliableTo makes a server submit a reliable message. It returns the sequence of the copy to each
// peer.
func reliableTo(t *testing.T, server machine.Endpoint, to machine.Peer, w *wire.Writer) map[machine.Peer]uint16 {
	t.Helper()
	var out machine.Effects
	if err := server.Step(machine.Instant(time.Second), endpoint.Submission(to, riptide.ChannelReliable, 50, w),
		&out); err != nil {
		t.Fatal(err)
	}
	codec := server.(*endpoint.Endpoint).Options().Codec
	got := map[machine.Peer]uint16{}
	for _, sent := range out.Transmit {
		var m wire.Message
		if err := codec.Parse(sent.Bytes, len(sent.Bytes), &m); err != nil || m.Type != wire.Reliable {
			t.Fatalf("the server sent %s to peer %d (%v), expected a reliable message", m.Type, sent.To, err)
		}
		if _, twice := got[sent.To]; twice {
			t.Errorf("peer %d got it twice", sent.To)
		}
		got[sent.To] = m.Sequence
	}
	return got
}

// TestWindowEnds: main ends a connection when its window of 1024 ids is too short for an id that never
// came, although its limits are off. A server acks the message first, and a client cannot. Other
// releases go on.
func TestWindowEnds(t *testing.T) {
	for _, c := range []struct {
		version string
		ahead   uint16 // of the newest id
		acks    [2]int // that client and server send
		remains bool   // both are still connected
	}{
		{"main", 1024, [2]int{1, 1}, true},
		{"main", 1025, [2]int{0, 1}, false},
		{"2.2.1", 1025, [2]int{1, 1}, true},
	} {
		l := riptidetest.New(t, 7, &riptidetest.Setting{
			Version: c.version, Ask: true, Clients: 1, Duration: time.Second, Limits: endpoint.Limits{Off: true},
		})
		l.Run(t, time.Second)
		for i, h := range []*sim.Host{l.Clients[0], l.Server} {
			e := h.Endpoint().Clone().(*endpoint.Endpoint)
			codec := e.Options().Codec
			newest := uint16(0) // by its last Ack
			arrive := func(id uint16) (acks int) {
				m := wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 50}
				b, err := codec.Append(nil, &m, nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				var out machine.Effects
				if err := e.Step(machine.Instant(time.Second), machine.Arrive{Bytes: b}, &out); err != nil {
					t.Fatal(err)
				}
				for _, sent := range out.Transmit {
					if err := codec.Parse(sent.Bytes, len(sent.Bytes), &m); err != nil || m.Type != wire.Ack {
						t.Errorf("%s %s sent %s (%v), expected nothing but an Ack", c.version, h.Name, m.Type, err)
					}
					newest = m.Last
					acks++
				}
				return acks
			}
			arrive(1) // a copy, to learn the newest
			ahead := newest + c.ahead
			if got := arrive(ahead); got != c.acks[i] || e.Connected(0) != c.remains {
				t.Errorf("%s %s, %d ahead: %d Acks, connected %t", c.version, h.Name, c.ahead, got, e.Connected(0))
			}
			if got := arrive(ahead + 1); !c.remains && got != 0 {
				t.Errorf("%s %s sent %d Acks after it had ended the connection", c.version, h.Name, got)
			}
		}
	}
}
