package analyze

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// When a flow that had been silent is held to have lost its binding at a NAT.
const (
	// idleRecent is how long before the silence each side must have sent at the latest. A side
	// that was gone before is no matter of the silence.
	// Source: definition, nat-idle: a keep-alive every five seconds is rare, and still counts
	idleRecent = 5 * time.Second
	// idlePackets and idleAfter are how many packets the one side must send in vain, and for how
	// long. An answer takes less than two seconds on any path that a game bears.
	// Source: definition, nat-idle: five packets over two seconds, as socket-poisoned waits
	idlePackets = 5
	idleAfter   = 2 * time.Second
)

// idle is a silence of both sides of a flow, and what the side that ended it sent since.
type idle struct {
	took    time.Duration
	from    machine.Side
	at      machine.Instant // when the silence ended
	last    machine.Instant // when the side sent last
	ref     machine.Ref
	packets uint64 // 0 if the other side answered
}

// watchIdle notes a datagram of a flow whose pace does not know it yet.
func (s *Session) watchIdle(f *Flow, d *machine.Datagram) {
	x := f.has().idle
	if x != nil && x.packets > 0 {
		if d.From != x.from {
			x.packets = 0
			return
		}
		x.packets++
		x.last = max(x.last, d.At)
		return
	}
	own, peer := &f.pace[d.From&1], &f.pace[d.From&1^1]
	if own.packets == 0 || peer.packets == 0 {
		return
	}
	since := max(own.last, peer.last)
	took := d.At.Sub(since)
	if took < s.thresholds.Idle || since.Sub(min(own.last, peer.last)) > idleRecent {
		return
	}
	if x == nil {
		x = &idle{}
		f.gets().idle = x
	}
	*x = idle{took: took, from: d.From, at: d.At, last: d.At, ref: d.Ref, packets: 1}
}

// silence returns for how long neither side had sent when a side came back elsewhere, or 0 if the
// two did not fall silent together.
func (f *Flow) silence(side machine.Side, back machine.Instant) time.Duration {
	own, peer := &f.pace[side], &f.pace[side.Other()]
	if x := f.has().idle; x != nil && x.packets > 0 && x.from != side && x.at > own.last {
		return min(x.took, back.Sub(own.last)) // its peer sent again, in vain
	}
	since, other := max(own.last, peer.last), min(own.last, peer.last)
	if peer.packets == 0 || since.Sub(other) > idleRecent || since >= back {
		return 0
	}
	return back.Sub(since)
}

// noteIdle reports a silence after which only one side of a flow that ends was captured.
func (s *Session) noteIdle(f *Flow) {
	x := f.has().idle
	if x == nil || f.Transport != capture.UDP || x.packets < idlePackets || x.last.Sub(x.at) < idleAfter {
		return
	}
	a := machine.Anomaly{
		Rule: natIdle, Side: x.from.Other(), Certainty: machine.Possible, At: x.at, Ref: x.ref,
		Figures: [3]float64{x.took.Seconds(), float64(x.packets), x.last.Sub(x.at).Seconds()},
	}
	silent, sender := f.endpoint(x.from.Other()), f.endpoint(x.from)
	c := s.knownPairs().find(callerOf(silent, sender))
	if c != nil && c.port != silent.port && c.newest > x.at.Add(-x.took) {
		a.Certainty, a.About = machine.Likely, c.ref
	}
	if next := f.has().next; next != nil { // the player itself, and not only somebody of its address
		a.About = next.FirstRef
	}
	s.note(f, &a)
}

var natIdle = &machine.Rule{
	ID: "nat-idle", Severity: machine.Warn, Absence: true, Origin: machine.OriginNetwork,
	Summary: "after a long silence of both sides, nothing of the side came through any more",
	Explain: `Neither side sent anything for 30 s or more. Then the peer sent again, and nothing of this side was captured any more. Both sides had sent until the silence began.

That is how it looks when a NAT forgets a connection. A router at home, or a provider, passes packets inward only while it remembers that some went out. It forgets a UDP port that is not used. RFC 4787 asks for two minutes or more; some devices forget after 30 s. The server's packets then go nowhere. What the client sends gets another port, which the server does not know.

The silence is certain, and its cause is not: the process of this side may have ended without a word. The finding is likely if the side's address appears at the same peer with another port, after the silence began: the finding names the first frame of that. Otherwise it is possible.

Where packet numbers or keys show that the player went on elsewhere, the new flow has the finding rebound. If the address is another one too, and not only the port, the player may have changed its network instead.

Send a keep-alive every 15 s or so from the side behind the NAT, and let a server take a known connection from a new port.

--set idle=2m sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("after %.0f s without a packet of either side, the peer sent %.0f packets over %.1f s, "+
			"and nothing of this side came", worst[0], worst[1], worst[2])
	},
}
