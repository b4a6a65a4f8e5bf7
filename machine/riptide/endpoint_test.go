package riptide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// lobby is a server and its clients in a simulated world.
type lobby struct {
	world   *sim.World
	server  *sim.Host
	clients []*sim.Host
	links   []*sim.Link
	truth   *sim.Truth
	journal *sim.Journal
	// Delivered user messages, by host and channel.
	got map[*sim.Host][3]int
}

// setting is how a lobby is set up.
type setting struct {
	version  string
	stream   bool
	ask      bool
	clients  int
	slots    int
	path     sim.Path
	limits   endpoint.Limits
	relay    []uint16
	duration time.Duration
	rate     float64 // chance of a message of each kind a tick
	leave    bool    // clients leave at the end of the duration
	stop     bool    // the server stops then
}

func newEndpoint(t testing.TB, s *setting, server bool) *endpoint.Endpoint {
	t.Helper()
	v, ok := riptide.LookupVersion(s.version)
	if !ok {
		t.Fatalf("no version %q", s.version)
	}
	o := endpoint.Options{Version: v, Stream: s.stream, Ask: s.ask, Limits: s.limits, Slots: s.slots, Relay: s.relay}
	build := endpoint.NewClient
	if server {
		o.Side = machine.B
		build = endpoint.NewServer
	}
	e, err := build(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// body gives values of about n bytes.
func body(e *endpoint.Endpoint, n int) *wire.Writer {
	w := e.Options().Codec.Writer(nil)
	for i := range n {
		w.Uint(uint64(i), 8)
	}
	w.Bool(n%2 == 0)
	return &w
}

func chatter(t testing.TB, s *setting, e *endpoint.Endpoint, server bool, peers int) sim.App {
	stop := machine.Instant(s.duration)
	return func(f *sim.Frame) {
		for _, d := range f.Delivered {
			if d.Channel == riptide.ChannelData && machine.EventKind(d.Type) == endpoint.EventAttempted {
				f.Do(machine.Command{Kind: machine.Accept, Peer: d.From})
			}
		}
		if !server && f.Number == 3 {
			f.Do(machine.Command{Kind: machine.Connect, Payload: []byte("\x05alice")})
		}
		if f.Now >= stop {
			if s.leave && !server {
				f.Do(machine.Command{Kind: machine.Disconnect})
			}
			if s.stop && server {
				f.Do(machine.Command{Kind: machine.Stop})
			}
			return
		}
		for p := range peers {
			peer := machine.Peer(p)
			if !e.Connected(peer) {
				continue
			}
			for channel := range uint8(3) {
				if f.Rand.Float64() >= s.rate || channel == riptide.ChannelNotify && e.Options().Codec.Dialect.Layout(wire.Notify) == nil {
					continue
				}
				f.Do(endpoint.Submission(peer, channel, uint16(f.Rand.IntN(300)+40), body(e, f.Rand.IntN(60))))
			}
		}
	}
}

func newLobby(t testing.TB, seed uint64, s *setting) *lobby {
	t.Helper()
	if s.clients == 0 {
		s.clients = 1
	}
	l := &lobby{world: sim.New(seed), got: map[*sim.Host][3]int{}}
	l.truth, l.journal = l.world.Truth(), l.world.Record()
	l.world.Watch(func(step *sim.Step) {
		for _, d := range step.Out.Deliver {
			if d.Channel < 3 {
				n := l.got[step.Host]
				n[d.Channel]++
				l.got[step.Host] = n
			}
		}
	})
	e := newEndpoint(t, s, true)
	l.server = l.world.AddHost("server", e, sim.HostOptions{Frame: 10 * time.Millisecond, App: chatter(t, s, e, true, s.clients)})
	for i := range s.clients {
		e := newEndpoint(t, s, false)
		h := l.world.AddHost(fmt.Sprint("client", i+1), e, sim.HostOptions{
			Frame: 10 * time.Millisecond, Phase: time.Duration(i*3+1) * time.Millisecond, FrameJitter: time.Millisecond, App: chatter(t, s, e, false, 1),
		})
		l.clients = append(l.clients, h)
		if s.stream {
			l.links = append(l.links, l.world.ConnectStream(h, l.server, s.path, s.path))
		} else {
			l.links = append(l.links, l.world.Connect(h, l.server, s.path, s.path))
		}
	}
	return l
}

func (l *lobby) run(t testing.TB, until time.Duration) {
	t.Helper()
	if err := l.world.Run(machine.Instant(until)); err != nil {
		t.Fatal(err)
	}
}

func (l *lobby) count(h *sim.Host, kind machine.EventKind, channel uint8) (n int) {
	for _, f := range l.truth.Of(h, kind) {
		if f.Event.Channel == channel {
			n++
		}
	}
	return n
}

// TestReliableArrives has every version talk over a network that loses,
// doubles and reorders: each reliable message is handed over exactly once and
// acked, but for the faults that the versions are known for.
func TestReliableArrives(t *testing.T) {
	for _, v := range riptide.Versions {
		for _, stream := range []bool{false, true} {
			name := v.Name
			if stream {
				name += " tcp"
			}
			t.Run(name, func(t *testing.T) {
				s := &setting{
					version: v.Name, stream: stream, ask: true, duration: 8 * time.Second, rate: 0.1, limits: endpoint.Limits{Off: true},
					path: sim.Path{Delay: 20 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: 0.1, Duplicate: 0.05},
				}
				pytide := v.Behaviour.Limit == 0
				if pytide {
					s.path.Loss = 0
				}
				l := newLobby(t, 11, s)
				l.run(t, s.duration+2*time.Second)
				client := l.clients[0]
				for _, pair := range [][2]*sim.Host{{client, l.server}, {l.server, client}} {
					from, to := pair[0], pair[1]
					if !from.Endpoint().(*endpoint.Endpoint).Connected(0) {
						t.Fatalf("%s is not connected", from.Name)
					}
					sent, acked, got := l.count(from, machine.EventSent, riptide.ChannelReliable), l.count(from, machine.EventAcked, riptide.ChannelReliable), l.got[to][riptide.ChannelReliable]
					if sent < 50 {
						t.Fatalf("%s sent %d messages: nothing would be tested", from.Name, sent)
					}
					if v.Build.OneSequence {
						continue // nothing but the first is taken, or everything twice
					}
					// The notes' Ack does not name what it answers: of what comes late it tells
					// only once 16 newer ones have come.
					open := 0
					if v.Build.Dialect == wire.Notes {
						open = 16
					}
					lost := l.count(from, machine.EventLost, riptide.ChannelReliable) // given up after 15 sends
					if got != sent || acked+lost > sent || acked+lost < sent-open || lost > 0 && v.Behaviour.DropsConnection {
						t.Errorf("%s sent %d reliable messages, %d were acked, %d given up, %d handed over", from.Name, sent, acked, lost, got)
					}
				}
			})
		}
	}
}

// TestEndpointLaws holds clients and servers of every version and transport against
// the laws of endpoints.
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
			s := &setting{
				version: v.Name, stream: stream, ask: true, clients: 3, slots: 2, duration: 3 * time.Second, rate: 0.06, leave: true, stop: true,
				relay: []uint16{50, 51, 52, 53, 54}, path: sim.Path{Delay: 15 * time.Millisecond, Jitter: 9 * time.Millisecond, Loss: 0.1, Duplicate: 0.05},
			}
			l := newLobby(t, 5, s)
			l.run(t, s.duration+time.Second)
			for _, h := range []*sim.Host{l.server, l.clients[0]} {
				var script []machinetest.Timed
				for _, e := range l.journal.Entries {
					if e.Host == h.Index {
						script = append(script, machinetest.Timed{At: e.At, In: e.In})
					}
				}
				t.Run(name+" "+h.Name, func(t *testing.T) {
					machinetest.Endpoint(t, func() machine.Endpoint { return newEndpoint(t, s, h == l.server) }, script)
				})
			}
		}
	}
}
