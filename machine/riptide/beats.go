package riptide

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Beat is the part that a heartbeat plays: a client's ping or a server's answer.
type Beat uint8

const (
	BeatOpen   Beat = iota // not known yet; also every message of another type
	BeatPing               // sent by a client
	BeatAnswer             // sent by a server
)

// BeatRoles decides which heartbeats are pings and which are answers. In most dialects a ping has
// an RTT and an answer has none. In one dialect every heartbeat has an RTT (Dialect.RTTBothWays),
// so there the sender's role decides. The handshake shows the roles. Without a handshake the ids
// do: a client sends each id first, and a server repeats it.
//
// Example, from a capture that begins in the middle:
//
//   - A sends id 7 and B sends id 7, so A is the client.
//   - A sends id 7 and B sends id 8, so B is the client. A's 7 answered a ping from before the
//     capture.
type BeatRoles struct {
	votes  int8 // positive: A is the client; negative: B is
	met    [2]bool
	newest [2]uint8 // newest id that each side has sent
}

const (
	// handshakeVotes is the weight of a handshake, in heartbeats. A late copy of a ping, after its
	// answer, counts against the true roles. But each second the ping and its answer count for them.
	// Source: measured, TestMarginsRiptide
	handshakeVotes int8 = 2
	// mostVotes is the largest sum of votes. It lets new evidence soon outweigh wrong evidence.
	// Source: measured, TestMarginsRiptide
	mostVotes int8 = 8
)

// Take records a message and returns its part: BeatOpen for every type but a heartbeat. from is the
// sender, which speaks dialect d.
func (r *BeatRoles) Take(from machine.Side, d *wire.Dialect, m *wire.Message) Beat {
	switch m.Type {
	case wire.Connect:
		if d.RTTBothWays {
			r.shake(from)
		}
	case wire.Welcome:
		if d.WelcomeOneWay {
			r.shake(from.Other())
		}
	case wire.Heartbeat:
		return r.heartbeat(from, d, m)
	}
	return BeatOpen
}

// shake records the client that a handshake shows.
func (r *BeatRoles) shake(client machine.Side) {
	if r.votes == 0 {
		r.vote(client, handshakeVotes)
	}
}

func (r *BeatRoles) heartbeat(from machine.Side, d *wire.Dialect, m *wire.Message) Beat {
	switch {
	case !m.HasRTT:
		r.vote(from.Other(), 1)
	case !d.RTTBothWays:
		r.vote(from, 1)
	case !r.met[from.Other()]:
	case int8(m.Ping-r.newest[from.Other()]) > 0:
		r.vote(from, 1)
	default:
		r.vote(from.Other(), 1)
	}
	if !r.met[from] || int8(m.Ping-r.newest[from]) > 0 {
		r.met[from], r.newest[from] = true, m.Ping
	}
	client, known := r.client()
	switch {
	case !m.HasRTT:
		return BeatAnswer
	case !d.RTTBothWays:
		return BeatPing
	case !known:
		return BeatOpen
	case client == from:
		return BeatPing
	}
	return BeatAnswer
}

// vote records evidence that a side is the client.
func (r *BeatRoles) vote(client machine.Side, weight int8) {
	if client == machine.B {
		weight = -weight
	}
	r.votes = min(max(r.votes+weight, -mostVotes), mostVotes)
}

// client returns the side that sends pings. known is false while the evidence is even.
func (r *BeatRoles) client() (client machine.Side, known bool) {
	if r.votes < 0 {
		return machine.B, true
	}
	return machine.A, r.votes > 0
}
