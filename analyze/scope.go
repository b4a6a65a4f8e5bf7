package analyze

import (
	"slices"
	"sort"
	"unsafe"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// State has three scopes. A flow has its tracker. An endpoint has its
// machine.Scope, if the protocol has one. Everything else belongs to the
// session.
//
// A tracker never sees the scopes themselves, only what they say of a datagram:
// its machine.Place. So a flow can be stepped again without the other flows of
// its endpoints, because the timeline stores the places. The state of a whole
// endpoint at a frame has checkpoints of its own.

// scope is the machine.Scope of one endpoint, and the number of its flows with
// a tracker.
type scope struct {
	machine.Scope
	key   scopeKey
	flows int
}

type scopeKey struct {
	endpoint endpointKey
	protocol *dissect.Protocol
}

// scopeKeys returns the keys of a flow's endpoints. It returns false if the
// protocol has no scopes, and for TCP, where each stream has its own numbers.
func (f *Flow) scopeKeys() (keys [2]scopeKey, ok bool) {
	if f.Protocol == nil || f.Protocol.NewScope == nil || f.Transport != capture.UDP {
		return keys, false
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		keys[side] = scopeKey{f.endpoint(side), f.Protocol}
	}
	return keys, true
}

// endpoint returns the key of one of a flow's endpoints.
func (f *Flow) endpoint(side machine.Side) endpointKey {
	if side == machine.A {
		return f.origin
	}
	return f.answer
}

// enterScopes assigns the scopes of its endpoints to a flow that has a tracker
// now.
func (s *Session) enterScopes(f *Flow) {
	keys, ok := f.scopeKeys()
	if !ok || f.scopes[machine.A] != nil || s.options.Survey.withoutScopes(&s.options) {
		return
	}
	s.shard.refuse()
	if s.scopes == nil {
		s.scopes = map[scopeKey]*scope{}
	}
	for side, k := range keys {
		x := s.scopes[k]
		if x == nil {
			x = &scope{Scope: f.Protocol.NewScope(f.Verdict.Config), key: k}
			s.scopes[k] = x
		}
		x.flows++
		f.scopes[side] = x
	}
}

// leaveScopes releases the scopes of a flow. The session forgets an endpoint
// without tracked flows. So there are never more than two scopes per tracker.
func (s *Session) leaveScopes(f *Flow) {
	for side, x := range f.scopes {
		if x == nil {
			continue
		}
		f.scopes[side] = nil
		if x.flows--; x.flows == 0 {
			delete(s.scopes, x.key)
		}
	}
}

// scopeTrack holds the checkpoints of one endpoint.
type scopeTrack struct {
	live        *scope // the scope of the last checkpoint
	since       int    // datagrams of the endpoint since that checkpoint
	checkpoints []scopeCheckpoint
}

type scopeCheckpoint struct {
	entries int           // how many entries of the timeline it has seen
	scope   machine.Scope // nil for a new scope
}

// noteScope stores what the sender's scope said of a record's datagram. From
// time to time it takes a checkpoint of the scope.
func (t *Timeline) noteScope(r *Record, k *track) {
	x := r.Flow.scopes[r.Datagram.From]
	if x == nil {
		return
	}
	t.addPlace(k, r.Datagram.Place)
	c := t.scopes[x.key]
	if c == nil {
		c = &scopeTrack{}
		if t.scopes == nil {
			t.scopes = map[scopeKey]*scopeTrack{}
		}
		t.scopes[x.key] = c
		t.held += scopeTrackCost
	}
	if c.live != x {
		c.live, c.since = x, 0
		c.checkpoints = append(c.checkpoints, scopeCheckpoint{entries: t.filled - 1})
		t.held += int(unsafe.Sizeof(scopeCheckpoint{}))
	}
	if c.since++; c.since >= minSpacing && c.since*t.dense >= x.Size() {
		c.checkpoints = append(c.checkpoints, scopeCheckpoint{t.filled, x.Clone()})
		t.held += int(unsafe.Sizeof(scopeCheckpoint{})) + x.Size()
		c.since = 0
	}
}

// scopesAt returns the scopes of a flow's endpoints after entry at.
func (t *Timeline) scopesAt(f *Flow, at uint32) (scopes [2]machine.Scope, err error) {
	keys, ok := f.scopeKeys()
	if !ok {
		return scopes, nil
	}
	for side, k := range keys {
		if scopes[side], err = t.scopeAt(f, k, int(at)+1); err != nil {
			return scopes, err
		}
	}
	return scopes, nil
}

// scopeAt returns an endpoint's scope after the given number of entries.
func (t *Timeline) scopeAt(f *Flow, k scopeKey, entries int) (machine.Scope, error) {
	next, x := 0, machine.Scope(nil)
	if c := t.scopes[k]; c != nil {
		after := sort.Search(len(c.checkpoints), func(i int) bool { return c.checkpoints[i].entries > entries })
		if after > 0 {
			next = c.checkpoints[after-1].entries
			if known := c.checkpoints[after-1].scope; known != nil {
				x = known.Clone()
			}
		}
	}
	if x == nil {
		x = f.Protocol.NewScope(f.Verdict.Config)
	}
	for n := next; n < entries; n++ {
		g, ok := t.flowOf(uint32(n))
		if !ok || t.entries.at(uint32(n)).marks.Duplicate() {
			continue
		}
		keys, ok := g.scopeKeys()
		if !ok || !slices.Contains(keys[:], k) {
			continue
		}
		d, _, err := t.datagram(g, uint32(n))
		if err != nil {
			return nil, err
		}
		if keys[d.From] == k {
			x.Observe(g.ID, &d)
		}
	}
	return x, nil
}

// inScope is a tracker with the scopes of its endpoints, so that they are drawn
// together.
type inScope struct {
	machine.Tracker
	scopes [2]machine.Scope
}

// Inspect draws a side with the state of its endpoint.
func (t inScope) Inspect(s machine.Side, v *machine.View) {
	t.Tracker.Inspect(s, v)
	t.scopes[s].Inspect(v)
}

// Clone returns an independent copy.
func (t inScope) Clone() machine.Tracker {
	return inScope{t.Tracker.Clone(), [2]machine.Scope{t.scopes[machine.A].Clone(), t.scopes[machine.B].Clone()}}
}
