package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// When a client is held to connect again and again.
const (
	// reconnectLeast is how many connections in a row must have ended.
	// Source: definition, reconnect-loop: a player who tries again once or twice is no loop
	reconnectLeast = 3
	// reconnectYoung is how long such a connection lasts at most.
	// Source: definition, reconnect-loop: a visit to a lobby lasts longer, and timeouts of 5 to 20 s fit in
	reconnectYoung = 30 * time.Second
	// reconnectPause is how soon the next one follows the end of one.
	// Source: definition, reconnect-loop: a player who waits a minute has given up
	reconnectPause = time.Minute
	// reconnectOverlap is how long a client may send on an old connection when the next has begun.
	// Source: definition, reconnect-loop: the last packets of the old connection, in any order
	reconnectOverlap = 500 * time.Millisecond
)

// loop is a row of connections of one client address to one server, each young when it ended. The
// zero value has seen none.
type loop struct {
	ended   int             // connections that ended
	begun   machine.Instant // when the first of them began
	over    machine.Instant // when the client sent last on the last of them
	endings [machine.Endings]int
	first   [reconnectLeast]connection
	newest  connection      // goes on, as far as is known; ref is 0 for none
	last    machine.Instant // when the client sent last
	met     bool            // last is known
	crowd   bool            // two connections at a time: several players share the address
	told    *Flow           // has the finding; nil if it was not reported
	sure    machine.Certainty
}

// connection is the beginning of a connection.
type connection struct {
	at  machine.Instant
	ref machine.Ref
}

// parting is a flow with a connection that a client opened, and that is over.
type parting struct {
	flow   *Flow
	client machine.Side
	ending machine.Ending
}

// noteReconnect notes the connection of a flow that ends, and reports it if it is one of a loop. At
// the end of the capture that waits until all flows have ended: see noteReconnects.
func (s *Session) noteReconnect(f *Flow) {
	facts := &f.ended.fresh.Facts
	client := machine.A
	if facts.Client[machine.B] {
		client = machine.B
	}
	if f.Transport != capture.UDP || f.pace == nil || !facts.Opened || !facts.Client[client] {
		return
	}
	p := parting{f, client, facts.Ending}
	if s.finishing {
		s.partings = append(s.partings, p)
		return
	}
	s.parted(&p)
}

// noteReconnects notes the connections of the flows that the end of the capture ended, by the flows'
// numbers. They end in another order where the protocols of some become known only then.
func (s *Session) noteReconnects() {
	slices.SortStableFunc(s.partings, func(x, y parting) int { return cmp.Compare(x.flow.ID, y.flow.ID) })
	for i := range s.partings {
		s.parted(&s.partings[i])
	}
	s.partings = nil
}

// parted takes a connection into the loop of its client.
func (s *Session) parted(p *parting) {
	f, client := p.flow, p.client
	c := s.knownPairs().of(callerOf(f.endpoint(client), f.endpoint(client.Other())))
	if c.loop == nil {
		c.loop = &loop{}
	}
	x := c.loop
	last := max(f.First, f.pace[client].last)
	gap := f.First.Sub(x.last)
	if x.met && gap < -reconnectOverlap {
		x.crowd = true
		return
	}
	young := last.Sub(f.First) <= reconnectYoung
	switch {
	case x.met && gap > reconnectPause, !young:
		*x = loop{crowd: x.crowd}
	case x.newest.ref != 0: // it gave way to this one
		s.endOf(f, client, x, machine.EndingUnknown)
	}
	x.last, x.met = last, true
	if !young {
		return
	}
	x.newest = connection{f.First, f.FirstRef}
	if p.ending != machine.EndingUnknown {
		s.endOf(f, client, x, p.ending)
	}
}

// endOf notes that the newest connection of a loop ended. It reports the loop if that was not the
// first or second one. Flow f shows the end.
func (s *Session) endOf(f *Flow, client machine.Side, x *loop, ending machine.Ending) {
	now := x.newest
	if x.ended == 0 {
		x.begun = now.at
	}
	if x.ended < reconnectLeast {
		x.first[x.ended] = now
	}
	x.ended++
	x.endings[ending]++
	x.newest, x.over = connection{}, x.last
	if x.ended < reconnectLeast {
		return
	}
	usual := machine.EndingUnknown
	for e, n := range x.endings {
		if n > x.endings[usual] {
			usual = machine.Ending(e)
		}
	}
	a := machine.Anomaly{
		Rule: reconnectLoop, Side: client, Certainty: x.sure, At: now.at, Ref: now.ref,
		Figures: [3]float64{float64(x.ended), x.over.Sub(x.begun).Seconds(), float64(usual)},
	}
	if x.told == nil || x.told.gone {
		x.told, x.sure = f, machine.Likely
		if x.crowd {
			x.sure = machine.Possible
		}
		a.Certainty = x.sure
		for _, early := range x.first[:reconnectLeast-1] {
			b := a
			b.At, b.Ref = early.at, early.ref
			s.found(f, &b)
		}
	}
	s.note(x.told, &a)
}

var reconnectLoop = &machine.Rule{
	ID: "reconnect-loop", Severity: machine.Warn, Origin: machine.OriginLibrary,
	Summary: "the client connects again and again, and each connection ends soon",
	Explain: `The same client asked the same server for a connection three times or more, each time within a minute after the one before. No connection lasted longer than 30 s. The finding names how most of them ended:

- "no answer": the server never answered.
- "token expired": the same, and the connect token had expired by the capture's clock.
- "denied": the server refused the client, for example because it is full.
- "disconnect": a side said goodbye. A game that fails while it loads often does so.
- "timeout": a side fell silent.
- "unknown": the client began anew without a word about the connection before.

ackscope takes connections from one address to one server for one client, whatever their ports, if one begins when the other has ended. The finding is likely. It is possible if the address had two connections at a time: then several players share it. It stands at one flow of the loop, and its frames are the first ones of each connection, sixteen at most.

Read the finding of one connection, or "ackscope autopsy": the cause of one is that of all. Clients that try again should wait longer each time, so that a server that starts anew is not flooded.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f connections within %.1f s, none longer than %.0f s; most of them ended with: %s", worst[0],
			worst[1], reconnectYoung.Seconds(), machine.Ending(worst[2]))
	},
}
