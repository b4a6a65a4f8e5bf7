package srdpcheck

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// end is one endpoint of a run, after it.
type end struct {
	addr   netip.AddrPort
	role   sim.Role
	second bool
	log    []srdppeer.Entry // of the second endpoint
	talk   *talk
}

// outcome is what a run left.
type outcome struct {
	ends    []*end
	capture []byte // pcapng
	frames  []taped
	epoch   machine.Instant
	close   time.Duration // the accuracy of the log's times, beside the capture's
}

// epoch is the wall time of instant 0 of a simulated run, in ns.
const epoch = machine.Instant(1_700_000_000 * int64(time.Second))

// adapted is a second endpoint behind the interface that the simulation drives.
type adapted struct {
	*srdppeer.Endpoint
	peers []netip.AddrPort // by machine.Peer
	out   *machine.Effects // of the present step
}

func adapt(s srdppeer.Settings, e *end, peers []netip.AddrPort) *adapted {
	a := &adapted{peers: peers}
	number := func(at netip.AddrPort) machine.Peer {
		for i, p := range peers {
			if p == at {
				return machine.Peer(i)
			}
		}
		return machine.Peer(len(peers))
	}
	a.Endpoint = srdppeer.New(s, e.addr, srdppeer.Hooks{
		Transmit: func(to netip.AddrPort, b []byte) { a.out.Send(number(to), machine.SendDatagram, b) },
		Deliver: func(from netip.AddrPort, b []byte) {
			a.out.Hand(machine.Delivery{From: number(from), Payload: b})
		},
		Log: func(x srdppeer.Entry) { e.log = append(e.log, x) },
	})
	return a
}

// Step implements machine.Endpoint.
func (a *adapted) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	a.out = out
	at := time.Duration(now)
	switch in := in.(type) {
	case machine.Wake:
		a.Expire(at)
	case machine.Arrive:
		a.Receive(at, a.peers[in.From], in.Bytes)
	case machine.Submit:
		r := srdp.RequestOf(in)
		return a.Send(at, a.peers[r.To], r.Bytes, srdppeer.Service{Repeats: r.Repeats, Timeout: r.Timeout, Flags: r.Flags})
	default:
		return fmt.Errorf("%T", in)
	}
	return nil
}

// Deadline implements machine.Endpoint.
func (a *adapted) Deadline() (machine.Instant, bool) {
	due, ok := a.Endpoint.Deadline()
	return machine.Instant(due), ok
}

// Inspect implements machine.Endpoint: the simulation never calls it.
func (a *adapted) Inspect(*machine.View) {}

// Clone implements machine.Endpoint: the simulation never calls it.
func (a *adapted) Clone() machine.Endpoint { return nil }

// simulate runs a scenario in virtual time.
func (s *scenario) simulate(t *testing.T) *outcome {
	t.Helper()
	o := &outcome{epoch: epoch, close: time.Millisecond}
	w := sim.New(s.seed)
	server := netip.MustParseAddrPort("10.0.0.99:40000")
	o.ends = append(o.ends, &end{addr: server, role: sim.Server})
	var clients []netip.AddrPort
	for i := range s.clients {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), uint16(30000+i))
		clients = append(clients, at)
		o.ends = append(o.ends, &end{addr: at, role: sim.Client})
	}
	p := s.profile()
	var hosts []*sim.Host
	for _, e := range o.ends {
		peers := []netip.AddrPort{server}
		if e.role == sim.Server {
			peers = clients
		}
		e.second, e.talk = s.second[e.role], &talk{of: s, peers: peers}
		hosts = append(hosts, w.AddHost(e.addr.String(), s.endpoint(t, &p, e, peers), sim.HostOptions{
			Frame: frame, EventDriven: !s.frames, ReadDelay: 50 * time.Microsecond, App: s.app(e, peers),
			Phase: time.Duration(len(hosts)) * time.Millisecond,
		}))
	}
	tape, err := openTape(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts[1:] {
		w.Connect(h, hosts[0], s.path, s.path).Tap(s.tap, func(seen sim.Tapped) {
			tape.write(epoch+seen.At, o.ends[seen.From.Index].addr, o.ends[seen.To.Index].addr, seen.Bytes)
		})
	}
	if err := w.Run(machine.Instant(s.talking + draining)); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	if err := tape.end(); err != nil {
		t.Fatal(err)
	}
	o.capture, o.frames = tape.to.Bytes(), tape.frames
	return o
}

// endpoint returns the endpoint of an end.
func (s *scenario) endpoint(t *testing.T, p *wire.Profile, e *end, peers []netip.AddrPort) machine.Endpoint {
	t.Helper()
	r, err := s.mortal(p, e, func() (machine.Endpoint, error) {
		if e.second {
			return adapt(s.settings(e.role), e, peers), nil
		}
		return s.reference(p, e)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reference returns the reference in the role of an end.
func (s *scenario) reference(p *wire.Profile, e *end) (machine.Endpoint, error) {
	self, _ := wire.AddressOf(e.addr)
	return endpoint.New(endpoint.Options{Profile: p, Side: machine.Side(e.role), First: s.first[e.role], Self: self})
}

// app returns the application of an end.
func (s *scenario) app(e *end, peers []netip.AddrPort) sim.App {
	return func(f *sim.Frame) {
		for n := range peers {
			if f.Number == 0 && !e.second && s.form == wire.Proxied {
				a, _ := wire.AddressOf(peers[n])
				f.Do(endpoint.Introduce(machine.Peer(n), a))
			}
			if n >= f.Peers {
				continue // a server on a socket does not know it yet
			}
			if r, ok := e.talk.next(f.Now, f.Rand, machine.Peer(n)); ok {
				f.Do(r.Submit())
			}
		}
		for _, d := range f.Delivered {
			e.talk.take(peers[d.From], d.Payload)
		}
	}
}
