package tracker

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// connection is the state of the connection, as its messages show it. A time is 0 while its event
// has not happened.
type connection struct {
	attempt attempt
	welcome welcome
	goodbye goodbye
	heartbeats

	reason   uint8 // from the Reject or the Disconnect
	reasoned bool  // reason is known

	made, over [2]bool            // the side's library counts the connection as made; as ended
	heard      [2]machine.Instant // when a message last restarted the side's timeout
	clients    []uint16           // other clients that the client heard of, clientsMost at most
}

// clientsMost is how many other clients of the server the tracker remembers.
// Source: bound, the other clients that are remembered
const clientsMost = 1 << 10

// attempt is a client's request for a connection. at and ref belong to its last Connect, and are
// valid once count is not 0.
type attempt struct {
	count     int
	at        machine.Instant
	ref       machine.Ref
	pendingAt machine.Instant // when the server said that its application decides
	answered  bool            // by an echo, a Welcome or a Reject
	rejected  bool            // implies answered
}

// welcome is how a server lets a client in. client is the client's id, and is valid once at is not
// 0.
type welcome struct {
	at       machine.Instant // of the server's Welcome
	joinedAt machine.Instant // of the client's own Welcome, which answers it
	client   uint16
}

// goodbye is the first Disconnect.
type goodbye struct {
	at machine.Instant
	by machine.Side
}

// ending returns how the connection ended.
func (c *connection) ending() machine.Ending {
	switch {
	case c.goodbye.at != 0:
		return machine.EndingDisconnect
	case c.attempt.rejected:
		return machine.EndingDenied
	case c.attempt.count > 0 && !c.attempt.answered && c.welcome.at == 0:
		return machine.EndingUnanswered
	case c.over[machine.A] || c.over[machine.B]:
		return machine.EndingTimeout
	}
	return machine.EndingUnknown
}

// session records what a message shows about the connection itself.
func (t *follower) session(p *step) {
	m, c := p.m, &t.conn
	switch m.Type {
	case wire.Connect:
		t.asks(p)
	case wire.Reject:
		if t.config.Senders[p.from].Codec.Dialect.RejectReason(m.Reason) == "Pending" {
			t.waits(p)
			return
		}
		c.attempt.answered = true
		if !c.attempt.rejected {
			c.attempt.rejected, c.reason, c.reasoned = true, m.Reason, true
			t.connectionEvent(p, riptide.EventRejected, uint32(m.Reason))
			t.failed(p, m.Reason)
			p.out.At(p.at, p.ref).Report(riptide.Rejected, p.from, machine.Certain, c.attempt.ref, float64(m.Reason))
		}
	case wire.Welcome:
		t.welcomes(p)
	case wire.ClientConnected:
		if len(c.clients) < clientsMost && !slices.Contains(c.clients, m.ClientID) {
			c.clients = append(c.clients, m.ClientID)
		}
	case wire.ClientDisconnected:
		if i := slices.Index(c.clients, m.ClientID); i >= 0 {
			c.clients = slices.Delete(c.clients, i, i+1)
		}
	case wire.Heartbeat:
		c.heard[p.peer.side] = p.at
		t.heartbeat(p)
	case wire.Disconnect:
		if c.goodbye.at == 0 {
			c.goodbye = goodbye{p.at, p.from}
			c.reason, c.reasoned = m.Reason, m.HasReason
			t.disconnected(p)
		}
	}
}

// asks records a Connect: a client's request, or a server's echo of it.
func (t *follower) asks(p *step) {
	c := &t.conn
	if !t.roles {
		t.client, t.roles = p.from, true
		t.begin()
	}
	if p.from == t.client {
		c.attempt.count++
		t.connectionEvent(p, riptide.EventConnect, uint32(c.attempt.count))
		c.attempt.at, c.attempt.ref = p.at, p.ref
	} else {
		t.waits(p)
	}
	c.heard[p.peer.side] = p.at
}

// waits records that the server tells a client that its application decides. The library answers the Connect by a
// Connect. The notes answer a repeated Connect by a Reject with reason Pending, which refuses nothing.
func (t *follower) waits(p *step) {
	a := &t.conn.attempt
	if !a.answered {
		t.connectionEvent(p, riptide.EventPending, 0)
	}
	a.answered, a.pendingAt = true, p.at
}

// welcomes records a Welcome: the server's, or the client's answer to it.
func (t *follower) welcomes(p *step) {
	m, c := p.m, &t.conn
	oneWay := t.config.Senders[p.from].Codec.Dialect.WelcomeOneWay
	if first := m.Sequence == 1 || m.Sequence == 2; first && !t.begun && !t.sides[0].out.met && !t.sides[1].out.met {
		t.begin()
	}
	c.heard[p.peer.side] = p.at
	if oneWay && !t.roles {
		t.client, t.roles = p.peer.side, true
	}
	if t.roles && p.from == t.client {
		if c.welcome.joinedAt != 0 {
			return
		}
		if c.welcome.at != 0 && m.ClientID != c.welcome.client {
			p.out.At(p.at, p.ref).Report(riptide.WelcomeMismatch, p.from, machine.Certain, 0, float64(c.welcome.client),
				float64(m.ClientID))
		}
		t.connectionEvent(p, riptide.EventWelcomed, uint32(m.ClientID))
		t.connected(p, p.from, m.ClientID, machine.Certain)
		c.welcome.joinedAt = p.at
		return
	}
	c.attempt.answered = true
	if c.welcome.at == 0 {
		t.connectionEvent(p, riptide.EventWelcomed, uint32(m.ClientID))
		c.welcome.at, c.welcome.client = p.at, m.ClientID
		if oneWay {
			t.connected(p, p.from, m.ClientID, machine.Certain)
		}
	}
}

// begin sets the states to those of a connection that has just begun.
func (t *follower) begin() {
	t.begun = true
	for i := range t.sides {
		s := &t.sides[i]
		s.in.known, s.out.known, s.notifyIn.known, s.notifyOut.known = true, true, true, true
	}
}
