// Package riptidetest runs the reference endpoints of Riptide in a simulated world. It serves the
// tests of the packages in machine/riptide. What the endpoints did is the truth that a tracker or a
// replay is compared with.
package riptidetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Lobby is a server and its clients in a simulated world.
type Lobby struct {
	World   *sim.World
	Server  *sim.Host
	Clients []*sim.Host
	Links   []*sim.Link
	Truth   *sim.Truth
	Journal *sim.Journal
	// Got counts delivered user messages, by host and channel.
	Got map[*sim.Host][3]int
}

// Setting configures a lobby. A zero field means the endpoint's own default, but Clients then is
// one.
type Setting struct {
	Version  string   // of all endpoints, by name in riptide.Versions
	Stream   bool     // over TCP
	Ask      bool     // the server's application decides on connections: it accepts all
	Clients  int      // 1 where it is 0
	Slots    int      // clients that the server takes at a time
	Path     sim.Path // of each client to the server, and back
	Limits   endpoint.Limits
	Relay    []uint16      // ids that the server passes on
	Duration time.Duration // how long all endpoints send
	Rate     float64       // chance of a message of each kind, per tick
	Leave    bool          // clients leave at the end of the duration
	Stop     bool          // the server stops then
}

// NewEndpoint returns a client of the setting, or its server.
func NewEndpoint(t testing.TB, s *Setting, server bool) *endpoint.Endpoint {
	t.Helper()
	v, ok := riptide.LookupVersion(s.Version)
	if !ok {
		t.Fatalf("no version %q", s.Version)
	}
	o := endpoint.Options{Version: v, Stream: s.Stream, Ask: s.Ask, Limits: s.Limits, Slots: s.Slots, Relay: s.Relay}
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

// body returns values of about n bytes.
func body(e *endpoint.Endpoint, n int) *wire.Writer {
	w := e.Options().Codec.Writer(nil)
	for i := range n {
		w.Uint(uint64(i), 8)
	}
	w.Bool(n%2 == 0)
	return &w
}

// chatter is the application of an endpoint with the given number of peers.
func chatter(s *Setting, e *endpoint.Endpoint, server bool, peers int) sim.App {
	stop := machine.Instant(s.Duration)
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
			if s.Leave && !server {
				f.Do(machine.Command{Kind: machine.Disconnect})
			}
			if s.Stop && server {
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
				if f.Rand.Float64() >= s.Rate || channel == riptide.ChannelNotify &&
					e.Options().Codec.Dialect.Layout(wire.Notify) == nil {
					continue
				}
				f.Do(endpoint.Submission(peer, channel, uint16(f.Rand.IntN(300)+40), body(e, f.Rand.IntN(60))))
			}
		}
	}
}

// New returns a lobby whose clients connect at their third frame. After that, every endpoint sends
// messages on every channel at random, until the duration is over.
func New(t testing.TB, seed uint64, s *Setting) *Lobby {
	t.Helper()
	if s.Clients == 0 {
		s.Clients = 1
	}
	l := &Lobby{World: sim.New(seed), Got: map[*sim.Host][3]int{}}
	l.Truth, l.Journal = l.World.Truth(), l.World.Record()
	l.World.Watch(func(step *sim.Step) {
		for _, d := range step.Out.Deliver {
			if d.Channel < 3 {
				n := l.Got[step.Host]
				n[d.Channel]++
				l.Got[step.Host] = n
			}
		}
	})
	e := NewEndpoint(t, s, true)
	l.Server = l.World.AddHost("server", e,
		sim.HostOptions{Frame: 10 * time.Millisecond, App: chatter(s, e, true, s.Clients)})
	for i := range s.Clients {
		e := NewEndpoint(t, s, false)
		h := l.World.AddHost(fmt.Sprint("client", i+1), e, sim.HostOptions{
			Frame: 10 * time.Millisecond, Phase: time.Duration(i*3+1) * time.Millisecond, FrameJitter: time.Millisecond,
			App: chatter(s, e, false, 1),
		})
		l.Clients = append(l.Clients, h)
		if s.Stream {
			l.Links = append(l.Links, l.World.ConnectStream(h, l.Server, s.Path, s.Path))
		} else {
			l.Links = append(l.Links, l.World.Connect(h, l.Server, s.Path, s.Path))
		}
	}
	return l
}

// Run runs the world up to a time.
func (l *Lobby) Run(t testing.TB, until time.Duration) {
	t.Helper()
	if err := l.World.Run(machine.Instant(until)); err != nil {
		t.Fatal(err)
	}
}

// Count returns how many events of a kind and channel a host had.
func (l *Lobby) Count(h *sim.Host, kind machine.EventKind, channel uint8) (n int) {
	for _, f := range l.Truth.Of(h, kind) {
		if f.Event.Channel == channel {
			n++
		}
	}
	return n
}
