package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/clock"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// heartbeats are the client's pings and what they measure.
//
//   - answers ≤ pings
//   - ping, pingAt and pingRef are valid once pings is not 0; sample is valid once answers is not 0
type heartbeats struct {
	pings, answers uint64
	ping           uint8
	pingAt         machine.Instant
	pingRef        machine.Ref
	waiting        bool          // the newest ping has no answer yet
	unanswered     int           // pings in a row
	sampled        bool          // an answer has passed since the client last reported its RTT
	sample         time.Duration // the round trip of that answer at the tap
	// The server at the tap has not answered the newest ping, so it has not read the RTT in it.
	unread   bool
	reported int         // the RTT that the client reported last, ms; 0 if none
	clock    clock.Clock // of the client
}

// answer records the server's answer to the newest ping. The library counts a copy of the answer as
// another sample.
func (h *heartbeats) answer(client, server *side, at machine.Instant) {
	if h.unread {
		server.smoothed, h.unread = riptide.Smooth(server.smoothed, h.reported), false
	}
	if h.sampled {
		client.smoothed = riptide.Smooth(client.smoothed, h.estimate())
	} else {
		h.answers++
	}
	fresh := !h.sampled
	h.waiting, h.sampled = false, true
	h.sample = at.Sub(h.pingAt)
	if fresh {
		client.figures.trip(h.sample)
		client.figures.arrived.one()
	}
	h.unanswered = 0
}

// estimate returns the RTT in ms that the client's clock measures for the newest answer, before the
// client reports it.
func (h *heartbeats) estimate() int { return h.clock.RTT(h.sample) }

// rtt returns a side's last RTT sample and its smoothed RTT, in ms, as its library has them. They
// are negative where the library has none.
func (t *follower) rtt(x machine.Side) (sample, smoothed int, sure machine.Certainty) {
	s, c := &t.sides[x], &t.conn
	sample, smoothed, sure = -1, s.smoothed, machine.Likely
	if smoothed >= 0 {
		sample = c.reported
	}
	if s.tap.near {
		sure = s.tap.grade()
	}
	if t.roles && t.client == x && s.tap.ordered {
		if c.sampled {
			own := c.estimate()
			return own, riptide.Smooth(smoothed, own), machine.Likely
		}
	}
	return sample, smoothed, sure
}

// earlyBeat is a heartbeat that may be a ping or an answer.
type earlyBeat struct {
	sighting
	m wire.Message
}

// heartbeat records a heartbeat of either side.
func (t *follower) heartbeat(p *step) {
	c := &t.conn
	if p.beat == riptide.BeatOpen {
		if t.early == nil {
			t.early = &earlyBeat{sighting{at: p.at, ref: p.ref, from: p.from}, *p.m}
		}
		return
	}
	if e := t.early; e != nil {
		t.early = nil
		if asks := p.beat == riptide.BeatPing; asks == (e.from == p.from) {
			t.beat(&step{sighting: e.sighting, m: &e.m, own: &t.sides[e.from], peer: &t.sides[e.from.Other()], out: p.out})
		}
	}
	switch {
	case p.beat == riptide.BeatPing:
		t.beat(p)
	case c.pings > 0 && p.m.Ping == c.ping:
		if p.own.tap.ordered {
			t.showRead(p.own, proof{c.pingAt, c.pingRef}, p.at)
		}
		c.answer(p.peer, p.own, p.at)
	}
}

// pingsMost is how many pings in a row can be lost before their numbers no longer show how many.
// Source: definition, steady-loss: a client that sends a ping a second is gone after a minute
const pingsMost = 64

// beat records a heartbeat of the client. The RTT in it is the newest sample. The server smooths
// the reported RTT, and the client the one that it measured.
func (t *follower) beat(p *step) {
	m := p.m
	c := &t.conn
	if !t.roles {
		t.client, t.roles = p.from, true
	}
	// The network can duplicate a heartbeat: the server processes each copy, but the client sent one.
	repeated := c.pings > 0 && m.Ping == c.ping && p.at.Sub(c.pingAt) < riptide.HeartbeatInterval/2
	client, server := p.own, p.peer
	lacking := !repeated && client.tap.near && !client.tap.stream && t.client == p.from && c.pings > 0 &&
		m.Ping != c.ping+1 && !client.behaviour.Port && !client.maybePort
	if lacking {
		client.tap.lacks++
	}
	if c.pings > 0 && !repeated && !client.tap.stream {
		server.path.Echo(c.waiting)
		if gap := m.Ping - c.ping - 1; !client.tap.near && gap < pingsMost && !client.behaviour.Port && !client.maybePort {
			client.path.Once(uint64(gap))
		}
	}
	if c.waiting && c.pings > 0 && !repeated {
		c.unanswered++
		p.out.At(c.pingAt, c.pingRef).Report(riptide.HeartbeatUnanswered, p.from.Other(), machine.Certain, 0,
			float64(c.unanswered))
	}
	if gap := p.at.Sub(c.pingAt); c.pings > 0 && !repeated && !lacking && gap > riptide.HeartbeatSlow {
		p.out.At(p.at, p.ref).Report(riptide.HeartbeatLate, p.from, machine.Certain, c.pingRef, machine.Milliseconds(gap))
	}
	// Without a sample Pytide reports 0, and the library -1. Servers take 0 for a sample.
	if told := int(m.RTT); told >= 0 {
		if !repeated && (told > 0 || !client.behaviour.Port) && (c.sampled || client.smoothed < 0) {
			client.smoothed = riptide.Smooth(client.smoothed, told)
			if c.sampled {
				c.clock.Add(told, c.sample)
			}
		}
		c.reported = told
		if c.unread = server.tap.near; !c.unread {
			server.smoothed = riptide.Smooth(server.smoothed, told)
		}
	}
	if repeated {
		return
	}
	client.figures.arrived.asked++
	c.sampled = false
	sent := p.at
	if t.config.Stream && c.pings > 0 {
		// TCP may have delayed it: assume that it was sent when it was due.
		sent = min(sent, c.pingAt.Add(riptide.HeartbeatInterval+2*clock.UsualSlack))
	}
	c.pings++
	c.ping, c.pingAt, c.pingRef, c.waiting = m.Ping, sent, p.ref, true
}
