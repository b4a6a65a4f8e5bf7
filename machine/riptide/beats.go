package riptide

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Beat says what a heartbeat is.
type Beat uint8

const (
	BeatOpen   Beat = iota // not known yet; also every message of another type
	BeatPing               // a client asks
	BeatAnswer             // a server answers
)

// BeatRoles tells pings from answers. In most dialects a ping has an RTT and an
// answer has none. In one whose document gives every heartbeat an RTT
// (Dialect.RTTBothWays) the sender's role decides. The handshake tells the roles.
// Without it the ids do: a client shows an id first, a server repeats it.
//
// Example, of a capture that begins in the middle: A sends id 7 and B sends id 7,
// so A asks. A sends id 7 and B sends id 8, so B asks, and A's 7 was an answer to
// a ping before the capture.
type BeatRoles struct {
	votes  int8 // for A as the client; negative for B
	met    [2]bool
	newest [2]uint8 // id that each side has shown
}

const (
	// handshakeVotes is how many heartbeats a handshake outweighs. One late copy of
	// a ping behind its answer speaks against the roles, and every second the ping
	// and its answer speak for them.
	handshakeVotes = 2
	// mostVotes bounds how long wrong evidence takes to be outweighed.
	mostVotes = 8
)

// Take takes a message of a side that speaks a dialect, and tells what it is.
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

// shake takes the client that a handshake shows.
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

// vote takes evidence that a side is the client.
func (r *BeatRoles) vote(client machine.Side, weight int8) {
	if client == machine.B {
		weight = -weight
	}
	r.votes = min(max(r.votes+weight, -mostVotes), mostVotes)
}

// client returns the side that asks; false while that is open.
func (r *BeatRoles) client() (client machine.Side, known bool) {
	if r.votes < 0 {
		return machine.B, true
	}
	return machine.A, r.votes > 0
}
