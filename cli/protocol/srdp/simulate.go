//go:build !js

package srdp

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/sim"
	description "github.com/ackscope/ackscope/sim/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// run is a server and its clients, and optionally a proxy between them. The
// server has one counter of ids for all clients.
type run struct {
	flags    *simulate.Flags
	own      *ownFlags
	profile  wire.Profile
	via      description.Via
	first    [2]uint16 // of clients, and of the server
	repeats  [2]int    // least and most; drawn for each packet
	timeout  [2]time.Duration
	services []uint8 // flags; one is drawn for each packet
	payload  [2]int
}

var simulator = simulate.Simulator{
	Name: "srdp", Form: "srdp:PROFILE[:proxy|:tcp]", Words: words,
	Examples: `  ackscope simulate srdp --clients 3 --loss 10% --services any --repeats 3 -w run.client.pcapng
  ackscope simulate srdp --fault list
`,
	Begin: begin, Takes: []string{"clients"}, Remembered: []string{"clients", "first", "give-up"},
	Completions: map[string][]string{"services": {"none", "dont-duplicate", "order", "both", "any"}},
	Faults:      machine.Faults(endpoint.Faults),
}

// ownFlags are the flags of simulate that only this protocol has.
type ownFlags struct {
	repeats  string
	timeout  string
	services string
	giveUp   time.Duration
}

func begin(p *pflag.FlagSet) func(*app.App, *simulate.Flags) (simulate.Run, error) {
	var own ownFlags
	p.StringVar(&own.repeats, "repeats", "0",
		"srdp: how often a packet is sent at most, 0 until it is acknowledged; drawn from `LEAST-MOST`")
	p.StringVar(&own.timeout, "timeout", "0s", "srdp: time between the copies of a packet, 0s for the library's choice")
	p.StringVar(&own.services, "services", "none", "srdp: what packets ask for: `none|dont-duplicate|order|both|any`")
	p.DurationVar(&own.giveUp, "give-up", 0, "srdp: how long a packet without a limit is sent again; 0 for no end")
	return func(a *app.App, f *simulate.Flags) (simulate.Run, error) { return newRun(a, f, &own) }
}

func words(p *dissect.Protocol) (list []string) {
	for i := range p.Profiles {
		list = append(list, p.Profiles[i].Name)
	}
	return list
}

func newRun(a *app.App, f *simulate.Flags, own *ownFlags) (simulate.Run, error) {
	r := &run{flags: f, own: own}
	if err := r.readProtocol(a); err != nil {
		return nil, err
	}
	if f.Refuse != "0%" || f.Messages != 0 {
		return nil, errors.New("--refuse, --messages: not of SRDP; --rate says how many packets a second each peer gets")
	}
	if f.Clients < 1 || f.Clients > 64 {
		return nil, fmt.Errorf("--clients %d: expected 1 to 64", f.Clients)
	}
	var err error
	if r.first, err = simulate.Pair(f.First, func(text string) (uint16, error) {
		v, err := strconv.ParseUint(text, 10, 15)
		return uint16(v), err
	}); err != nil {
		return nil, fmt.Errorf("--first: ids have 15 bits: %w", err)
	}
	if r.payload[0], r.payload[1], err = simulate.ParseRange(f.Payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	if most := r.profile.MaxPayload(); r.payload[1] > most {
		return nil, fmt.Errorf("--payload %q: expected at most %d bytes in the %v form", f.Payload, most, r.profile.Form)
	}
	if r.repeats[0], r.repeats[1], err = simulate.ParseRange(own.repeats); err != nil || r.repeats[1] > 255 {
		return nil, fmt.Errorf("--repeats %q: expected 0 to 255 copies, or LEAST-MOST of them", own.repeats)
	}
	if r.timeout, err = simulate.Pair(own.timeout, simulate.ParseDelay); err != nil ||
		max(r.timeout[0], r.timeout[1]) > srdp.MaxTimeout {
		return nil, fmt.Errorf("--timeout %q: expected a time such as 200ms, or 0s for the library's choice", own.timeout)
	}
	if r.services, err = description.Services(&r.profile, own.services); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return r, nil
}

// readProtocol parses srdp[:PROFILE][:proxy|:tcp].
func (r *run) readProtocol(a *app.App) error {
	_, rest, _ := strings.Cut(r.flags.Protocol, ":")
	for word, way := range map[string]description.Via{"proxy": description.ViaUDP, "tcp": description.ViaTCP} {
		if name, ok := strings.CutSuffix(":"+rest, ":"+word); ok {
			r.via, rest = way, strings.TrimPrefix(name, ":")
		}
	}
	if rest == "" {
		rest = usual(r.via)
	}
	profile, names, err := profileOf(a, rest)
	switch {
	case err != nil:
		return fmt.Errorf("--protocol %q: %w", r.flags.Protocol, err)
	case profile == nil:
		return fmt.Errorf("--protocol %q: no profile %q: expected one of %s", r.flags.Protocol, rest,
			strings.Join(names, ", "))
	case r.via != description.Straight && profile.Form != wire.Proxied:
		return fmt.Errorf("--protocol %q: a proxy needs the addresses of the form %v", r.flags.Protocol, wire.Proxied)
	}
	r.profile = *profile
	return nil
}

// proxyAddr is the address of the proxy of a run.
var proxyAddr = netip.MustParseAddrPort("10.0.0.3:50000")

// Build implements simulate.Run.
func (r *run) Build(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	if err := s.ReadRates("packets"); err != nil {
		return err
	}
	s.Stream = r.via == description.ViaTCP
	faults := simulate.Faults(r.flags, endpoint.LookupFault)
	if s.Stream && faults[sim.Client] != nil {
		return fmt.Errorf("--fault %q: a client of a TCP proxy neither acknowledges nor sends again: expected --faulty b",
			r.flags.Fault)
	}
	kit, err := description.New(description.Kit{
		Profile: &r.profile, Via: r.via, Server: simulate.Addrs[1], First: r.first, Least: r.payload[0], Most: r.payload[1],
		Repeats: uint8(r.repeats[1]), Timeout: r.timeout[0], Limit: r.own.giveUp, ToProxy: r.via != description.Straight,
		Faults: faults,
	})
	if err != nil {
		return err
	}
	server, err := r.add(s, kit, sim.Server, 0, simulate.Addrs[1])
	if err != nil {
		return err
	}
	hub := server
	if r.via != description.Straight {
		if hub, err = r.add(s, kit, sim.Proxy, 0, proxyAddr); err != nil {
			return err
		}
		// The path between proxy and server is shorter, with the same loss.
		path := toB
		path.Delay, path.Jitter = path.Delay/4, path.Jitter/4
		s.World.Connect(server, hub, path, path)
	}
	for i := range r.flags.Clients {
		client, err := r.add(s, kit, sim.Client, i, simulate.AddrOf(i))
		if err != nil {
			return err
		}
		s.Connect(client, hub, toB, toA)
	}
	return nil
}

// add adds an endpoint and its application to the world.
func (r *run) add(s *simulate.Simulation, kit *description.Kit, role sim.Role, n int,
	at netip.AddrPort,
) (*sim.Host, error) {
	end, err := kit.End(role, n, at)
	if err != nil {
		return nil, err
	}
	end.App = (&application{run: r, role: role, over: s.Over, peers: r.peersOf(role)}).frame
	name := kit.Name(role, n)
	if role == sim.Client && r.flags.Clients == 1 {
		name = role.String() // it is the only one
	}
	return s.Add(role, name, at, end), nil
}

// peersOf returns the addresses that a role sends to, by its numbers for them.
// Clients and the proxy send to the server. Behind a proxy, the server's peer 0
// is the proxy.
func (r *run) peersOf(role sim.Role) map[machine.Peer]netip.AddrPort {
	switch role {
	case sim.Client:
		return map[machine.Peer]netip.AddrPort{r.via.ServerPeer(): simulate.Addrs[1]}
	case sim.Proxy:
		return map[machine.Peer]netip.AddrPort{0: simulate.Addrs[1]}
	}
	clients := map[machine.Peer]netip.AddrPort{}
	for i := range r.flags.Clients {
		peer := machine.Peer(i)
		if r.via != description.Straight {
			peer++
		}
		clients[peer] = simulate.AddrOf(i)
	}
	return clients
}

// Opening implements simulate.Run.
func (r *run) Opening(s *simulate.Simulation, tell func(endpoint string, lines ...sim.Line)) {
	params := r.flags.Params()
	params["repeats"], params["timeout"], params["services"] = r.own.repeats, r.own.timeout, r.own.services
	tell("harness", s.Scenario(params))
	for i, h := range s.World.Hosts() {
		log := s.Ends[i].Log
		tell(h.Name, log.Opening(s.Addrs[i], simulate.Addrs[1])...)
		switch {
		case s.Roles[i] == sim.Client: // the server is behind any of its peers
			for peer := range r.via.ServerPeer() + 1 {
				log.Met(peer, simulate.Addrs[1])
			}
		case s.Roles[i] == sim.Server && r.via == description.Straight:
			for peer, at := range r.peersOf(sim.Server) {
				log.Met(peer, at)
			}
		}
	}
}

// Summarize implements simulate.Run.
func (r *run) Summarize(w io.Writer, s *simulate.Simulation) {
	for _, h := range s.World.Hosts() {
		switch e := h.Endpoint().(type) {
		case *endpoint.Endpoint:
			n := e.Counts()
			fmt.Fprintf(w, "%s: sent %d, sent again %d, acked %d, gave up %d, received %d, duplicates dropped %d\n",
				h.Name, n.Packets, n.Resends, n.Acked, n.GaveUp, n.Received, n.Duplicates)
		case *endpoint.Stream:
			n := e.Counts()
			fmt.Fprintf(w, "%s: sent %d, acked %d, received %d\n", h.Name, n.Packets, n.Acked, n.Received)
		case *endpoint.UDPProxy:
			fmt.Fprintf(w, "%s: forwarded %d\n", h.Name, e.Counts().Forwarded)
		case *endpoint.TCPProxy:
			n := e.Endpoint().Counts()
			fmt.Fprintf(w, "%s: forwarded %d, sent again %d\n", h.Name, e.Counts().Forwarded, n.Resends)
		}
	}
}

// application is the application of one host: it sends each of its peers a
// packet per frame.
type application struct {
	run   *run
	role  sim.Role
	peers map[machine.Peer]netip.AddrPort
	over  func(now machine.Instant) bool // reports that the run's time is up
}

func (p *application) frame(f *sim.Frame) {
	if f.Number == 0 {
		p.introduce(f)
		if _, ok := f.Endpoint().(*endpoint.Stream); ok {
			f.Do(machine.Command{Kind: machine.Connect})
		}
	}
	if p.role == sim.Proxy || p.over(f.Now) {
		return
	}
	room := f.Endpoint().(description.Submitter)
	for peer := range machine.Peer(len(p.peers) + 1) {
		if _, ok := p.peers[peer]; !ok {
			continue
		}
		q := p.run.draw(f.Rand, p.role)
		if q.To = peer; room.CanSubmit(peer, q.Flags) {
			f.Do(q.Submit())
		}
	}
}

// introduce gives the endpoint its peers' addresses. The direct form does not
// need them.
func (p *application) introduce(f *sim.Frame) {
	if p.run.profile.Form != wire.Proxied {
		return
	}
	for peer := range machine.Peer(len(p.peers) + 1) {
		if at, ok := p.peers[peer]; ok {
			address, _ := wire.AddressOf(at)
			f.Do(endpoint.Introduce(peer, address))
		}
	}
}

func (r *run) draw(rng *rand.Rand, role sim.Role) srdp.Request {
	return srdp.Request{
		Bytes:   sim.Noise(rng, r.payload[0]+rng.IntN(r.payload[1]-r.payload[0]+1)),
		Repeats: uint8(r.repeats[0] + rng.IntN(r.repeats[1]-r.repeats[0]+1)),
		Timeout: r.timeout[role],
		Flags:   r.services[rng.IntN(len(r.services))],
	}
}
