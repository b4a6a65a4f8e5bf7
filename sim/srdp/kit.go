package srdp

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Via is the proxy that packets go through.
type Via int

const (
	Straight Via = iota
	ViaUDP       // by a proxy that forwards datagrams
	ViaTCP       // by a proxy that sends for clients, which reach it by streams
)

var viaWords = [...]string{"none", "udp", "tcp"}

// ParseVia parses "none", "udp" or "tcp". It returns an error for other words.
func ParseVia(word string) (Via, error) {
	for i, w := range viaWords {
		if w == word {
			return Via(i), nil
		}
	}
	return Straight, fmt.Errorf("proxy %q: expected none, udp or tcp", word)
}

func (v Via) String() string { return viaWords[v] }

// ServerPeer returns a client's number for the server. With a proxy, the proxy
// is peer 0 and the server is behind it.
func (v Via) ServerPeer() machine.Peer {
	if v == Straight {
		return 0
	}
	return 1
}

// Kit is the kit of SRDP. Clients send messages to a server, and the server to
// all clients that have sent to it, directly or through a proxy. Kit implements
// sim.Kit.
type Kit struct {
	Profile *wire.Profile // in the proxied form when there is a proxy
	Via     Via
	Server  netip.AddrPort // the server's address in packets of the proxied form; when invalid, its own address
	First   [2]uint16      // id of the first packet, by role
	Rate    [2]float64     // messages a second from an endpoint to each peer, by role
	Least   int            // smallest message in bytes
	Most    int            // largest message in bytes
	Count   uint64         // messages from an endpoint to each peer; 0 means no end
	// Flags are the services of messages: each message asks for a random one of
	// these.
	Flags []uint8
	// Repeats and Timeout are those of srdp_send. The TCP proxy also uses them.
	Repeats uint8
	Timeout time.Duration
	Limit   time.Duration // after which a message with Repeats 0 is given up; 0 means never
	// ToProxy makes a server send all packets to its peer 0, which is the
	// proxy. Without it, the server sends to where packets come from.
	ToProxy bool
	Faults  [2]*endpoint.Fault // a client of a TCP proxy has none
	Form    Form               // of the logs
}

// New checks the kit and returns it, ready for use.
func New(k Kit) (*Kit, error) {
	if k.Profile == nil {
		return nil, errors.New("srdp: expected a profile")
	}
	if k.Via != Straight && k.Profile.Form != wire.Proxied {
		return nil, fmt.Errorf("srdp: form %v: expected %v, to go through a proxy", k.Profile.Form, wire.Proxied)
	}
	for _, rate := range k.Rate {
		if !(rate >= 0 && rate <= 10000) {
			return nil, fmt.Errorf("srdp: rate %g: expected up to 10,000 messages a second", rate)
		}
	}
	if most := k.Profile.MaxPayload(); k.Least < 0 || k.Most < k.Least || k.Most > most {
		return nil, fmt.Errorf("srdp: messages of %d to %d bytes: expected up to %d in the %v form", k.Least, k.Most, most,
			k.Profile.Form)
	}
	if len(k.Flags) == 0 {
		k.Flags = []uint8{0}
	}
	return &k, nil
}

// Services returns the flags that a word allows. Each message has a random one
// of them. It returns an error for an unknown word.
func Services(p *wire.Profile, word string) ([]uint8, error) {
	once, order := p.DontDuplicate, p.Order
	known := map[string][]uint8{
		"none": {0}, "dont-duplicate": {once}, "order": {order}, "both": {once | order},
		"any": {0, once, order, once | order},
	}
	flags, ok := known[word]
	if !ok {
		return nil, fmt.Errorf("services %q: expected none, dont-duplicate, order, both or any", word)
	}
	return flags, nil
}

// frame is the time between two frames of the applications.
const frame = 10 * time.Millisecond

// Rhythm implements sim.Kit: SRDP depends on its timer, not on a game's frames.
func (k *Kit) Rhythm(sim.Role) sim.Rhythm {
	return sim.Rhythm{Frame: frame, EventDriven: true, Shared: true}
}

// NameServer sets the server's address, unless it is set already.
func (k *Kit) NameServer(at netip.AddrPort) {
	if !k.Server.IsValid() {
		k.Server = at
	}
}

// Proxied reports whether there is a proxy, and whether clients reach it by
// streams.
func (k *Kit) Proxied() (proxied, streams bool) { return k.Via != Straight, k.Via == ViaTCP }

// self converts an address to the form of packets.
func (k *Kit) self(own netip.AddrPort) (wire.Address, error) {
	a, ok := wire.AddressOf(own)
	if !ok && k.Profile.Form == wire.Proxied {
		return a, fmt.Errorf("srdp: address %v: expected an IPv4 address, packets of the %v form have no other", own,
			k.Profile.Form)
	}
	return a, nil
}

// End implements sim.Kit.
func (k *Kit) End(role sim.Role, _ int, own netip.AddrPort) (*sim.End, error) {
	if role == sim.Server && k.Server.IsValid() {
		own = k.Server
	}
	self, err := k.self(own)
	if err != nil {
		return nil, err
	}
	end := &sim.End{}
	if end.Endpoint, err = k.endpoint(role, self); err != nil {
		return nil, err
	}
	end.Log = newLog(k, role, end.Endpoint)
	if role == sim.Proxy {
		end.App = k.proxyApp
	} else {
		end.App = k.app(role, end.Endpoint)
	}
	return end, nil
}

func (k *Kit) endpoint(role sim.Role, self wire.Address) (machine.Endpoint, error) {
	proxy := endpoint.ProxyOptions{Profile: k.Profile}
	switch {
	case role == sim.Proxy && k.Via == ViaUDP:
		return endpoint.NewUDPProxy(proxy)
	case role == sim.Proxy:
		return endpoint.NewTCPProxy(endpoint.TCPProxyOptions{
			ProxyOptions: proxy, Repeats: k.Repeats, Timeout: k.Timeout,
			Limit: k.Limit,
		})
	case role == sim.Client && k.Via == ViaTCP:
		return endpoint.NewStream(endpoint.StreamOptions{
			Profile: k.Profile, Side: machine.Side(role),
			First: k.First[role], Self: self,
		})
	}
	byProxy := k.Via == ViaUDP
	if role == sim.Server {
		byProxy = k.ToProxy
	}
	return endpoint.New(endpoint.Options{
		Profile: k.Profile, Side: machine.Side(role), First: k.First[role], Self: self, Fault: k.Faults[role],
		ByProxy: byProxy, Limit: k.Limit,
	})
}

// introduce gives an endpoint the server's address, for one of its peers.
func (k *Kit) introduce(f *sim.Frame, peer machine.Peer) {
	server, err := k.self(k.Server)
	if err != nil {
		f.Fail(err)
		return
	}
	f.Do(endpoint.Introduce(peer, server))
}

// proxyApp gives a proxy the server's address, and does nothing else.
func (k *Kit) proxyApp(f *sim.Frame) {
	if f.Number == 0 {
		k.introduce(f, 0)
	}
	f.Done()
}

// Submitter is an endpoint that reports whether it accepts another message.
type Submitter interface {
	CanSubmit(to machine.Peer, flags uint8) bool
}

// app returns an application that sends messages to the server, or to all
// clients that have sent some.
func (k *Kit) app(role sim.Role, e machine.Endpoint) sim.App {
	sent := map[machine.Peer]uint64{}
	var peers []machine.Peer // in the order of their first delivery
	if role == sim.Client {
		peers = append(peers, k.Via.ServerPeer())
	}
	return func(f *sim.Frame) {
		if role == sim.Client && k.Profile.Form == wire.Proxied && f.Number == 0 {
			k.introduce(f, k.Via.ServerPeer())
		}
		if _, ok := e.(*endpoint.Stream); ok && f.Number == 0 {
			f.Do(machine.Command{Kind: machine.Connect})
		}
		for _, d := range f.Delivered {
			if _, known := sent[d.From]; !known && role == sim.Server {
				sent[d.From] = 0
				peers = append(peers, d.From)
			}
		}
		more := len(peers) == 0
		for _, p := range peers {
			more = more || k.Count == 0 || sent[p] < k.Count
			if k.Count > 0 && sent[p] >= k.Count || f.Rand.Float64() >= k.Rate[role]*frame.Seconds() {
				continue
			}
			r := srdp.Request{
				To: p, Bytes: sim.Noise(f.Rand, k.Least+f.Rand.IntN(k.Most-k.Least+1)),
				Repeats: k.Repeats, Timeout: k.Timeout, Flags: k.Flags[f.Rand.IntN(len(k.Flags))],
			}
			if !e.(Submitter).CanSubmit(p, r.Flags) {
				continue // a later frame tries again, when the network has recovered
			}
			f.Do(r.Submit())
			sent[p]++
		}
		if !more {
			f.Done()
		}
	}
}

// Greets implements sim.Kit: a data packet of the profile may start a
// conversation.
func (k *Kit) Greets(b []byte) bool {
	var pk wire.Packet
	return k.Profile.Fits(b, len(b), &pk) && !pk.Ack
}

// Name implements sim.Kit.
func (k *Kit) Name(role sim.Role, n int) string {
	if role == sim.Client {
		return fmt.Sprintf("client%d", n+1)
	}
	return role.String()
}
