package article

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
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

// UsualSlots is how many clients a server takes at a time if nothing else is said.
// Source: law, MaxClients of the article "Client Server Connection"
const UsualSlots = 64

// ConnectOptions set up a Connection endpoint.
type ConnectOptions struct {
	Profile *wire.Profile // one with the handshake
	Side    machine.Side
	Server  bool
	Slots   int    // of a server: clients at a time; 0 means UsualSlots
	Seed    uint64 // of the salts
	// Every is the time between two packets of the handshake; 0 means 0.1 s. KeepAlive is
	// the same for an established connection; 0 means 1 s. Timeout is the silence after
	// which a side gives up; 0 means 10 s.
	Every, KeepAlive, Timeout time.Duration
	Farewells                 int // disconnect packets sent at the end; 0 means 10, as in the article; the sample sends 1
	Fault                     *Fault
}

// Connection is the reference of "Client Server Connection": request, challenge,
// response, keep-alive, disconnect. A client's only peer is 0. A server has any number
// of peers.
type Connection struct {
	options ConnectOptions
	fault   *Fault
	salts   rand.PCG
	links   []timedLink // by peer
	slots   int         // of the server: taken
	packet  wire.Packet
	bytes   []byte
}

// timedLink is a link with its times.
type timedLink struct {
	link
	heardAt, sentAt machine.Instant
	begun           bool // sentAt is set
}

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
		o.Slots = UsualSlots
	}
	if o.Farewells == 0 {
		o.Farewells = 10
	}
	fault := rightAll
	if o.Fault != nil {
		fault = o.Fault
	}
	if fault.connect != nil {
		fault.connect(&o)
	}
	return &Connection{options: o, fault: fault, salts: *rand.NewPCG(o.Seed, 0x5a17)}, nil
}

// Connected reports whether the connection to a peer is established.
func (c *Connection) Connected(peer machine.Peer) bool {
	return int(peer) < len(c.links) && c.links[peer].state == linkConnected
}

// Waiting reports whether a connection to a peer is asked for, and not established yet.
func (c *Connection) Waiting(peer machine.Peer) bool {
	return int(peer) < len(c.links) && c.links[peer].state != linkNone && !c.Connected(peer)
}

// Step processes one input. See machine.Endpoint. The commands are Connect for a
// client, Disconnect for both, and Kick and Stop for a server. A Disconnect without a
// connection does nothing, except that a client stops asking for one.
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
		c.links = []timedLink{{heardAt: now}}
		c.links[0].request(c.salts.Uint64())
		c.wake(now, 0, out)
	case in.Kind == machine.Disconnect:
		c.leave(now, in.Peer, out)
	case in.Kind == machine.Kick && c.options.Server:
		if !c.Connected(in.Peer) {
			return fmt.Errorf("%v: peer %d is not connected", in.Kind, in.Peer)
		}
		c.leave(now, in.Peer, out)
	case in.Kind == machine.Stop && c.options.Server:
		for peer := range c.links {
			c.leave(now, machine.Peer(peer), out)
		}
	default:
		return fmt.Errorf("%v: not a command of this side of a connection", in.Kind)
	}
	return nil
}

// leave ends the connection to a peer, if there is one.
func (c *Connection) leave(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	if int(peer) >= len(c.links) || c.links[peer].state == linkNone {
		return
	}
	if c.Connected(peer) {
		for range c.options.Farewells {
			c.send(now, peer, wire.ConnectDisconnect, out)
		}
	}
	if !c.fault.restless {
		c.end(now, peer, gaffer.EventDisconnected, out)
	}
}

// serve processes a client's packet.
func (c *Connection) serve(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	if int(peer) >= 1<<16 {
		return // no driver has so many; a number alone must not make the table grow
	}
	for int(peer) >= len(c.links) {
		c.links = append(c.links, timedLink{})
	}
	l, p := &c.links[peer], &c.packet
	switch l.serverReads(p) {
	case stepAskedOther:
		c.deny(peer, p.ClientSalt, DenyConnected, out)
	case stepAskedAgain:
		if now >= l.sentAt.Add(c.options.Every) {
			c.send(now, peer, wire.ConnectChallenge, out)
		}
	case stepAsked:
		if c.slots >= c.options.Slots {
			c.deny(peer, p.ClientSalt, DenyFull, out)
			return
		}
		*l = timedLink{heardAt: now}
		l.challenge(p.ClientSalt, c.salts.Uint64())
		c.send(now, peer, wire.ConnectChallenge, out)
		if c.fault.unanswered {
			c.admit(now, peer, out)
		}
	case stepAnswered:
		if c.slots >= c.options.Slots {
			c.deny(peer, p.ClientSalt, DenyFull, out)
			*l = timedLink{}
			return
		}
		c.admit(now, peer, out)
	case stepHeard:
		l.heardAt = now
		if p.Handshake == wire.ConnectResponse {
			c.confirm(now, peer, out)
		}
	case stepEnded:
		c.end(now, peer, gaffer.EventDisconnected, out)
	}
}

// admit gives a slot to a client.
func (c *Connection) admit(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	l := &c.links[peer]
	c.slots++
	l.admit()
	l.begun = false
	c.tell(now, gaffer.EventConnected, peer, out)
	c.confirm(now, peer, out)
}

// confirm answers a response: the first one at once, and its copies within Every once.
func (c *Connection) confirm(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	l := &c.links[peer]
	l.heardAt = now
	if !l.begun || now >= l.sentAt.Add(c.options.Every) {
		c.send(now, peer, wire.ConnectKeepAlive, out)
	}
}

// answer processes the server's packet.
func (c *Connection) answer(now machine.Instant, out *machine.Effects) {
	l := &c.links[0]
	switch l.clientReads(&c.packet) {
	case stepRefused:
		c.end(now, 0, gaffer.EventRefused, out)
	case stepChallenged, stepHeard:
		l.heardAt = now
	case stepConnected:
		l.heardAt = now
		c.tell(now, gaffer.EventConnected, 0, out)
	case stepEnded:
		c.end(now, 0, gaffer.EventDisconnected, out)
	}
}

// wake sends what is due to a peer, and gives up on a silent one.
func (c *Connection) wake(now machine.Instant, peer machine.Peer, out *machine.Effects) {
	l := &c.links[peer]
	at, kind, ok := c.due(l)
	switch {
	case l.state == linkNone:
	case now >= l.heardAt.Add(c.options.Timeout):
		c.end(now, peer, gaffer.EventTimedOut, out)
	case ok && now >= at:
		c.send(now, peer, kind, out)
	}
}

// due returns what a side sends by itself, and when.
func (c *Connection) due(l *timedLink) (at machine.Instant, kind wire.HandshakeKind, ok bool) {
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
	pk := wire.Packet{Handshake: kind, ClientSalt: l.client, ChallengeSalt: l.server}
	if c.fault.salts != nil {
		c.fault.salts(&l.link, &pk)
	}
	c.put(peer, &pk, out)
	if c.fault.asksOn && kind == wire.ConnectResponse {
		c.put(peer, &wire.Packet{Handshake: wire.ConnectRequest, ClientSalt: l.client}, out)
	}
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
	*l = timedLink{}
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
			fmt.Sprint(peer), l.state.String(), fmt.Sprintf("%016x", l.client), fmt.Sprintf("%016x", l.server),
		})
	}
	v.Tables = append(v.Tables, t)
	if c.options.Server {
		v.Gauges = append(v.Gauges,
			machine.Gauge{Name: "slots taken", Value: float64(c.slots), Unit: "slots", Grade: machine.Certain},
			machine.Gauge{Name: "slots", Value: float64(c.options.Slots), Unit: "slots", Grade: machine.Certain})
	}
}

// Clone returns an independent copy.
func (c *Connection) Clone() machine.Endpoint {
	d := *c
	d.links = append([]timedLink(nil), c.links...)
	d.bytes = nil
	return &d
}
