package analyze

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// When an ICMP error is held to have stopped a socket.
const (
	// poisonWait is how long the flows of a socket are watched after an ICMP error.
	// Source: definition, socket-poisoned: peers whose server is silent for two seconds see it freeze
	poisonWait = 2 * time.Second
	// poisonSlack is how long after the error the socket may still send: packets on their way.
	// Source: definition, socket-poisoned: a generous half of a round trip
	poisonSlack = 250 * time.Millisecond
	// poisonUsual is the longest usual gap of a flow that is watched: at least 10 packets a second.
	// Source: definition, socket-poisoned: two seconds are then 20 usual gaps
	poisonUsual = 100 * time.Millisecond
	// poisonLeast is how many flows must fall silent, and poisonLikely from how many on it is likely.
	// Source: definition, socket-poisoned: one silent flow is that flow's own trouble
	poisonLeast, poisonLikely = 2, 3
	// poisonWatches bounds the sockets that are watched at one time.
	poisonWatches = 8
	// poisonWork bounds how many flows are looked at for each packet of the capture, on average.
	poisonWork = 16
)

// poison watches sockets that were sent an ICMP error about one client.
type poison struct {
	watches []poisonWatch
	due     machine.Instant // when the first watch ends; meaningful if there are watches
	looked  uint64          // packets of the capture when the flows were last looked at
}

type poisonWatch struct {
	socket  endpointKey
	flow    *Flow // of the dead client
	anomaly machine.Anomaly
}

// watch begins to watch a socket, after an error about x.
func (w *poison) watch(s *Session, socket endpointKey, x *Quoted, a *machine.Anomaly) {
	if len(w.watches) == poisonWatches || (s.n-w.looked)*poisonWork < uint64(len(s.flows)) {
		return
	}
	for i := range w.watches {
		if w.watches[i].socket == socket {
			return
		}
	}
	if at := a.At.Add(poisonWait); len(w.watches) == 0 || at < w.due {
		w.due = at
	}
	w.watches = append(w.watches, poisonWatch{socket: socket, flow: x.Flow, anomaly: *a})
}

// check ends the watches that are due at an instant.
func (w *poison) check(s *Session, now machine.Instant) {
	kept := w.watches[:0]
	w.due = math.MaxInt64
	for i := range w.watches {
		x := w.watches[i]
		if end := x.anomaly.At.Add(poisonWait); end > now {
			kept, w.due = append(kept, x), min(w.due, end)
			continue
		}
		w.looked = s.n
		s.weighPoison(&x)
	}
	clear(w.watches[len(kept):])
	w.watches = kept
}

// weighPoison reports the flows of a socket that all fell silent at an ICMP error, while their
// other sides went on.
func (s *Session) weighPoison(w *poisonWatch) {
	at := w.anomaly.At
	silent := 0
	each := func(do func(f *Flow, side machine.Side)) (went bool) {
		for _, f := range s.flows {
			if f == w.flow || f.pace == nil || f.tracker == nil || f.origin != w.socket && f.answer != w.socket {
				continue
			}
			side := machine.A
			if f.origin != w.socket {
				side = machine.B
			}
			own, peer := &f.pace[side], &f.pace[side.Other()]
			switch {
			case own.packets < paceLeast || own.usual > poisonUsual || own.last < at.Add(-2*poisonUsual),
				peer.packets == 0 || peer.last < at.Add(poisonWait/2):
				continue // it was silent before, or its peer is silent too
			case own.last > at.Add(poisonSlack):
				return true
			}
			do(f, side)
		}
		return false
	}
	if went := each(func(*Flow, machine.Side) { silent++ }); went || silent < poisonLeast {
		return
	}
	a := machine.Anomaly{
		Rule: socketPoisoned, Certainty: machine.Possible, At: at, Ref: w.anomaly.Ref, About: w.anomaly.About,
		Figures: [3]float64{float64(silent), float64(w.flow.ID)},
	}
	if silent >= poisonLikely && w.anomaly.Certainty > machine.Possible {
		a.Certainty = machine.Likely
	}
	each(func(f *Flow, side machine.Side) {
		x := a
		x.Side = side
		s.found(f, &x)
	})
}
