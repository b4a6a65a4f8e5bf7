package article

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Events of the article's connections.
const (
	EventConnected    = machine.EventProtocol + 48 + iota // the side considers itself connected
	EventDisconnected                                     // the side considers the connection ended
	EventRefused                                          // the server refused the client
	EventTimedOut                                         // the side gave up on a silent peer
)

// DenyFull and DenyConnected are the reasons in a denied packet.
const (
	// DenyFull is the reason of a denial by a server that has no free slot.
	// Source: library, the article's sample 006 (networkprotocol, 2016): CONNECTION_DENIED_SERVER_FULL
	DenyFull = 0
	// DenyConnected is the reason of a denial to a client that is connected already.
	// Source: library, the article's sample 006 (networkprotocol, 2016): CONNECTION_DENIED_ALREADY_CONNECTED
	DenyConnected = 1
)

// ConnectOptions set up a Connection endpoint.
type ConnectOptions struct {
	Profile *wire.Profile // one with the handshake
	Side    machine.Side
	Server  bool
	Slots   int    // of a server: clients at a time; 0 means 64
	Seed    uint64 // of the salts
	// Every is the time between two packets of the handshake; 0 means 0.1 s. KeepAlive is
	// the same for an established connection; 0 means 1 s. Timeout is the silence after
	// which a side gives up; 0 means 10 s.
	Every, KeepAlive, Timeout time.Duration
	Farewells                 int // disconnect packets sent at the end; 0 means 10, as in the article; the sample sends 1
}

// Connection is the reference of "Client Server Connection": request, challenge,
// response, keep-alive, disconnect. A client's only peer is 0. A server has any number
// of peers.
type Connection struct {
	options ConnectOptions
	salts   rand.PCG
	links   []link // of the server: in use
	slots   int    // taken
	packet  wire.Packet
	bytes   []byte
}

// link is one connection, as one side sees it.
type link struct {
	state           linkState
	client, server  uint64 // salts; the XOR of both would prefix payloads
	heardAt, sentAt machine.Instant
	begun           bool // sentAt is set
}

type linkState uint8

const (
	linkNone        linkState = iota
	linkRequesting            // client: has sent a request
	linkResponding            // client: was challenged
	linkChallenging           // server: has sent a challenge
	linkConnected
)

// NewConnection returns an endpoint without connections.
func NewConnection(o ConnectOptions) (*Connection, error) {
	if o.Profile == nil || !o.Profile.Handshake {
		return nil, errors.New("connection endpoint: expected a profile with the handshake")
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Every, 100 * time.Millisecond}, {&o.KeepAlive, time.Second}, {&o.Timeout, 10 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Slots == 0 {
		o.Slots = 64
	}
	if o.Farewells == 0 {
		o.Farewells = 10
	}
	return &Connection{options: o, salts: *rand.NewPCG(o.Seed, 0x5a17)}, nil
}

// Connected reports whether the connection to a peer is established.
func (c *Connection) Connected(peer machine.Peer) bool {
	return int(peer) < len(c.links) && c.links[peer].state == linkConnected
}

// Step processes one input. See machine.Endpoint. The commands are Connect for a
// client, Disconnect for both, and Kick for a server.
func (c *Connection) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Command:
		return c.command(now, in, out)
	case machine.Arrive:
		if c.options.Profile.Parse(in.Bytes, len(in.Bytes), &c.packet) != nil {
			return nil
		}
		if c.options.Server {
			c.serve(now, in.From, out)
		} else if len(c.links) > 0 && in.From == 0 {
			c.answer(now, out)
		}
	case machine.Wake:
		for peer := range c.links {
			c.wake(now, machine.Peer(peer), out)
		}
	default:
		return fmt.Errorf("step: %T, expected a datagram, a command or a wake", in)
	}
	return nil
}

func (c *Connection) command(now machine.Instant, in machine.Command, out *machine.Effects) error {
	switch {
	case in.Kind == machine.Connect && !c.options.Server:
		if len(c.links) > 0 && c.links[0].state != linkNone {
			return errors.New("connect: the client is connected, or about to be")
		}
		c.links = []link{{state: linkRequesting, client: c.salts.Uint64(), heardAt: now}}
		c.wake(now, 0, out)
	case in.Kind == machine.Disconnect || in.Kind == machine.Kick && c.options.Server:
		if !c.Connected(in.Peer) {
			return fmt.Errorf("%v: peer %d is not connected", in.Kind, in.Peer)
		}
		for range c.options.Farewells {
			c.send(now, in.Peer, wire.ConnectDisconnect, out)
		}
		c.end(now, in.Peer, EventDisconnected, out)
	default:
		return fmt.Errorf("%v: not a command of this side of a connection", in.Kind)
	}
	return nil
}

// serve processes a client's packet.
func (c *Connection) serve(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	if int(peer) >= 1<<16 {
		return // no driver has so many; a number alone must not make the table grow
	}
	for int(peer) >= len(c.links) {
		c.links = append(c.links, link{})
	}
	l, p := &c.links[peer], &c.packet
	if p.Handshake == wire.ConnectRequest {
		switch {
		case l.state == linkConnected:
			if l.client != p.ClientSalt {
				c.deny(peer, p.ClientSalt, DenyConnected, out)
			}
		case l.state == linkChallenging && l.client == p.ClientSalt:
			if now >= l.sentAt.Add(c.options.Every) {
				c.send(now, peer, wire.ConnectChallenge, out)
			}
		case c.slots >= c.options.Slots:
			c.deny(peer, p.ClientSalt, DenyFull, out)
		default:
			// A challenge uses no slot, so forged addresses fill none.
			*l = link{state: linkChallenging, client: p.ClientSalt, server: c.salts.Uint64(), heardAt: now}
			c.send(now, peer, wire.ConnectChallenge, out)
		}
		return
	}
	if l.state < linkChallenging || l.client != p.ClientSalt || l.server != p.ChallengeSalt {
		return
	}
	switch p.Handshake {
	case wire.ConnectResponse:
		if l.state == linkChallenging {
			if c.slots >= c.options.Slots {
				c.deny(peer, p.ClientSalt, DenyFull, out)
				*l = link{}
				return
			}
			c.slots++
			l.state, l.begun = linkConnected, false
			c.tell(now, EventConnected, peer, out)
		}
		l.heardAt = now
		if !l.begun || now >= l.sentAt.Add(c.options.Every) {
			c.send(now, peer, wire.ConnectKeepAlive, out)
		}
	case wire.ConnectKeepAlive:
		l.heardAt = now
	case wire.ConnectDisconnect:
		if l.state == linkConnected {
			c.end(now, peer, EventDisconnected, out)
		}
	}
}

// answer processes the server's packet.
func (c *Connection) answer(now machine.Instant, out *machine.Effects) {
	l, p := &c.links[0], &c.packet
	if l.state == linkNone || p.ClientSalt != l.client {
		return
	}
	switch p.Handshake {
	case wire.ConnectDenied:
		if l.state != linkConnected {
			c.end(now, 0, EventRefused, out)
		}
	case wire.ConnectChallenge:
		if l.state == linkRequesting {
			l.state, l.server, l.heardAt = linkResponding, p.ChallengeSalt, now
		}
	case wire.ConnectKeepAlive:
		if p.ChallengeSalt != l.server || l.state == linkRequesting {
			return
		}
		l.heardAt = now
		if l.state == linkResponding {
			l.state = linkConnected
			c.tell(now, EventConnected, 0, out)
		}
	case wire.ConnectDisconnect:
		if p.ChallengeSalt == l.server && l.state == linkConnected {
			c.end(now, 0, EventDisconnected, out)
		}
	}
}

// wake sends what is due to a peer, and gives up on a silent one.
func (c *Connection) wake(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	l := &c.links[peer]
	at, kind, ok := c.due(l)
	switch {
	case l.state == linkNone:
	case now >= l.heardAt.Add(c.options.Timeout):
		c.end(now, peer, EventTimedOut, out)
	case ok && now >= at:
		c.send(now, peer, kind, out)
	}
}

// due returns what a side sends by itself, and when.
func (c *Connection) due(l *link) (at machine.Instant, kind wire.HandshakeKind, ok bool) {
	every := c.options.Every
	switch l.state {
	case linkRequesting:
		kind = wire.ConnectRequest
	case linkResponding:
		kind = wire.ConnectResponse
	case linkConnected:
		kind, every = wire.ConnectKeepAlive, c.options.KeepAlive
	default:
		return 0, 0, false
	}
	if !l.begun {
		return 0, kind, true
	}
	return l.sentAt.Add(every), kind, true
}

func (c *Connection) send(now machine.Instant, peer machine.Peer, kind wire.HandshakeKind, out *machine.Effects) {
	l := &c.links[peer]
	l.sentAt, l.begun = now, true
	c.put(peer, &wire.Packet{Handshake: kind, ClientSalt: l.client, ChallengeSalt: l.server}, out)
}

func (c *Connection) deny(peer machine.Peer, salt uint64, reason uint8, out *machine.Effects) {
	c.put(peer, &wire.Packet{Handshake: wire.ConnectDenied, ClientSalt: salt, DenyReason: reason}, out)
}

func (c *Connection) put(peer machine.Peer, pk *wire.Packet, out *machine.Effects) {
	pk.Kind, pk.Type = wire.KindHandshake, uint32(pk.Handshake)
	var padding []byte
	if pk.Handshake == wire.ConnectRequest {
		padding = make([]byte, wire.RequestPadding)
	}
	c.bytes = c.options.Profile.Append(c.bytes[:0], pk, padding)
	out.Send(peer, machine.SendDatagram, c.bytes)
}

func (c *Connection) end(now machine.Instant, peer machine.Peer, why machine.EventKind, out *machine.Effects) {
	l := &c.links[peer]
	if c.options.Server && l.state == linkConnected {
		c.slots--
	}
	if !c.options.Server || l.state == linkConnected {
		c.tell(now, why, peer, out)
	}
	*l = link{}
}

func (c *Connection) tell(now machine.Instant, kind machine.EventKind, peer machine.Peer, out *machine.Effects) {
	out.Events = append(out.Events, machine.Event{
		Kind: kind, Side: c.options.Side, Certainty: machine.Certain, Sequence: uint32(peer), Sequence64: int64(peer),
		At: now, RTT: -1,
	})
}

// Deadline returns when something is due to some peer, or a peer times out.
func (c *Connection) Deadline() (first machine.Instant, some bool) {
	for i := range c.links {
		l := &c.links[i]
		if l.state == linkNone {
			continue
		}
		at := l.heardAt.Add(c.options.Timeout)
		if due, _, ok := c.due(l); ok {
			at = min(at, due)
		}
		if !some || at < first {
			first, some = at, true
		}
	}
	return first, some
}

var linkWords = [...]string{"none", "requesting", "responding", "challenging", "connected"}

// Inspect draws the connections.
func (c *Connection) Inspect(v *machine.View) {
	v.Reset()
	t := machine.Table{Name: "connections", Columns: []string{"peer", "state", "client salt", "server salt"}}
	for peer := range c.links {
		l := &c.links[peer]
		if l.state == linkNone {
			continue
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(peer), linkWords[l.state], fmt.Sprintf("%016x", l.client), fmt.Sprintf("%016x", l.server),
		})
	}
	v.Tables = append(v.Tables, t)
}

// Clone returns an independent copy.
func (c *Connection) Clone() machine.Endpoint {
	d := *c
	d.links = append([]link(nil), c.links...)
	d.bytes = nil
	return &d
}
