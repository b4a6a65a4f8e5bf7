package article_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// knew is what an endpoint's own table says of its connection to peer 0.
type knew struct {
	at    machine.Instant
	state string // "none" without a connection
	salt  string // of the client
}

// happened is an event that an endpoint reported itself.
type happened struct {
	at   machine.Instant
	kind machine.EventKind
}

// handshakeRun is a client and a server, and what both really did.
type handshakeRun struct {
	seen   [3][]machine.Datagram // by tap
	states [2][]knew
	events [2][]happened
}

// runHandshake has a client connect and leave several times over one of the networks.
func runHandshake(t *testing.T, n sampleNet) *handshakeRun {
	t.Helper()
	client := newConnection(t, article.ConnectOptions{Side: machine.A, Seed: n.seed})
	server := newConnection(t, article.ConnectOptions{Side: machine.B, Seed: n.seed + 1, Server: true})
	idle := true
	r := &handshakeRun{}
	app := func(f *sim.Frame) {
		switch {
		case client.Connected(0) && f.Rand.IntN(200) == 0:
			f.Do(machine.Command{Kind: machine.Disconnect})
		case idle && f.Rand.IntN(30) == 0:
			f.Do(machine.Command{Kind: machine.Connect})
			idle = false
		}
	}
	ends := [2]machine.Endpoint{client, server}
	n.watch = func(s *sim.Step) {
		side := s.Host.Index
		var v machine.View
		ends[side].Inspect(&v)
		k := knew{at: s.At, state: "none"}
		for _, row := range v.Tables[0].Rows {
			k.state, k.salt = row[1], row[2]
		}
		r.states[side] = append(r.states[side], k)
		for _, e := range s.Out.Events {
			r.events[side] = append(r.events[side], happened{s.At, e.Kind})
			idle = idle || side == 0 && e.Kind != gaffer.EventConnected
		}
	}
	r.seen = n.run(t, ends, [2]sim.App{app, nil})
	return r
}

// since moves a time of the simulation to the captures of sampleNet.run.
func since(at machine.Instant) machine.Instant { return at.Add(time.Hour) }

// inSocket is how long before the end of a run packets may be left unread, or unanswered.
const inSocket = 300 * time.Millisecond

// TestConnectionTrackerTruth holds events and states of the handshake against what both
// endpoints really did, at the client, between and at the server:
//
//   - What is certain happened, and happened before it is told.
//   - A side's state at the tap lies between what its packets prove and what it knew if
//     it had read all that passed.
//   - Every connection that a side at the tap counted as made is told once.
func TestConnectionTrackerTruth(t *testing.T) {
	p := gaffertest.Builtin(wire.ArticleConnect).WithProtocolID(0x12341651)
	order := map[string]int{"none": 0, "requesting": 1, "responding": 2, "challenging": 2, "connected": 3}
	made, ended, compared := 0, 0, 0
	for _, n := range sampleNets(t) {
		n.seconds = 40
		if n.seed%3 == 2 { // the network goes down for good
			n.path.Outages = []sim.Outage{{From: machine.Instant(20 * time.Second), For: time.Hour}}
		}
		r := runHandshake(t, n)
		for k, tap := range sampleTaps {
			name := fmt.Sprintf("seed %d, tap at %v", n.seed, tap)
			tr := article.NewTracker(p, machine.Facts{Vantage: tap, End: since(machine.Instant(n.seconds) * 1e9)})
			var told []machine.Event
			var out machine.Effects
			for i := range r.seen[k] {
				d := &r.seen[k][i]
				out.Reset()
				tr.Observe(d, &out)
				told = append(told, out.Events...)
				for _, s := range []machine.Side{machine.A, machine.B} {
					if !tap.Near(s) {
						continue
					}
					shown, ahead, salt, ok := stateOf(tr, s)
					if !ok {
						continue
					}
					// A frame may send more than one packet: the state after the first of them
					// is one that the side had within that frame.
					is, was := r.stateAt(s, salt, d.At), r.stateAt(s, salt, d.At-1)
					low, high := order[shown], order[ahead]
					if (order[is] < low || order[is] > high) && (order[was] < low || order[was] > high) {
						t.Fatalf("%s, frame %d: %v is said to be %s, or %s; it was %s and is %s", name, d.Ref.Frame(), s, shown,
							ahead, was, is)
					}
					compared++
				}
			}
			out.Reset()
			tr.Finish(&out)
			end := since(machine.Instant(n.seconds) * 1e9)
			for _, e := range out.Events {
				if end.Sub(r.seen[k][e.About.Frame()-1].At) < inSocket {
					continue
				}
				e.At = end
				told = append(told, e)
			}
			for _, s := range []machine.Side{machine.A, machine.B} {
				r.holdEvents(t, name, s, tap.Near(s), told, end)
			}
			for _, e := range told {
				switch e.Kind {
				case gaffer.EventConnected:
					made++
				case gaffer.EventDisconnected, gaffer.EventTimedOut:
					ended++
				}
			}
			if n.seed < 2 {
				machinetest.Tracker(t, func() machine.Tracker { return article.NewTracker(p, machine.Facts{Vantage: tap}) },
					r.seen[k][:min(len(r.seen[k]), 200)])
			}
		}
	}
	if made < 12 || ended < 12 || compared < 400 {
		t.Errorf("%d connections made and %d ended were told, %d states compared: too few to hold anything", made, ended,
			compared)
	}
}

// stateAt returns a side's state of the connection of a client salt, at a time of the
// captures.
func (r *handshakeRun) stateAt(s machine.Side, salt string, at machine.Instant) string {
	state := "none"
	for _, k := range r.states[s] {
		if since(k.at) > at {
			break
		}
		if state = k.state; k.salt != salt {
			state = "none"
		}
	}
	return state
}

// stateOf reads a side's newest connection off its table: what is proved, and what it
// would be if it had read everything.
func stateOf(tr machine.Tracker, s machine.Side) (shown, ahead, salt string, ok bool) {
	var v machine.View
	tr.Inspect(s, &v)
	if len(v.Tables) == 0 || len(v.Tables[0].Rows) == 0 {
		return "", "", "", false
	}
	row := v.Tables[0].Rows[len(v.Tables[0].Rows)-1]
	shown, salt = row[3], row[1]
	switch shown {
	case "ended", "refused", "timed out":
		return "none", "none", salt, row[4] == "certain"
	}
	ahead = shown
	for _, word := range []string{"requesting", "responding", "challenging", "connected"} {
		if len(row[6]) > len(word) && row[6][:len(word)] == word {
			ahead = word
		}
	}
	if row[6] != "" && ahead == shown { // it ends once it has read that
		return "none", shown, salt, true
	}
	return shown, ahead, salt, true
}

// holdEvents compares what is told of a side with what it reported itself.
func (r *handshakeRun) holdEvents(t *testing.T, name string, s machine.Side, near bool, told []machine.Event,
	end machine.Instant,
) {
	t.Helper()
	left := slices.Clone(r.events[s])
	take := func(e machine.Event, kinds ...machine.EventKind) bool {
		for i, h := range left {
			if slices.Contains(kinds, h.kind) && since(h.at) <= e.At {
				left = slices.Delete(left, i, i+1)
				return true
			}
		}
		return false
	}
	for _, e := range told {
		if e.Side != s {
			continue
		}
		ok := true
		switch e.Kind {
		case gaffer.EventConnected:
			ok = take(e, e.Kind)
		case gaffer.EventDisconnected, gaffer.EventTimedOut, gaffer.EventRefused:
			// Away from the side, which of both ended it is not proved by a new attempt.
			kinds := []machine.EventKind{e.Kind}
			if !near {
				kinds = []machine.EventKind{gaffer.EventDisconnected, gaffer.EventTimedOut, gaffer.EventRefused}
			}
			ok = take(e, kinds...) || e.Certainty < machine.Certain && !near
		}
		if !ok {
			t.Errorf("%s: of %v it is told as %v that %s, at %v: it did not happen by then; it reported %v", name, s,
				e.Certainty, gaffer.EventNames[e.Kind], e.At, r.events[s])
		}
	}
	for _, h := range left {
		if near && h.kind == gaffer.EventConnected && end.Sub(since(h.at)) >= inSocket {
			t.Errorf("%s: %v counted a connection as made at %v, and nothing is told of it", name, s, since(h.at))
		}
	}
}
