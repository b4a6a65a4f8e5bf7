package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Via is the proxy that packets of SRDP go through.
type Via int

const (
	Straight Via = iota
	ViaUDP       // a proxy that forwards datagrams
	ViaTCP       // a proxy that sends for clients, which reach it by streams
)

var viaWords = [...]string{"none", "udp", "tcp"}

// ParseVia reads "none", "udp" or "tcp".
func ParseVia(word string) (Via, error) {
	for i, w := range viaWords {
		if w == word {
			return Via(i), nil
		}
	}
	return Straight, fmt.Errorf("proxy %q: expected none, udp or tcp", word)
}

func (v Via) String() string { return viaWords[v] }

// SRDP is the kit of SRDP: clients send messages to a server, and the server to
// all clients that it has heard of, straight or through a proxy.
type SRDP struct {
	Profile *wire.Profile // of the proxied form where there is a proxy
	Via     Via
	Server  netip.AddrPort // what packets of the proxied form name the server by; invalid for its own address
	Rate    [2]float64     // messages a second that an endpoint sends to each peer, by role
	Least   int            // bytes of a message
	Most    int            // and at most
	Count   uint64         // messages that an endpoint sends to each peer; 0 for no end
	// Flags are the services that a message asks for: one of these at random.
	Flags []uint8
	// Repeats and Timeout are those of srdp_send, also of what the TCP proxy sends.
	Repeats uint8
	Timeout time.Duration
	Limit   time.Duration // after which a message with Repeats 0 is given up; 0 for never
}

// NewSRDP checks the kit and gives it ready for use.
func NewSRDP(k SRDP) (*SRDP, error) {
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
		return nil, fmt.Errorf("srdp: messages of %d to %d bytes: expected up to %d in the %v form", k.Least, k.Most, most, k.Profile.Form)
	}
	if len(k.Flags) == 0 {
		k.Flags = []uint8{0}
	}
	return &k, nil
}

// srdpFrame is the time between two turns of the applications.
const srdpFrame = 10 * time.Millisecond

// Rhythm implements Kit: SRDP lives by its timer, not by a game's frames.
func (k *SRDP) Rhythm(Role) Rhythm { return Rhythm{Frame: srdpFrame, EventDriven: true, Shared: true} }

// self gives an address as packets have it.
func (k *SRDP) self(own netip.AddrPort) (wire.Address, error) {
	a, ok := wire.AddressOf(own)
	if !ok && k.Profile.Form == wire.Proxied {
		return a, fmt.Errorf("srdp: address %v: expected an IPv4 address, packets of the %v form have no other", own, k.Profile.Form)
	}
	return a, nil
}

// End implements Kit.
func (k *SRDP) End(role Role, _ int, own netip.AddrPort) (*End, error) {
	if role == Server && k.Server.IsValid() {
		own = k.Server
	}
	self, err := k.self(own)
	if err != nil {
		return nil, err
	}
	end := &End{}
	proxy := endpoint.ProxyOptions{Profile: k.Profile}
	switch {
	case role == Proxy && k.Via == ViaUDP:
		end.Endpoint, err = endpoint.NewUDPProxy(proxy)
	case role == Proxy:
		end.Endpoint, err = endpoint.NewTCPProxy(endpoint.TCPProxyOptions{ProxyOptions: proxy, Repeats: k.Repeats, Timeout: k.Timeout, Limit: k.Limit})
	case role == Client && k.Via == ViaTCP:
		end.Endpoint, err = endpoint.NewStream(endpoint.StreamOptions{Profile: k.Profile, Self: self})
	default:
		end.Endpoint, err = endpoint.New(endpoint.Options{
			Profile: k.Profile, Side: machine.Side(role), Self: self, ByProxy: role == Client && k.Via == ViaUDP, Limit: k.Limit,
		})
	}
	if err != nil {
		return nil, err
	}
	end.Log = &srdpScribe{kit: k, role: role, endpoint: end.Endpoint, addrs: map[machine.Peer]netip.AddrPort{}}
	if role != Proxy {
		end.App = k.app(role, end.Endpoint)
	} else {
		end.App = k.introduction(0)
	}
	return end, nil
}

// introduction gives an application that tells its endpoint who has the server's
// address, and does no more.
func (k *SRDP) introduction(peer machine.Peer) func(*Turn) (bool, error) {
	return func(t *Turn) (bool, error) {
		if t.Number > 0 {
			return false, nil
		}
		server, err := k.self(k.Server)
		if err != nil {
			return false, err
		}
		return false, t.Do(endpoint.Introduce(peer, server))
	}
}

// submitter is an endpoint that says whether it takes another message.
type submitter interface {
	CanSubmit(to machine.Peer, flags uint8) bool
}

// app sends messages to the server, or to all who have sent some.
func (k *SRDP) app(role Role, e machine.Endpoint) func(*Turn) (bool, error) {
	sent := map[machine.Peer]uint64{}
	var peers []machine.Peer // in the order in which they came
	stream, _ := e.(*endpoint.Stream)
	begin := func(*Turn) (bool, error) { return true, nil }
	if role == Client {
		// A proxy is the driver's peer 0, and the server is behind it.
		server := machine.Peer(0)
		if k.Via != Straight {
			server = 1
		}
		peers = append(peers, server)
		if k.Profile.Form == wire.Proxied {
			begin = k.introduction(server)
		}
	}
	return func(t *Turn) (more bool, err error) {
		if _, err := begin(t); err != nil {
			return false, err
		}
		if stream != nil && t.Number == 0 {
			if err := t.Do(machine.Command{Kind: machine.Connect}); err != nil {
				return false, err
			}
		}
		for _, d := range t.Delivered {
			if _, known := sent[d.From]; !known && role == Server {
				sent[d.From] = 0
				peers = append(peers, d.From)
			}
		}
		more = len(peers) == 0
		for _, p := range peers {
			more = more || k.Count == 0 || sent[p] < k.Count
			if k.Count > 0 && sent[p] >= k.Count || t.Rand.Float64() >= k.Rate[role]*srdpFrame.Seconds() {
				continue
			}
			r := srdp.Request{
				To: p, Bytes: noise(t.Rand, k.Least+t.Rand.IntN(k.Most-k.Least+1)),
				Repeats: k.Repeats, Timeout: k.Timeout, Flags: k.Flags[t.Rand.IntN(len(k.Flags))],
			}
			if !e.(submitter).CanSubmit(p, r.Flags) {
				continue // later, perhaps: a network this bad takes no more now
			}
			if err := t.Do(r.Submit()); err != nil {
				return false, err
			}
			sent[p]++
		}
		return more, nil
	}
}

// Greets implements Kit: a data packet of the profile may begin a conversation.
func (k *SRDP) Greets(b []byte) bool {
	var pk wire.Packet
	return k.Profile.Fits(b, len(b), &pk) && !pk.Ack
}

// Name implements Kit.
func (k *SRDP) Name(role Role, n int) string {
	if role == Client {
		return fmt.Sprintf("client%d", n+1)
	}
	return role.String()
}
