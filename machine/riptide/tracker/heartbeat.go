package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// heartbeats are the client's pings and what they measure.
type heartbeats struct {
	pings, answers uint64
	ping           uint8
	pingAt         machine.Instant
	pingRef        machine.Ref
	waiting        bool          // the newest ping has no answer yet
	unanswered     int           // pings in a row
	sampled        bool          // an answer has passed since the client last told its RTT
	sample         time.Duration // how long that one took, as it passed the tap
	unread         bool          // the server at the tap has not answered the newest ping, so it has not read what it tells
	told           int           // the RTT that the client told last, ms; 0 none

	samples [beatSamples]beatSample // the newest told ones, by count
	count   int
}

// beatSample is an RTT that the client has told, and what it was at the tap.
type beatSample struct {
	atTap time.Duration
	told  time.Duration
}

const beatSamples = 16

// answer takes the server's answer to the newest ping. The library takes a copy
// of it for another sample.
func (h *heartbeats) answer(client, server *side, at machine.Instant) {
	if h.unread {
		server.smoothed, h.unread = riptide.Smooth(server.smoothed, h.told), false
	}
	if h.sampled {
		client.smoothed = riptide.Smooth(client.smoothed, h.untold())
	} else {
		h.answers++
	}
	h.waiting, h.sampled = false, true
	h.sample = at.Sub(h.pingAt)
	h.unanswered = 0
}

// tell takes the RTT that the client gives for the newest answer.
func (h *heartbeats) tell(told int) {
	h.samples[h.count%beatSamples] = beatSample{h.sample, time.Duration(told) * time.Millisecond}
	h.count++
}

const (
	tickLeast, tickMost, tickStep = 4 * time.Millisecond, 40 * time.Millisecond, time.Millisecond / 4
	// usualSlack is half a tick of an application that runs at 100 a second.
	usualSlack = 5 * time.Millisecond
)

// tick gives the time between two ticks of the client's application, which its
// clock counts in: that by which most samples are their times at the tap rounded
// up, the longest of several; 0 where it fits too few.
func (h *heartbeats) tick() (best time.Duration) {
	n := min(h.count, beatSamples)
	if n < 4 {
		return 0
	}
	most := n*4/5 - 1
	for tick := tickMost; tick >= tickLeast; tick -= tickStep {
		fits := 0
		for _, s := range h.samples[:n] {
			if off := s.told - ceil(s.atTap, tick); off.Abs() <= 3*time.Millisecond/2 {
				fits++
			}
		}
		if fits > most {
			best, most = tick, fits
		}
	}
	return best
}

func ceil(d, tick time.Duration) time.Duration { return d + tick - 1 - (d+tick-1)%tick }

// untold gives the RTT in ms of the newest answer as the client's clock measures
// it, before it tells it.
func (h *heartbeats) untold() int {
	if tick := h.tick(); tick > 0 {
		return int(ceil(h.sample, tick) / time.Millisecond)
	}
	slack, n := usualSlack, min(h.count, beatSamples)
	if n > 0 {
		slack = 0
		for _, s := range h.samples[:n] {
			slack += s.told - s.atTap
		}
		slack /= time.Duration(n)
	}
	return int((h.sample + slack).Round(time.Millisecond) / time.Millisecond)
}

// rtt gives the side's last RTT sample and its smoothed RTT, as its library has
// them, in ms; negative where it has none.
func (t *follower) rtt(x machine.Side) (sample, smoothed int, sure machine.Certainty) {
	s, c := &t.sides[x], &t.life
	sample, smoothed, sure = -1, s.smoothed, machine.Likely
	if smoothed >= 0 {
		sample = c.told
	}
	if s.near {
		sure = s.grade()
	}
	if t.roles && t.client == x && s.ordered {
		if c.sampled {
			own := c.untold()
			return own, riptide.Smooth(smoothed, own), machine.Likely
		}
	}
	return sample, smoothed, sure
}

// earlyBeat is a heartbeat of which it is not known yet whether it asks.
type earlyBeat struct {
	sighting
	m wire.Message
}

// heartbeat takes a heartbeat of either side.
func (t *follower) heartbeat(p *sighting, m *wire.Message, is riptide.Beat, out *machine.Effects) {
	c := &t.life
	if is == riptide.BeatOpen {
		if t.early == nil {
			t.early = &earlyBeat{sighting{at: p.at, ref: p.ref, from: p.from}, *m}
		}
		return
	}
	if e := t.early; e != nil {
		t.early = nil
		if asks := is == riptide.BeatPing; asks == (e.from == p.from) {
			t.beat(&e.sighting, &e.m, out)
		}
	}
	switch {
	case is == riptide.BeatPing:
		t.beat(p, m, out)
	case c.pings > 0 && m.Ping == c.ping:
		c.answer(&t.sides[p.from.Other()], &t.sides[p.from], p.at)
	}
}

// beat takes a heartbeat of the client. The RTT that it tells is the newest
// sample: the server smooths what it is told, the client what it measured.
func (t *follower) beat(p *sighting, m *wire.Message, out *machine.Effects) {
	c := &t.life
	if !t.roles {
		t.client, t.roles = p.from, true
	}
	// The network doubles a heartbeat: the server takes each copy, the client has sent one.
	again := c.pings > 0 && m.Ping == c.ping && p.at.Sub(c.pingAt) < riptide.HeartbeatInterval/2
	if own := &t.sides[p.from]; !again && own.near && !own.stream && t.client == p.from && c.pings > 0 && m.Ping != c.ping+1 && !own.behaviour.Port && !own.mayPort {
		own.doubts.lacks++
	}
	if c.waiting && c.pings > 0 && !again {
		c.unanswered++
		out.Report(riptide.HeartbeatUnanswered, p.from.Other(), machine.Certain, c.pingAt, c.pingRef, 0, float64(c.unanswered))
	}
	if gap := p.at.Sub(c.pingAt); c.pings > 0 && !again && gap > riptide.HeartbeatSlow {
		out.Report(riptide.HeartbeatLate, p.from, machine.Certain, p.at, p.ref, c.pingRef, machine.Milliseconds(gap))
	}
	client, server := &t.sides[p.from], &t.sides[p.from.Other()]
	// Pytide tells 0 where the library tells -1, none yet; servers take 0 for a sample.
	if told := int(m.RTT); told >= 0 {
		if !again && (told > 0 || !client.behaviour.Port) && (c.sampled || client.smoothed < 0) {
			client.smoothed = riptide.Smooth(client.smoothed, told)
			if c.sampled {
				c.tell(told)
			}
		}
		c.told = told
		if c.unread = server.near; !c.unread {
			server.smoothed = riptide.Smooth(server.smoothed, told)
		}
	}
	if again {
		return
	}
	c.sampled = false
	sent := p.at
	if t.config.Stream && c.pings > 0 {
		// TCP may hold it back: it was sent when it was due.
		sent = min(sent, c.pingAt.Add(riptide.HeartbeatInterval+2*usualSlack))
	}
	c.pings++
	c.ping, c.pingAt, c.pingRef, c.waiting = m.Ping, sent, p.ref, true
}
