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

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	dissector "github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// srdpCast is a server and its clients, with a proxy between them perhaps. The
// server has one counter of ids for all clients.
type srdpCast struct {
	flags    *simulate.Flags
	profile  wire.Profile
	proxy    srdpProxy
	first    [2]uint16 // of clients, and of the server
	repeats  [2]int    // least and most, drawn for each packet
	timeout  [2]time.Duration
	services []uint8 // flags, drawn for each packet
	payload  [2]int
	log      srdpLog
}

// srdpProxy is by which way packets go.
type srdpProxy uint8

const (
	srdpStraight srdpProxy = iota
	srdpByUDP
	srdpByTCP
)

var simulator = simulate.Simulator{Name: "srdp", Begin: newSRDPCast, Words: srdpWords, Faults: machine.Faults(endpoint.Faults)}

func srdpWords(p *dissect.Protocol) (list []string) {
	for i := range p.Profiles {
		list = append(list, p.Profiles[i].Name)
	}
	return list
}

func newSRDPCast(a *app.App, f *simulate.Flags) (simulate.Cast, error) {
	c := &srdpCast{flags: f}
	if err := c.readProtocol(a); err != nil {
		return nil, err
	}
	if f.Refuse != "0%" || f.Messages != 0 {
		return nil, errors.New("--refuse, --messages: not of SRDP; --rate says how many packets a second each peer gets")
	}
	if f.Clients < 1 || f.Clients > 64 {
		return nil, fmt.Errorf("--clients %d: expected 1 to 64", f.Clients)
	}
	var err error
	if c.first, err = simulate.Pair(f.First, func(text string) (uint16, error) {
		v, err := strconv.ParseUint(text, 10, 15)
		return uint16(v), err
	}); err != nil {
		return nil, fmt.Errorf("--first: ids have 15 bits: %w", err)
	}
	if c.payload[0], c.payload[1], err = simulate.ParseRange(f.Payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	if most := c.profile.MaxPayload(); c.payload[1] > most {
		return nil, fmt.Errorf("--payload %q: expected at most %d bytes in the %v form", f.Payload, most, c.profile.Form)
	}
	if c.repeats[0], c.repeats[1], err = simulate.ParseRange(f.Repeats); err != nil || c.repeats[1] > 255 {
		return nil, fmt.Errorf("--repeats %q: expected 0 to 255 copies, or LEAST-MOST of them", f.Repeats)
	}
	if c.timeout, err = simulate.Pair(f.Timeout, simulate.ParseDelay); err != nil || max(c.timeout[0], c.timeout[1]) > srdp.MaxTimeout {
		return nil, fmt.Errorf("--timeout %q: expected a time such as 200ms, or 0s for the library's choice", f.Timeout)
	}
	return c, c.readServices(f.Services)
}

// readProtocol reads srdp[:PROFILE][:proxy|:tcp].
func (c *srdpCast) readProtocol(a *app.App) error {
	_, rest, _ := strings.Cut(c.flags.Protocol, ":")
	for word, way := range map[string]srdpProxy{"proxy": srdpByUDP, "tcp": srdpByTCP} {
		if name, ok := strings.CutSuffix(":"+rest, ":"+word); ok {
			c.proxy, rest = way, strings.TrimPrefix(name, ":")
		}
	}
	if rest == "" && c.proxy == srdpStraight {
		rest = wire.Direct.String()
	} else if rest == "" {
		rest = wire.Proxied.String()
	}
	protocol, ok := a.Registry.Lookup("srdp")
	if !ok {
		return fmt.Errorf("--protocol %q: not built in", c.flags.Protocol)
	}
	var names []string
	for i := range protocol.Profiles {
		x := &protocol.Profiles[i]
		names = append(names, x.Name)
		if s, ok := x.Config.Profile.(*dissector.Settings); ok && x.Name == rest {
			c.profile = s.Wire
			if c.proxy != srdpStraight && c.profile.Form != wire.Proxied {
				return fmt.Errorf("--protocol %q: a proxy needs the addresses of the form %v", c.flags.Protocol, wire.Proxied)
			}
			return nil
		}
	}
	return fmt.Errorf("--protocol %q: no profile %q: expected one of %s", c.flags.Protocol, rest, strings.Join(names, ", "))
}

// readServices reads what packets ask of their receiver.
func (c *srdpCast) readServices(text string) error {
	once, order := c.profile.DontDuplicate, c.profile.Order
	known := map[string][]uint8{
		"none": {0}, "dont-duplicate": {once}, "order": {order}, "both": {once | order}, "any": {0, once, order, once | order},
	}
	var ok bool
	if c.services, ok = known[text]; !ok {
		return fmt.Errorf("--services %q: expected none, dont-duplicate, order, both or any", text)
	}
	return nil
}

// Note implements simulate.Cast.
func (c *srdpCast) Note() map[string]string {
	return map[string]string{
		"clients": strconv.Itoa(c.flags.Clients), "first": c.flags.First, "give-up": c.flags.GiveUp.String(),
	}
}

// srdpServerPeer is what clients call the server, and the proxy too: its own link
// to the server comes first.
const srdpServerPeer = 0

// Enter implements simulate.Cast.
func (c *srdpCast) Enter(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	rates, err := simulate.Pair(s.Flags.Rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	if err != nil || !(rates[0] > 0 && rates[0] <= 1e6) || !(rates[1] > 0 && rates[1] <= 1e6) {
		return fmt.Errorf("--rate %q: expected packets a second, up to a million", s.Flags.Rate)
	}
	s.Stream = c.proxy == srdpByTCP
	add := func(side int, name string, e machine.Endpoint, addr netip.AddrPort, app sim.App) *sim.Host {
		frame := time.Duration(float64(time.Second) / rates[side])
		s.Addrs = append(s.Addrs, addr)
		return s.World.AddHost(name, e, sim.HostOptions{
			Frame: frame, Phase: time.Duration(s.World.Rand("phase " + name).Int64N(int64(frame))), FrameJitter: frame / 50,
			App: app, EventDriven: s.Flags.EventTime,
		})
	}
	addressOf := func(client int) netip.AddrPort {
		return netip.AddrPortFrom(simulate.Addrs[0].Addr(), simulate.Addrs[0].Port()+uint16(client))
	}
	// What clients are to the server: the proxy is its peer 0, where there is one.
	clients := map[machine.Peer]netip.AddrPort{}
	for i := range s.Flags.Clients {
		peer := machine.Peer(i)
		if c.proxy != srdpStraight {
			peer++
		}
		clients[peer] = addressOf(i)
	}
	e, err := c.endpoint(1, simulate.Addrs[1], false)
	if err != nil {
		return err
	}
	server := add(1, "server", e, simulate.Addrs[1], (&srdpPlayer{cast: c, side: 1, peers: clients}).play)
	hub := server
	var path sim.Path
	if c.proxy != srdpStraight {
		proxy, err := c.newProxy()
		if err != nil {
			return err
		}
		player := &srdpPlayer{cast: c, side: 1, peers: map[machine.Peer]netip.AddrPort{srdpServerPeer: simulate.Addrs[1]}, silent: true}
		hub = add(1, "proxy", proxy, srdpProxyAddr, player.play)
		// From there on the way is short, and loses as much.
		path = toB
		path.Delay, path.Jitter = path.Delay/4, path.Jitter/4
		s.World.Connect(server, hub, path, path)
	}
	connect := s.World.Connect
	if s.Stream {
		connect = s.World.ConnectStream
	}
	for i := range s.Flags.Clients {
		name := "client"
		if s.Flags.Clients > 1 {
			name += strconv.Itoa(i + 1)
		}
		addr := addressOf(i)
		e, err := c.endpoint(0, addr, s.Stream)
		if err != nil {
			return err
		}
		player := &srdpPlayer{cast: c, side: 0, peers: map[machine.Peer]netip.AddrPort{c.serverOfClients(): simulate.Addrs[1]}}
		s.Links = append(s.Links, connect(add(0, name, e, addr, player.play), hub, toB, toA))
	}
	return nil
}

// srdpProxyAddr is where the proxy of a run is.
var srdpProxyAddr = netip.MustParseAddrPort("10.0.0.3:50000")

// serverOfClients gives what a client calls the server: behind a proxy, which is
// its peer 0, it is the next one.
func (c *srdpCast) serverOfClients() machine.Peer {
	if c.proxy == srdpStraight {
		return srdpServerPeer
	}
	return srdpServerPeer + 1
}

// endpoint builds a client's or the server's end.
func (c *srdpCast) endpoint(side int, at netip.AddrPort, stream bool) (machine.Endpoint, error) {
	self, _ := wire.AddressOf(at)
	var fault *endpoint.Fault
	if c.flags.Wrong(side) {
		fault = endpoint.LookupFault(c.flags.Fault)
	}
	if stream {
		if fault != nil {
			return nil, fmt.Errorf("--fault %q: a client of a TCP proxy neither acknowledges nor sends again: expected --faulty b", c.flags.Fault)
		}
		return endpoint.NewStream(endpoint.StreamOptions{Profile: &c.profile, Side: machine.Side(side), First: c.first[side], Self: self})
	}
	return endpoint.New(endpoint.Options{
		Profile: &c.profile, Side: machine.Side(side), First: c.first[side], Self: self, Fault: fault,
		ByProxy: c.proxy != srdpStraight, Limit: c.flags.GiveUp,
	})
}

func (c *srdpCast) newProxy() (machine.Endpoint, error) {
	o := endpoint.ProxyOptions{Profile: &c.profile}
	if c.proxy == srdpByUDP {
		return endpoint.NewUDPProxy(o)
	}
	return endpoint.NewTCPProxy(endpoint.TCPProxyOptions{ProxyOptions: o, Repeats: uint8(c.repeats[1]), Timeout: c.timeout[0], Limit: c.flags.GiveUp})
}

// Truth implements simulate.Cast.
func (c *srdpCast) Truth(s *simulate.Simulation) func(io.Writer) error {
	c.log.begin(c, s)
	return c.log.write
}

// Summarize implements simulate.Cast.
func (c *srdpCast) Summarize(w io.Writer, s *simulate.Simulation) {
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

// srdpPlayer is the game of one host: it sends each of its peers a packet a frame.
type srdpPlayer struct {
	cast   *srdpCast
	side   int
	peers  map[machine.Peer]netip.AddrPort
	silent bool // a proxy
}

func (p *srdpPlayer) play(f *sim.Frame) {
	c := p.cast
	if f.Number == 0 {
		p.introduce(f)
		if _, ok := f.Endpoint().(*endpoint.Stream); ok {
			f.Do(machine.Command{Kind: machine.Connect})
		}
	}
	if p.silent || f.Now >= machine.Instant(c.flags.Duration) {
		return
	}
	room := f.Endpoint().(interface {
		CanSubmit(to machine.Peer, flags uint8) bool
	})
	for peer := range machine.Peer(len(p.peers) + 1) {
		if _, ok := p.peers[peer]; !ok {
			continue
		}
		r := c.draw(f.Rand, p.side)
		if r.To = peer; room.CanSubmit(peer, r.Flags) {
			f.Do(r.Submit())
		}
	}
}

// introduce tells the endpoint its peers' addresses: in the direct form it has no
// need of them.
func (p *srdpPlayer) introduce(f *sim.Frame) {
	if p.cast.profile.Form != wire.Proxied {
		return
	}
	for peer := range machine.Peer(len(p.peers) + 1) {
		if at, ok := p.peers[peer]; ok {
			address, _ := wire.AddressOf(at)
			f.Do(endpoint.Introduce(peer, address))
		}
	}
}

func (c *srdpCast) draw(rng *rand.Rand, side int) srdp.Request {
	return srdp.Request{
		Bytes:   simulate.Noise(rng, c.payload[0]+rng.IntN(c.payload[1]-c.payload[0]+1)),
		Repeats: uint8(c.repeats[0] + rng.IntN(c.repeats[1]-c.repeats[0]+1)),
		Timeout: c.timeout[side],
		Flags:   c.services[rng.IntN(len(c.services))],
	}
}
