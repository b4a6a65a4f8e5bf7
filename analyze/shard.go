package analyze

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// shard says which part of the flows a session has, when several goroutines analyse. All flows
// between two hosts are in one shard. Its methods do nothing on nil: a session with all flows.
//
// What crosses shards is kept out of them:
//   - Numbers of flows: see numbers.go.
//   - Relayed messages: shards note them, and they are compared when a chunk is handed on.
//   - Whether datagrams are held whole while their flow is pending: see heldTotals.
//   - ICMP errors: from the first one on, one session has all flows.
//   - Scopes of endpoints, and moves from address to address.
//   - Bounds over all flows, and over the fragments of all datagrams.
//
// Of the last two, the run is refused, and made again by one goroutine. Only runs without a sink can
// meet them, since a second run knows beforehand (Survey.separable).
type shard struct {
	_         cacheLines // a shard writes to it for each frame
	index, of int
	session   int             // of the run
	strict    bool            // a run that may be refused
	partner   bool            // another process has the other shard
	refused   *atomic.Bool    // shared by all shards of a run
	done      []atomic.Uint64 // by shard: it has processed all of its frames before that one
	extra     *atomic.Int64   // flows that the survey does not know, over all shards
	streams   *[2]atomic.Int64
	relayed   []relayedMessage // since the last chunk
	sentAt    []uint32         // by place in sentLog.ring: how many frames there were
	part      *part            // of the chunk that it processes
	frame     int              // within the chunk
	_         cacheLines
}

// takeOver keeps records, and what limits remove, until the chunk is handed on.
func (x *shard) takeOver(o *Options) {
	o.Sink = func(r *Record) { x.part.keep(r, x.session, x.frame) }
	if o.Gone != nil {
		o.Gone = func(f *Flow, why Reason) {
			x.part.records = append(x.part.records, keptRecord{session: x.session, frame: x.frame, gone: f, why: why})
		}
	}
}

// relayedMessage is a message that may be relayed, or was.
type relayedMessage struct {
	session int    // of the run
	at      uint64 // how many frames there were
	flow    *Flow
	content machine.Content
}

// refuse ends a run whose flows concern each other across shards.
func (x *shard) refuse() {
	if x != nil && x.strict {
		x.refused.Store(true)
	}
}

// beyond reports whether within refuses the run.
func (x *shard) beyond(n, most int) bool { return x != nil && x.strict && most > 0 && n > most/x.of }

// within refuses the run if a shard uses more than its part of what all flows have together.
func (x *shard) within(n, most int) {
	if x.beyond(n, most) {
		x.refused.Store(true)
	}
}

// withinRooms refuses the run if a shard holds more than its part of what all flows may hold. Flows
// without an answer are cut by age, and those beyond a room decided by age, which crosses shards.
// Processes that share a run know nothing of each other: there all datagrams must fit whole.
func (x *shard) withinRooms(s *Session) {
	if x == nil {
		return
	}
	unanswered, answered := &s.waiting[0], &s.waiting[1]
	x.within(unanswered.wholeBytes, s.wholeRoom)
	x.within(unanswered.bytes, s.unansweredRoom)
	x.within(answered.bytes, s.answeredRoom)
	if x.partner {
		x.within(answered.bytes, s.wholeRoom)
	}
}

// turn waits until all other shards have processed the frames before the current one.
func (x *shard) turn(s *Session) {
	if x == nil {
		return
	}
	at := s.n - 1
	x.done[x.index].Store(at)
	for i := range x.done {
		for i != x.index && x.done[i].Load() < at {
			runtime.Gosched()
		}
	}
}

// passed notes that the shard has processed its frames of a chunk and of those before. Other shards
// wait for that: see turn.
func (x *shard) passed(c *chunk) { x.done[x.index].Store(c.first + uint64(c.count)) }

// next counts the flows that the survey does not know. own is the count of a session with all
// flows. The caller waits for its turn.
func (x *shard) next(own int) int {
	if x == nil {
		return own
	}
	return int(x.extra.Add(1))
}

// nextStream counts the conversations that the survey does not know, in the same way.
func (x *shard) nextStream(t capture.Transport, own int) int {
	if x == nil {
		return own
	}
	return int(x.streams[transportIndex(t)].Add(1)) - 1
}

// stampSent notes when the next datagram of the log comes, for absorb.
func (s *Session) stampSent() {
	if x := s.shard; x != nil {
		at := s.sent.n % sentRing
		if at == uint64(len(x.sentAt)) {
			x.sentAt = append(x.sentAt, 0)
		}
		x.sentAt[at] = uint32(s.n)
	}
}

// noteRelayed looks for the messages of the last step among those that reached endpoints.
func (s *Session) noteRelayed(f *Flow) {
	for i := range s.out.Contents {
		if x := s.shard; x != nil {
			x.relayed = append(x.relayed, relayedMessage{x.session, s.n, f, s.out.Contents[i]})
		} else {
			s.relays.note(f, &s.out.Contents[i])
		}
	}
}

// divide passes each record to the sink of its group of flows.
func (s *Session) divide(sinks []Sink) {
	s.sinks = sinks
	s.sink = func(r *Record) {
		group := 0
		if r.Flow != nil {
			group = int(r.Flow.shard)
		}
		s.sinks[group](r)
	}
}

// absorb returns one session that goes on where the shards of a run stand. They have processed
// all frames before the same one. What they keep for ICMP errors is not in it: see absorbSent.
func absorb(o Options, shards []*Session) *Session {
	split := o.Split
	o.Split = nil
	s := NewSession(o)
	s.scopes = shards[0].scopes // where there are several shards, no flow has one
	if split != nil {
		var sinks []Sink
		for _, x := range shards {
			sinks = append(sinks, x.sinks...)
		}
		s.divide(sinks)
		s.noEvents = o.NoEvents
	}
	for _, x := range shards {
		s.flows = append(s.flows, x.flows...)
		s.begun += x.begun
		s.extra += x.extra
		s.trackers += x.trackers
		s.duplicates += x.duplicates
		s.dissected += x.dissected
		s.misread, s.late = s.misread || x.misread, s.late || x.late
		s.forgotten += x.forgotten
		for i, bytes := range x.heldAfter {
			s.heldAfter[i] += bytes
		}
		for why, n := range x.reasons {
			s.reasons[why] += n
		}
		for _, p := range x.table.places {
			if p.flow != nil {
				s.table.put(p.flow)
			}
		}
	}
	s.absorbCallers(shards)
	s.absorbNumbers(shards)
	s.absorbWaiting(shards)
	s.absorbHubs(shards)
	for _, f := range byPlace(s.flows) {
		if c := f.place.class; c != unlisted {
			since := f.place.since
			s.lists[c].add(f, since)
		}
	}
	return s
}

// absorbCallers merges the pairs that are remembered, if a shard keeps them.
func (s *Session) absorbCallers(shards []*Session) {
	if !slices.ContainsFunc(shards, func(x *Session) bool { return x.callers.kept }) {
		return
	}
	for _, x := range shards {
		c := x.knownPairs()
		for k, y := range c.older {
			s.callers.remember(&s.callers.older, k, y)
		}
		for k, y := range c.newer {
			s.callers.remember(&s.callers.newer, k, y)
		}
	}
	s.callers.kept = true
}

// remember puts a pair into one of the halves.
func (c *callers) remember(half *map[callerKey]*caller, k callerKey, x *caller) {
	if *half == nil {
		*half = make(map[callerKey]*caller)
	}
	(*half)[k] = x
}

// byPlace returns the flows in the order in which they came into their lists.
func byPlace(flows []*Flow) []*Flow {
	flows = slices.Clone(flows)
	slices.SortStableFunc(flows, func(x, y *Flow) int { return cmp.Compare(x.place.since, y.place.since) })
	return flows
}

// absorbNumbers numbers flows and conversations by appearance, or orders them by the numbers that
// a survey gave.
func (s *Session) absorbNumbers(shards []*Session) {
	if s.options.Survey.numbers() {
		slices.SortFunc(s.flows, func(x, y *Flow) int { return x.ID - y.ID })
		for i := range s.streams {
			for _, x := range shards {
				s.streams[i] += x.streams[i]
			}
		}
		return
	}
	// The flows of one frame are in one shard, in their order.
	slices.SortStableFunc(s.flows, func(x, y *Flow) int { return cmp.Compare(x.born, y.born) })
	var streams streamNumbers
	for i, f := range s.flows {
		f.ID = i + 1
		f.Stream = streams.number(int(f.shard), f.Transport, f.Stream)
	}
	s.streams = streams.count
}

// absorbWaiting merges the lists of flows whose protocol is being determined.
func (s *Session) absorbWaiting(shards []*Session) {
	for i := range s.waiting {
		var all []*pending
		for _, x := range shards {
			for p := x.waiting[i].oldest; p != nil; p = p.newer {
				var held heldDatagrams
				x.held.each(&p.held, func(d *machine.Datagram) { s.held.add(&held, d) })
				p.held = held
				all = append(all, p)
			}
		}
		slices.SortStableFunc(all, func(x, y *pending) int { return cmp.Compare(x.since, y.since) })
		for _, p := range all {
			s.waiting[i].add(p)
		}
	}
}

// absorbHubs merges the flows that may be continued from another address.
func (s *Session) absorbHubs(shards []*Session) {
	for _, x := range shards {
		s.entrants = append(s.entrants, x.entrants...)
	}
	slices.SortStableFunc(s.entrants, func(x, y *Flow) int { return cmp.Compare(x.entered, y.entered) })
}

// keptSent is where a shard keeps a datagram for ICMP errors.
type keptSent struct {
	shard int
	place uint64 // in its ring
	at    uint32 // how many frames there were
}

// absorbSent merges what is kept of datagrams for ICMP errors: the newest ones of all shards.
func (s *Session) absorbSent(shards []*Session) {
	var all []keptSent
	places := make([][]uint64, len(shards)) // by shard and place: the new place, from 1
	for i, x := range shards {
		l := &x.sent
		s.sent.n += l.n
		places[i] = make([]uint64, len(l.ring))
		for n := l.n - uint64(len(l.ring)); n < l.n; n++ {
			all = append(all, keptSent{i, n % sentRing, x.shard.sentAt[n%sentRing]})
		}
	}
	slices.SortStableFunc(all, func(x, y keptSent) int { return int(int32(x.at - y.at)) })
	all = all[max(0, len(all)-sentRing):]
	s.sent.ring = make([]sentDatagram, len(all))
	for i, k := range all {
		n := s.sent.n - uint64(len(all)) + uint64(i)
		s.sent.ring[n%sentRing] = shards[k.shard].sent.ring[k.place]
		places[k.shard][k.place] = n + 1
	}
	for i, x := range shards {
		for _, f := range x.flows {
			f.sent = s.sent.adopt(&x.sent, f.sent, places[i])
		}
	}
}

// adopt links the datagrams of a flow in their new places. newest is the place of the flow's
// newest one in the old log. It returns its place in this one, from 1.
func (l *sentLog) adopt(old *sentLog, newest uint64, places []uint64) uint64 {
	to := func(n uint64) uint64 {
		if n == 0 || old.n-n >= sentRing || n > old.n {
			return 0
		}
		return places[(n-1)%sentRing]
	}
	begin := to(newest)
	for n, at := newest, begin; at > 0; {
		back := uint64(old.ring[(n-1)%sentRing].back)
		x := &l.ring[(at-1)%sentRing]
		x.back = 0
		if back == 0 || back > n {
			break
		}
		before := to(n - back)
		if d := at - before; before > 0 && d < sentRing && d <= math.MaxUint32 {
			x.back = uint32(d)
		}
		n, at = n-back, before
	}
	return begin
}
