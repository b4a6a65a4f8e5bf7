package srdpcheck

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// TestSockets runs both endpoints against each other over UDP on loopback, with
// a relay between them that loses datagrams. It takes a capture at each side of
// the relay. The runs are concurrent, since they mostly wait.
func TestSockets(t *testing.T) {
	testenv.Long(t, "endpoints on sockets, against the clock")
	if places[sim.Client] == places[sim.Server] {
		testenv.Skip(t, "this system has one loopback address: the parts would look like one machine")
	}
	losses, rounds := []float64{0, 0.2, 0.4}, 1
	if testenv.Whole() {
		losses, rounds = []float64{0, 0.05, 0.2, 0.4}, 4
	}
	var runs []*socketRun
	for round := range rounds {
		for i, second := range [][2]bool{{true, false}, {false, true}, {true, true}} {
			for j, loss := range losses {
				runs = append(runs, &socketRun{s: overSockets(uint64(1+100*round+10*i+j), second, loss)})
			}
		}
	}
	slots := make(chan bool, 12) // more at a time would wait for the processor
	var all sync.WaitGroup
	for _, r := range runs {
		all.Go(func() {
			slots <- true
			r.do()
			<-slots
		})
	}
	all.Wait()
	var sum tally
	for _, r := range runs {
		t.Run(fmt.Sprintf("seed %d", r.s.seed), func(t *testing.T) { sum.add(r.hold(t)) })
	}
	t.Logf("%d runs: %v", len(runs), &sum)
}

// places are the addresses of the parts, by role. With one of its own, each
// looks like another machine. The relay has that of a proxy.
var places = [...]netip.AddrPort{lab.Loopback(1), lab.Loopback(2), lab.Loopback(3)}

// overSockets returns a scenario for real time.
func overSockets(seed uint64, second [2]bool, loss float64) *scenario {
	p := wire.Default()
	s := &scenario{
		seed: seed, talking: 1500 * time.Millisecond, second: second, clients: 1, rate: 30, little: seed%2 == 0,
		late: seed%4 < 2, flags: []uint8{0, p.DontDuplicate, p.Order, p.DontDuplicate | p.Order}, repeats: []uint8{0, 0, 3},
		waits: []time.Duration{50 * time.Millisecond, 90 * time.Millisecond},
		path:  sim.Path{Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Loss: loss},
	}
	if loss < 0.4 {
		s.waits = append(s.waits, 0)
	}
	return s
}

// socketRun is one run over sockets: its captures are taken at the client and
// at the server.
type socketRun struct {
	s    *scenario
	ends [2]*end // by sim.Role
	tape [2]*tape
	zero machine.Instant // the wall time of the run's start
	err  error
}

// lingering is how long the endpoints go on after their applications.
const lingering = 3500 * time.Millisecond

// hold compares a run with the log of its second endpoints. A machine that
// halts delays what passes between a socket and the tap, so that the tap is no
// longer at the endpoint. So a run that fails is repeated, alone.
func (r *socketRun) hold(t *testing.T) (c tally) {
	const tries = 3
	for try := 1; ; try++ {
		if r.err != nil {
			t.Fatal(r.err)
		}
		c = tally{}
		faults := (&outcome{ends: r.ends[:]}).talked(r.s)
		for role, e := range r.ends {
			s := *r.s
			s.tap = float64(role)
			o := &outcome{ends: []*end{e}, epoch: r.zero, close: 5 * time.Millisecond}
			held, n := o.hold(t, &s, tell(t, fmt.Sprint("seed ", s.seed), r.tape[role].to.Bytes()))
			c.add(n)
			for _, fault := range held {
				faults = append(faults, fmt.Sprintf("tap at the %v: %s", sim.Role(role), fault))
			}
		}
		if len(faults) == 0 {
			return c
		}
		said := fmt.Sprintf("%v:\n%s", r.s, strings.Join(faults, "\n"))
		if try == tries {
			t.Error(said)
			return c
		}
		t.Logf("once more, alone: %s", said)
		*r = socketRun{s: r.s}
		r.do()
	}
}

// do runs the scenario.
func (r *socketRun) do() {
	ctx, stop := context.WithTimeout(context.Background(), r.s.talking+lingering)
	defer stop()
	clock := lab.StartClock()
	r.zero = clock.Wall(0)
	for role := range r.ends {
		r.ends[role] = &end{role: sim.Role(role), second: r.s.second[role]}
		var err error
		if r.tape[role], err = openTape(true); err != nil {
			r.err = err
			return
		}
	}
	client, server := r.ends[sim.Client], r.ends[sim.Server]
	server.talk, client.talk = &talk{of: r.s}, &talk{of: r.s}
	group := &lab.Group{}
	var all sync.WaitGroup
	trouble := make(chan error, 4)
	start := func(run func(context.Context) error) {
		all.Go(func() {
			if err := run(ctx); err != nil {
				trouble <- err
			}
		})
	}
	serverRun, err := r.open(server, clock, netip.AddrPort{})
	if err != nil {
		r.err = err
		return
	}
	group.Relay, err = lab.NewRelay(lab.RelayOptions{
		Settings: lab.Settings{Clock: clock, Seed: r.s.seed}, Listen: places[sim.Proxy], Target: server.addr,
		ToServer: r.s.path, ToHere: r.s.path,
		Tap: func(seen lab.Observation) {
			to := r.tape[sim.Client]
			if seen.From == server.addr || seen.To == server.addr {
				to = r.tape[sim.Server]
			}
			to.write(clock.Wall(seen.At), seen.From, seen.To, seen.Bytes)
		},
	})
	if err != nil {
		r.err = err
		return
	}
	clientRun, err := r.open(client, clock, group.Relay.Addr())
	if err != nil {
		r.err = err
		return
	}
	// What the applications note has the far end's own address, not the relay's.
	client.talk.peers, server.talk.peers = []netip.AddrPort{server.addr}, []netip.AddrPort{client.addr}
	start(serverRun)
	start(group.Relay.Run)
	start(clientRun)
	all.Wait()
	close(trouble)
	for err := range trouble {
		r.err = errors.Join(r.err, err)
	}
	for _, p := range r.tape {
		r.err = errors.Join(r.err, p.end())
	}
}

// open opens the socket of an end, and returns what runs it. A client sends to
// an address.
func (r *socketRun) open(e *end, clock lab.Clock, to netip.AddrPort) (run func(context.Context) error, err error) {
	if e.second {
		return r.openSecond(e, clock, to)
	}
	h, err := lab.NewHost(lab.HostOptions{
		Settings: lab.Settings{Clock: clock, Seed: r.s.seed}, Kit: &kit{r.s, e}, Role: e.role, Listen: places[e.role],
		Connect: to, Duration: r.s.talking + lingering,
	})
	if err != nil {
		return nil, err
	}
	e.addr = h.Addr()
	return h.Run, nil
}

// openSecond does so for a second endpoint.
func (r *socketRun) openSecond(e *end, clock lab.Clock, to netip.AddrPort) (func(context.Context) error, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(places[e.role]))
	if err != nil {
		return nil, err
	}
	e.addr = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	now := func() time.Duration { return time.Duration(clock.Now()) }
	peer := to // of a server: whoever sends to it, since there is one client
	x := srdppeer.New(r.s.settings(e.role), e.addr, srdppeer.Hooks{
		Transmit: func(to netip.AddrPort, b []byte) { _, _ = conn.WriteToUDPAddrPort(b, to) }, // a lost datagram
		Deliver:  func(_ netip.AddrPort, b []byte) { e.talk.take(e.talk.peers[0], b) },
		Log: func(x srdppeer.Entry) {
			e.log = append(e.log, x)
			peer = x.Peer
		},
	})
	rng := rand.New(rand.NewPCG(r.s.seed, uint64(e.role)))
	due := time.Duration(0)
	return func(ctx context.Context) error {
		defer conn.Close() // no data is buffered in it
		var refused error
		err := srdppeer.Serve(ctx, conn, x, now, func(at time.Duration) (time.Duration, bool) {
			for due <= at {
				due += frame
				if !peer.IsValid() {
					continue
				}
				if q, ok := e.talk.next(machine.Instant(at), rng, 0); ok {
					refused = errors.Join(refused, x.Send(at, peer, q.Bytes,
						srdppeer.Service{Repeats: q.Repeats, Timeout: q.Timeout, Flags: q.Flags}))
				}
			}
			return due, at < r.s.talking
		})
		return errors.Join(err, refused)
	}, nil
}

// kit is the reference of a scenario, as the lab runs it.
type kit struct {
	s *scenario
	e *end
}

// End implements sim.Kit.
func (k *kit) End(sim.Role, int, netip.AddrPort) (*sim.End, error) {
	p := k.s.profile()
	r, err := k.s.reference(&p, k.e)
	if err != nil {
		return nil, err
	}
	app := k.s.app(k.e, []netip.AddrPort{k.e.talk.peers[0]})
	return &sim.End{Endpoint: r, App: app, Log: silent{}}, nil
}

// Rhythm implements sim.Kit.
func (k *kit) Rhythm(sim.Role) sim.Rhythm {
	return sim.Rhythm{Frame: frame, EventDriven: true, Shared: true}
}

// Greets implements sim.Kit.
func (k *kit) Greets([]byte) bool { return true }

// Name implements sim.Kit.
func (k *kit) Name(role sim.Role, _ int) string { return role.String() }

// silent is the log of the reference: this package does not read it.
type silent struct{}

func (silent) Opening(netip.AddrPort, netip.AddrPort) []sim.Line { return nil }
func (silent) Opened(netip.AddrPort) sim.Line                    { return nil }
func (silent) Met(machine.Peer, netip.AddrPort) sim.Line         { return nil }
func (silent) Step(*sim.Step) []sim.Line                         { return nil }
func (silent) Final() sim.Line                                   { return nil }
