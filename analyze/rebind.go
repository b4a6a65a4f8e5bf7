package analyze

import (
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// An endpoint that changes its address in the middle of a connection begins a new flow. For
// example, a NAT gives a player another port:
//
//	flow 3   10.0.0.5:4242 <-> server   packets 0 to 511, then the player falls silent
//	flow 7   10.0.0.5:4243 <-> server   packets 512 to 900
//
// A flow that shows no beginning is compared with the flows of the same server whose other side
// fell silent just before. What the flows show of their connections decides: see match.

// Was is the earlier flow whose connection a flow continues from a new address.
type Was struct {
	ID        int // of the earlier flow
	Addr      netip.AddrPort
	Side      machine.Side // that changed its address, as the new flow names it
	Certainty machine.Certainty
	// Chance is how probable it is that an unrelated flow fits as well. It is 0 where keys prove
	// the connection.
	Chance float64
	After  time.Duration // from the side's last packet at the old address to its first at the new one
	Reason string

	old   *Flow           // in whose side from the side was
	from  machine.Side    // the side in the earlier flow
	since machine.Instant // when the side first spoke from the new address
}

// Before returns the number of the flow whose connection f continues, or 0.
func (f *Flow) Before() int {
	if f.Was == nil {
		return 0
	}
	return f.Was.ID
}

// copied returns a copy without links to flows, or nil.
func (w *Was) copied() *Was {
	if w == nil {
		return nil
	}
	c := *w
	c.old = nil
	return &c
}

// When a flow may continue another one.
const (
	// rebindLeast is how many datagrams a flow has when it is first compared.
	// Source: definition, rebound: a flow of fewer datagrams shows no counters
	rebindLeast = 4
	// rebindMost is how many datagrams a flow has when it is last compared. Until then, or for
	// rebindWait if that takes longer, the old address must be silent.
	// Source: definition, rebound: the old address is silent while the new one speaks
	rebindMost, rebindWait = 64, time.Second
	// rebindSlack is how late a packet from the old address may come.
	// Source: definition, rebound: a generous half of a round trip
	rebindSlack = 250 * time.Millisecond
	// rebindSilence is how long a side may be away between its two addresses.
	// Source: definition, rebound: games give a silent player up after 5 to 15 seconds
	rebindSilence = 30 * time.Second
	// rebindIdle is how long if its peer fell silent too: neither waited for the other. A NAT forgets
	// a port in such a time: see nat-idle.
	// Source: definition, rebound: RFC 4787, REQ-5, a NAT best keeps a UDP port for five minutes
	rebindIdle = 5 * time.Minute
	// rebindFree and rebindWork bound how many flows are compared in all: so many, and so many
	// more for each packet of the capture.
	rebindFree, rebindWork = 1 << 20, 4
	// ghostLeast is how long the peer goes on to send to the old address before that is reported.
	// Source: definition, ghost: longer than packets are under way
	ghostLeast = time.Second
)

// moving is a flow that may turn out to continue another one.
type moving struct {
	began [2]machine.Instant // when each side's first datagram passed
	was   *Was               // what an earlier run found; nil if none
	told  bool               // an earlier run decided
}

// hub lists the flows of an endpoint, as candidates.
type hub struct {
	flows []*Flow
	gone  int // of them, those that a limit removed
}

// watchMove begins to watch a flow that has a tracker now.
func (s *Session) watchMove(f *Flow) {
	if _, ok := f.tracker.(machine.Identified); !ok || f.Transport != capture.UDP || f.Session > 1 {
		return
	}
	f.moving = &moving{}
	if known := s.options.Survey.flow(f); known != nil && known.moveKnown {
		f.moving.was, f.moving.told = known.was, true
	} else if s.options.Survey.numbers() && known == nil {
		f.moving.told = true // which flows are compared, the first run decides
	}
}

// follow looks at a datagram of a flow that may continue another one.
func (s *Session) follow(f *Flow, d *machine.Datagram) {
	m := f.moving
	if f.pace[d.From].packets == 1 {
		m.began[d.From] = d.At
	}
	n := f.pace[0].packets + f.pace[1].packets
	if m.was != nil {
		was := *m.was
		if was.old = s.Flow(was.ID); was.old != nil {
			s.join(f, &was)
		}
		m.was = nil
	}
	if n < rebindLeast || n&(n-1) != 0 {
		return
	}
	own := s.identify(f)
	if n == rebindLeast {
		s.enterHubs(f, own.Began == [2]bool{}) // its first packet may be the server's
	}
	// A capture that begins with many flows shows no beginning of any.
	early := f.First.Sub(s.first) < rebindSlack
	if own.Began == [2]bool{true, true} && own.Key == nil || m.told || early {
		f.moving = nil
		return
	}
	s.shard.refuse() // its players may be in other shards
	settles := s.last.Sub(f.First) >= rebindWait
	if was, ok := s.match(f, own); ok && (settles || was.Certainty == machine.Certain) {
		s.join(f, &was)
		f.moving = nil
	} else if settles && n >= rebindMost {
		f.moving = nil
	}
}

// settleMove decides about a flow that ends.
func (s *Session) settleMove(f *Flow) {
	if f.moving == nil || f.tracker == nil {
		return
	}
	if n := f.pace[0].packets + f.pace[1].packets; !f.moving.told && n >= rebindLeast {
		if was, ok := s.match(f, s.identify(f)); ok {
			s.join(f, &was)
		}
	}
	f.moving = nil
}

// identify returns the identity of a flow. It is valid until the next call.
func (s *Session) identify(f *Flow) *machine.Identity {
	s.own = machine.Identity{}
	identify(f, &s.own)
	return &s.own
}

func identify(f *Flow, x *machine.Identity) {
	if t, ok := f.tracker.(machine.Identified); ok {
		t.Identity(x)
	}
}

// join records that f continues another flow.
func (s *Session) join(f *Flow, was *Was) {
	w := *was
	f.Was, w.old.gets().next = &w, f
	s.note(f, &machine.Anomaly{
		Rule: rebound, Side: w.Side, Certainty: w.Certainty, At: w.since, Ref: f.FirstRef, About: w.old.LastRef,
		Figures: [3]float64{float64(w.ID), w.After.Seconds(), w.Chance},
	})
}

// part takes a join back, because the side was heard from its old address again.
func (s *Session) part(f *Flow) {
	w := f.Was
	if w == nil || w.Certainty == machine.Certain || w.old == nil {
		return
	}
	if w.old.pace[w.from].last <= w.since.Add(rebindSlack) {
		return
	}
	f.Was, w.old.gets().next = nil, nil
	f.findings.remove(rebound)
}

// noteGhost reports that the peer of a side that moved went on to send to the old address.
func (s *Session) noteGhost(f *Flow) {
	next := f.has().next
	if next == nil {
		return
	}
	w := next.Was
	peer := &f.pace[w.from.Other()]
	if took := peer.last.Sub(w.since); took >= ghostLeast {
		s.note(f, &machine.Anomaly{
			Rule: ghost, Side: w.from.Other(), Certainty: w.Certainty, At: peer.last, Ref: f.LastRef, About: next.FirstRef,
			Figures: [3]float64{took.Seconds(), float64(next.ID)},
		})
	}
}

// forgetMove drops the links between a flow that a limit removes and the one that continues it.
func (f *Flow) forgetMove() {
	if next := f.has().next; next != nil {
		next.Was.old = nil
		f.rare.next = nil
	}
}

// enterHubs makes a flow a candidate of its endpoint B, or of both. Few captures have a flow that is
// compared. So the hubs are made when the first one is: see hub.
func (s *Session) enterHubs(f *Flow, both bool) {
	f.entered, f.enteredBoth = s.n, both
	s.entrants = append(s.entrants, f)
	if s.hubs != nil {
		s.listInHubs(f)
	}
}

func (s *Session) listInHubs(f *Flow) {
	s.enterHub(f, machine.B)
	if f.enteredBoth {
		s.enterHub(f, machine.A)
	}
}

// hub returns the candidates of an endpoint, or nil.
func (s *Session) hub(key endpointKey) *hub {
	if s.hubs == nil {
		for _, f := range s.entrants {
			if !f.gone {
				s.listInHubs(f)
			}
		}
	}
	return s.hubs[key]
}

// enterHub lists a flow as a candidate among those of one of its endpoints.
func (s *Session) enterHub(f *Flow, side machine.Side) {
	key := f.endpoint(side)
	h := s.hubs[key]
	if h == nil {
		if s.hubs == nil {
			s.hubs = map[endpointKey]*hub{}
		}
		h = &hub{}
		s.hubs[key] = h
	}
	h.flows = append(h.flows, f)
}

// leaveHubs removes a flow that a limit removes. It costs little on average: a hub drops such
// flows when half of its flows are.
func (s *Session) leaveHubs(f *Flow) {
	for _, side := range []machine.Side{machine.A, machine.B} {
		key := f.endpoint(side)
		h := s.hubs[key]
		if h == nil {
			continue
		}
		if h.gone++; 2*h.gone < len(h.flows) {
			continue
		}
		h.flows, h.gone = withoutGone(h.flows), 0
		if len(h.flows) == 0 {
			delete(s.hubs, key)
		}
	}
}
