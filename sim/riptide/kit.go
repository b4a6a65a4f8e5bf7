package riptide

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Kit makes a run of Riptide. Clients connect to a server, and all connected endpoints send each
// other messages in every mode. It implements sim.Kit.
type Kit struct {
	Versions [2]*riptide.Version // by role; both have the same dialect
	Stream   bool                // over TCP
	Rate     [2]float64          // messages a second in each mode, by role
	Tick     time.Duration       // between two updates; 0 is 10 ms
	Count    uint64              // messages that an endpoint sends to each peer; 0 for no end
	// Limits makes connections end for their quality, as the library's do unless the game switches
	// that off.
	Limits     bool
	EventClock bool
	BigEndian  bool // both ends are built big-endian: byte-aligned dialects only
	Ask        bool // the server's application decides on clients, by Handler
	Handler    Handler
	Hello      string // the data of a Connect, as a text; "" for none
	Slots      int    // clients that a server takes; 0 is 64
	Resend     endpoint.Resend
	Faults     [2]*endpoint.Fault
	Seed       uint64 // written to the logs
	Form       Form   // of the logs
}

// New checks a kit and sets its defaults. It fails without versions, or for a rate outside 0 to
// 1,000 messages a second.
func New(k Kit) (*Kit, error) {
	if k.Versions[sim.Client] == nil || k.Versions[sim.Server] == nil {
		return nil, errors.New("riptide: expected a version")
	}
	if k.Tick == 0 {
		k.Tick = 10 * time.Millisecond
	}
	if k.Slots == 0 {
		k.Slots = 64
	}
	for _, rate := range k.Rate {
		if !(rate >= 0 && rate <= 1000) {
			return nil, fmt.Errorf("riptide: rate %g: expected up to 1,000 messages a second", rate)
		}
	}
	return &k, nil
}

// Rhythm implements sim.Kit.
func (k *Kit) Rhythm(sim.Role) sim.Rhythm {
	return sim.Rhythm{Frame: k.Tick, EventDriven: k.EventClock, Shared: true}
}

// End implements sim.Kit.
func (k *Kit) End(role sim.Role, _ int, _ netip.AddrPort) (*sim.End, error) {
	if role == sim.Proxy {
		return nil, errors.New("riptide: expected a client or a server, found a proxy")
	}
	o := endpoint.Options{
		Version: k.Versions[role], Side: machine.Side(role), Stream: k.Stream, EventClock: k.EventClock, Ask: k.Ask,
		Limits: endpoint.Limits{Off: !k.Limits}, Resend: k.Resend, Slots: k.Slots, Fault: k.Faults[role],
		Codec: k.codec(role),
	}
	build, farewell := endpoint.NewClient, machine.Disconnect
	if role == sim.Server {
		build, farewell = endpoint.NewServer, machine.Stop
	}
	e, err := build(o)
	if err != nil {
		return nil, err
	}
	return &sim.End{
		Endpoint: e, App: k.app(e, role), Log: newLog(k, role, e),
		Farewell: []machine.Input{machine.Command{Kind: farewell}},
	}, nil
}

// codec returns the codec of a role.
func (k *Kit) codec(role sim.Role) wire.Codec {
	return wire.Codec{Dialect: k.Versions[role].Build.Dialect, BigEndian: k.BigEndian}
}

// app sends messages of random kinds to all connected peers.
func (k *Kit) app(e *endpoint.Endpoint, role sim.Role) sim.App {
	codec := e.Options().Codec
	modes := []uint8{riptide.ChannelUnreliable, riptide.ChannelReliable}
	if codec.Dialect.Layout(wire.Notify) != nil {
		modes = append(modes, riptide.ChannelNotify)
	}
	sent, desk := map[machine.Peer]uint64{}, NewDesk(k.Handler)
	return func(f *sim.Frame) {
		desk.Frame(f, e)
		if role == sim.Client && f.Number == 0 {
			f.Do(machine.Command{Kind: machine.Connect, Payload: Greeting(e, k.Hello)})
		}
		more := f.Peers == 0
		for p := range machine.Peer(f.Peers) {
			for _, mode := range modes {
				if !e.Connected(p) || k.Count > 0 && sent[p] >= k.Count || f.Rand.Float64() >= k.Rate[role]*k.Tick.Seconds() {
					continue
				}
				id := firstID + uint16(f.Rand.IntN(len(layouts)))
				w := codec.Writer(nil)
				for _, v := range layoutOf(mode, id) {
					v.draw(&w, f.Rand)
				}
				f.Do(endpoint.Submission(p, mode, id, &w))
				sent[p]++
			}
			more = more || k.Count == 0 || sent[p] < k.Count
		}
		if !more {
			f.Done()
		}
	}
}

// Greets implements sim.Kit: a client that connects begins with Connect.
func (k *Kit) Greets(b []byte) bool {
	var m wire.Message
	err := k.codec(sim.Server).Parse(b, len(b), &m)
	return (err == nil || errors.Is(err, base.ErrTrailing)) && m.Type == wire.Connect
}

// Name implements sim.Kit.
func (k *Kit) Name(role sim.Role, n int) string {
	if role == sim.Server {
		return "server"
	}
	return fmt.Sprintf("client%d", n+1)
}
