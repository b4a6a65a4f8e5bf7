package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// connection is the life of the connection, as its messages tell it.
type connection struct {
	connects   int
	connectAt  machine.Instant
	connectRef machine.Ref
	answered   bool // by an echo, a Welcome or a Reject
	pendingAt  machine.Instant
	rejected   bool
	reason     uint8 // of the Reject, or of the Disconnect
	reasoned   bool
	welcomeAt  machine.Instant // the server's
	clientID   uint16
	joinedAt   machine.Instant // the client's own Welcome
	endedAt    machine.Instant
	endedBy    machine.Side
	endedRef   machine.Ref
	made, over [2]bool // in the eyes of the side's library: the connection stands; it has ended

	heartbeats
	heard   [2]machine.Instant // what last put off the side's timeout
	clients []uint16           // others that the client was told of
}

// session takes what a message tells about the connection's life.
// is says what a heartbeat is.
func (t *follower) session(p *step) {
	m := p.m
	c := &t.life
	peer := p.from.Other()
	oneWay := t.config.Senders[p.from].Codec.Dialect.WelcomeOneWay
	switch m.Type {
	case wire.Connect:
		if !t.roles {
			t.client, t.roles = p.from, true
			t.begin()
		}
		if p.from == t.client {
			c.connects++
			t.tells(p, riptide.EventConnect, uint32(c.connects))
			c.connectAt, c.connectRef = p.at, p.ref
		} else {
			if !c.answered {
				t.tells(p, riptide.EventPending, 0)
			}
			c.answered, c.pendingAt = true, p.at
		}
		c.heard[peer] = p.at
	case wire.Reject:
		c.answered = true
		if !c.rejected {
			c.rejected, c.reason, c.reasoned = true, m.Reason, true
			t.tells(p, riptide.EventRejected, uint32(m.Reason))
			t.failed(p, m.Reason)
			p.out.Report(riptide.Rejected, p.from, machine.Certain, p.at, p.ref, c.connectRef, float64(m.Reason))
		}
	case wire.Welcome:
		if first := m.Sequence == 1 || m.Sequence == 2; first && !t.begun && !t.sides[0].out.met && !t.sides[1].out.met {
			t.begin()
		}
		c.heard[peer] = p.at
		if oneWay && !t.roles {
			t.client, t.roles = peer, true
		}
		if t.roles && p.from == t.client {
			if c.welcomeAt != 0 && c.joinedAt == 0 && m.ClientID != c.clientID {
				p.out.Report(riptide.WelcomeMismatch, p.from, machine.Certain, p.at, p.ref, 0, float64(c.clientID), float64(m.ClientID))
			}
			if c.joinedAt == 0 {
				t.tells(p, riptide.EventWelcomed, uint32(m.ClientID))
				t.connected(p, p.from, m.ClientID, machine.Certain)
				c.joinedAt = p.at
			}
			return
		}
		c.answered = true
		if c.welcomeAt == 0 {
			t.tells(p, riptide.EventWelcomed, uint32(m.ClientID))
			c.welcomeAt, c.clientID = p.at, m.ClientID
			if oneWay {
				t.connected(p, p.from, m.ClientID, machine.Certain)
			}
		}
	case wire.ClientConnected:
		if len(c.clients) < 1<<10 && !contains(c.clients, m.ClientID) {
			c.clients = append(c.clients, m.ClientID)
		}
	case wire.ClientDisconnected:
		for i, id := range c.clients {
			if id == m.ClientID {
				c.clients = append(c.clients[:i:i], c.clients[i+1:]...)
				break
			}
		}
	case wire.Heartbeat:
		c.heard[peer] = p.at
		t.heartbeat(p)
	case wire.Disconnect:
		if c.endedAt == 0 {
			c.endedAt, c.endedBy, c.endedRef = p.at, p.from, p.ref
			c.reason, c.reasoned = m.Reason, m.HasReason
			t.disconnected(p)
		}
	}
}

func contains(ids []uint16, id uint16) bool {
	for _, known := range ids {
		if known == id {
			return true
		}
	}
	return false
}

// begin makes the states those of a connection that has just begun.
func (t *follower) begin() {
	t.begun = true
	for i := range t.sides {
		s := &t.sides[i]
		s.in.known, s.out.known, s.notesIn.known, s.notesOut.known = true, true, true, true
	}
}
