package analyze

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/capture"
)

// Flows and conversations are numbered by appearance. A second run gives the nth session of two
// endpoints the number that the first run gave it. A session that only the second run tells apart
// comes after all of those:
//
//	first run    1  2  3
//	second run   1  2  3  4      flow 4 is a further session of the endpoints of flow 2
//
// So all goroutines of a second run know the numbers of their flows at once.

// number numbers a new flow, and lists it. The session before it, of the same endpoints, may be
// nil. If connection is set, the flow begins a conversation.
func (s *Session) number(f, before *Flow, connection bool) {
	s.begun++
	f.born = s.n
	if before != nil {
		f.Stream, f.shard = before.Stream, before.shard
	} else if s.shard != nil {
		f.shard = uint8(s.shard.index)
	}
	v := s.options.Survey
	if !v.numbers() {
		f.ID = s.begun
		if connection {
			f.Stream = s.conversation(f.Transport)
		}
		s.flows = append(s.flows, f)
		return
	}
	if i, ok := v.find(f, before, s.begun-1); ok {
		f.ID, f.Stream = i+1, v.flows[i].stream
	} else {
		s.shard.turn(s)
		s.extra++
		f.ID = len(v.flows) + s.shard.next(s.extra)
		if connection {
			f.Stream = v.streams[transportIndex(f.Transport)] + s.shard.nextStream(f.Transport, s.conversation(f.Transport))
		}
	}
	if n := len(s.flows); n > 0 && s.flows[n-1].ID > f.ID {
		at, _ := slices.BinarySearchFunc(s.flows, f.ID, func(f *Flow, id int) int { return f.ID - id })
		s.flows = slices.Insert(s.flows, at, f)
		return
	}
	s.flows = append(s.flows, f)
}

// conversation returns the number of the next conversation of a transport.
func (s *Session) conversation(t capture.Transport) int {
	n := &s.streams[transportIndex(t)]
	*n++
	return *n - 1
}

// streamNumbers numbers the conversations of several shards by appearance. Each shard has numbered its
// own.
type streamNumbers struct {
	known map[shardStream]int
	count [2]int // of UDP and of other transports
}

type shardStream struct{ shard, transport, number int }

// number returns the number of a conversation that a shard numbers otherwise.
func (c *streamNumbers) number(shard int, t capture.Transport, number int) int {
	k := shardStream{shard, transportIndex(t), number}
	n, ok := c.known[k]
	if !ok {
		if c.known == nil {
			c.known = map[shardStream]int{}
		}
		n = c.count[k.transport]
		c.count[k.transport]++
		c.known[k] = n
	}
	return n
}

// transportIndex tells UDP from other transports.
func transportIndex(t capture.Transport) int {
	if t == capture.UDP {
		return 0
	}
	return 1
}

// numbers reports whether a second run numbers its flows as the survey does. It does not if
// limits removed flows: the numbers of those are not known.
func (v *Survey) numbers() bool { return v != nil && v.begun == nil }

// order prepares find.
func (v *Survey) order() {
	if v.begun != nil || slices.IsSortedFunc(v.flows, compareFirst) {
		return
	}
	v.byFirst = make([]int32, len(v.flows))
	for i := range v.byFirst {
		v.byFirst[i] = int32(i)
	}
	slices.SortStableFunc(v.byFirst, func(i, j int32) int { return compareFirst(v.flows[i], v.flows[j]) })
}

func compareFirst(x, y surveyed) int {
	return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.session, y.session))
}

// find returns the place of a flow among those of the survey. The first session of two endpoints
// begins at the same frame in both runs, and guess is tried first. before is the session before.
func (v *Survey) find(f, before *Flow, guess int) (at int, ok bool) {
	if before != nil {
		if i := before.ID - 1; i < len(v.flows) {
			at = int(v.flows[i].next) - 1
		}
		return at, at > 0
	}
	fits := func(i int) bool {
		k := &v.flows[i]
		return k.first == f.FirstRef && k.session == f.Session && k.a == f.A && k.b == f.B && k.transport == f.Transport
	}
	if guess < len(v.flows) && fits(guess) {
		return guess, true
	}
	place := func(i int) int {
		if v.byFirst != nil {
			return int(v.byFirst[i])
		}
		return i
	}
	lo, hi := 0, len(v.flows)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		k := &v.flows[place(mid)]
		if cmp.Or(cmp.Compare(k.first, f.FirstRef), cmp.Compare(k.session, f.Session)) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < len(v.flows) && v.flows[place(lo)].first == f.FirstRef; lo++ {
		if fits(place(lo)) {
			return place(lo), true
		}
	}
	return 0, false
}

// separate finds out whether the flows of a run concern each other only where they have the same two
// hosts. Another run over the capture may then share its flows among goroutines.
func (v *Survey) separate(s *Session) {
	sampled := s.host != nil && !s.host.source.Host().Empty()
	if s.misread || s.late || s.crammed || sampled || !v.numbers() || !s.options.Limits.separable(len(s.flows)) {
		return
	}
	shards, scopeless := true, true
	for _, f := range s.flows {
		if f.Was != nil {
			return
		}
		if _, scoped := f.scopeKeys(); scoped {
			shards, scopeless = false, scopeless && v.onlySession(f)
		}
	}
	v.shards, v.scopeless = shards, scopeless
}

// separable reports whether goroutines may share the flows of a second run.
func (v *Survey) separable(o *Options) bool { return v.shards || v.withoutScopes(o) }

// withoutScopes reports whether no scope of an endpoint matters, since no flow that has one gets a
// tracker.
func (v *Survey) withoutScopes(o *Options) bool { return v != nil && v.scopeless && o.Untracked }

// separable reports whether there is room for so many flows that goroutines share.
func (l *Limits) separable(flows int) bool {
	return flows <= separableMost && l.Idle == 0 && (l.Bytes <= 0 || flows <= l.Bytes/separableState) &&
		(l.Flows <= 0 || flows <= l.Flows/2)
}

const (
	// separableMost is how many flows a run has that may be separated. Far fewer than the bounds
	// over all flows, such as MaxTrackers.
	// Source: bound, the flows of a run that several goroutines share
	separableMost = 1 << 15
	// separableState is the state of a flow for which there must be room.
	// Source: bound, a generous size of the state of a flow
	separableState = 128 << 10
)
