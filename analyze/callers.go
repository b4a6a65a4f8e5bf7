package analyze

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// callersMost bounds the pairs of a client's address and a server's endpoint that are remembered.
// The half of them that was busy last stays. That covers a loop of each client in a capture of
// 100,000 flows. A pair takes about 300 bytes.
// Source: bound, the pairs of client and server that are remembered
const callersMost = 1 << 17

// callerKey is a client's address, whatever its port, and the endpoint that it talks to.
type callerKey struct {
	hi, lo uint64
	server endpointKey
}

// caller is what is remembered of such a pair.
type caller struct {
	newest machine.Instant // when its newest flow began
	ref    machine.Ref     // the first frame of that flow
	port   uint16          // its port at the client
	loop   *loop           // nil unless a connection ended
}

// callers remembers pairs in two halves. When the newer half is full, it becomes the older one,
// which is forgotten.
type callers struct {
	newer, older map[callerKey]*caller
	kept         bool // every flow is noted when it begins; see Session.knownPairs
}

func callerOf(client, server endpointKey) callerKey { return callerKey{client.hi, client.lo, server} }

// find returns what is remembered of a pair, or nil.
func (c *callers) find(k callerKey) *caller {
	if x := c.newer[k]; x != nil {
		return x
	}
	return c.older[k]
}

// knownPairs returns the pairs. Few captures are asked for one. So they are kept from the first question
// on, or once a flow is removed. Until then the flows themselves tell which pairs there were.
func (s *Session) knownPairs() *callers {
	c := &s.callers
	if c.kept {
		return c
	}
	c.kept = true
	first := make([]*Flow, 0, len(s.flows)) // the first session of each pair of addresses
	for _, f := range s.flows {
		if f.Session <= 1 {
			first = append(first, f)
		}
	}
	slices.SortStableFunc(first, func(x, y *Flow) int { return cmp.Compare(x.born, y.born) })
	for _, f := range first {
		c.begun(f)
	}
	s.shard.within(c.len(), callersMost/2)
	return c
}

// len returns how many pairs are remembered. Where both halves have a pair, it counts twice.
func (c *callers) len() int { return len(c.newer) + len(c.older) }

// noteCaller notes a new flow, if the pairs are kept. A process that shares a run keeps them where they
// are very many. The other one cannot ask for them at the end, as absorbCallers does.
func (s *Session) noteCaller(f *Flow) {
	switch {
	case s.callers.kept:
		s.callers.begun(f)
	case s.shard == nil || !s.shard.partner || !s.shard.beyond(s.begun, callersMost/2):
		return // there cannot be more pairs than flows
	}
	s.shard.within(s.knownPairs().len(), callersMost/2)
}

// begun notes a new flow, whose first packet came from the client.
func (c *callers) begun(f *Flow) {
	if f.Transport != capture.UDP {
		return
	}
	x := c.of(callerOf(f.origin, f.answer))
	x.newest, x.ref, x.port = f.First, f.FirstRef, f.origin.port
}

// of returns what is remembered of a pair, and remembers it from now on.
func (c *callers) of(k callerKey) *caller {
	x := c.newer[k]
	if x != nil {
		return x
	}
	if x = c.older[k]; x == nil {
		x = &caller{}
	}
	if len(c.newer) >= callersMost/2 {
		c.older, c.newer = c.newer, nil
	}
	if c.newer == nil {
		c.newer = make(map[callerKey]*caller)
	}
	c.newer[k] = x
	return x
}
