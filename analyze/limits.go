package analyze

import (
	"maps"
	"slices"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Limits bound what a session remembers, for runs without end. The zero value
// keeps every flow.
//
// A flow that is let go ends: its tracker settles what was open, its figures are
// added to Session.Gone, Options.Gone is told, and then nothing of it is kept. If
// its endpoints speak again, that is a new flow.
type Limits struct {
	// Flows bounds how many are remembered.
	Flows int
	// Idle lets go of flows that have been silent for so long by the capture's
	// clock, at the latest after twice the time.
	Idle time.Duration
	// Bytes bounds the state of all flows together: trackers, and TCP streams with
	// what they hold for a missing segment. It is measured as the state grows, and
	// may be exceeded by what a single packet can add.
	Bytes int
	// Room is set where flows are let go for want of room only: one that another
	// session continues stays, as a reader of a file expects it.
	Room bool
}

func (l Limits) any() bool { return l != Limits{} }

// hold returns the bytes that all datagrams may take that are held while the
// protocol of their flow is worked out: most in general, and no more than one
// part in so many of a smaller limit, but as much as a few flows need.
func (l *Limits) hold(most, part int) int {
	const least = 1 << 20
	if l.Bytes == 0 {
		return most
	}
	return min(most, max(l.Bytes/part, least))
}

// Reason says why a flow was let go.
type Reason uint8

const (
	ReasonIdle    Reason = iota // it was silent
	ReasonFlows                 // there were too many
	ReasonBytes                 // their state was too large
	ReasonSession               // another session began on its addresses
)

var reasonWords = [...]string{"idle", "flows", "memory", "session"}

func (r Reason) String() string { return reasonWords[r] }

// Reasons lists them all.
func Reasons() []Reason { return []Reason{ReasonIdle, ReasonFlows, ReasonBytes, ReasonSession} }

// class is how much a flow has shown of itself. Where there is no room, flows
// are let go class by class: whoever can forge packets can make any number of
// flows that nobody answers, and those must not push out the real ones.
type class uint8

const (
	unlisted class = iota // limits are not asked for
	alone                 // one side speaks, no protocol explains it
	answered              // both do
	followed              // it has a tracker
	classes
)

// reserve is the share of the room, one part in so many, that a lower class
// keeps where it is used: without it no new flow could begin beside many old ones.
const reserve = 8

// list holds the flows of a class, in the order in which they were put there. A
// flow that has spoken since gets its second chance when it comes to be let go:
// so a packet of a known flow costs nothing here.
type list struct {
	oldest, newest *Flow
	count, bytes   int
}

// place is where a flow stands in its list.
type place struct {
	older, newer *Flow
	since        machine.Instant // when it was put there
	bytes        int32           // of its state, when last measured
	class        class
}

func (l *list) add(f *Flow, at machine.Instant) {
	f.place.older, f.place.newer, f.place.since = l.newest, nil, at
	if l.newest != nil {
		l.newest.place.newer = f
	} else {
		l.oldest = f
	}
	l.newest = f
	l.count++
	l.bytes += int(f.place.bytes)
}

func (l *list) remove(f *Flow) {
	p := &f.place
	if p.newer != nil {
		p.newer.place.older = p.older
	} else {
		l.newest = p.older
	}
	if p.older != nil {
		p.older.place.newer = p.newer
	} else {
		l.oldest = p.newer
	}
	p.older, p.newer = nil, nil
	l.count--
	l.bytes -= int(p.bytes)
}

// classOf returns the class that a flow is of now.
func classOf(f *Flow) class {
	switch {
	case f.tracker != nil:
		return followed
	case f.Packets[machine.A] > 0 && f.Packets[machine.B] > 0:
		return answered
	}
	return alone
}

// relist puts a flow into the list of its class, where limits are asked for,
// with the size of its state.
func (s *Session) relist(f *Flow) {
	size := 0
	if f.tracker != nil {
		size += f.tracker.Size()
	}
	if f.conn != nil {
		size += f.conn.Size()
	}
	c := classOf(f)
	if c == f.place.class {
		s.lists[c].bytes += size - int(f.place.bytes)
		f.place.bytes = int32(size)
		return
	}
	if f.place.class != unlisted {
		s.lists[f.place.class].remove(f)
	}
	f.place.class, f.place.bytes = c, int32(size)
	s.lists[c].add(f, s.last)
}

// measureEvery is after how many datagrams of a flow its state is measured anew.
// Segments of a stream can each be held, so they are measured all.
const measureEvery = 64

// bound is asked after each packet of a flow: it keeps the flow's place and lets
// go of what is beyond the limits.
func (s *Session) bound(f *Flow) {
	if n := f.Packets[machine.A] + f.Packets[machine.B]; f.conn != nil || n%measureEvery <= 1 ||
		f.place.class != classOf(f) {
		s.relist(f)
	}
	l := &s.options.Limits
	if l.Idle > 0 {
		for c := alone; c < classes; c++ {
			s.letIdle(&s.lists[c])
		}
	}
	for l.Flows > 0 && s.remembered() > l.Flows {
		s.letOne(ReasonFlows, f, func(x *list) bool { return x.count > l.Flows/reserve })
	}
	for l.Bytes > 0 && s.stateBytes() > l.Bytes && s.remembered() > 1 {
		s.letOne(ReasonBytes, f, func(x *list) bool { return x.bytes > l.Bytes/reserve })
	}
}

func (s *Session) remembered() (n int) {
	for i := range s.lists {
		n += s.lists[i].count
	}
	return n
}

func (s *Session) stateBytes() (n int) {
	for i := range s.lists {
		n += s.lists[i].bytes
	}
	return n
}

// letIdle lets go of the flows at the head of a list that are silent.
func (s *Session) letIdle(x *list) {
	for f := x.oldest; f != nil && s.last.Sub(f.place.since) > s.options.Limits.Idle; f = x.oldest {
		if s.last.Sub(f.Last) > s.options.Limits.Idle {
			s.letGo(f, ReasonIdle)
			continue
		}
		x.remove(f)
		x.add(f, s.last)
	}
}

// letOne lets go of the flow that was silent longest, of the lowest class that
// takes more than its reserve; never of the one that a packet has just come for.
func (s *Session) letOne(why Reason, but *Flow, beyond func(*list) bool) {
	spares := func(x *list) bool { return x.count > 1 || x.count == 1 && x.oldest != but }
	var from *list
	for c := alone; c < classes; c++ {
		x := &s.lists[c]
		if spares(x) && (from == nil || !beyond(from)) {
			from = x
		}
	}
	for f := from.oldest; ; f = from.oldest {
		if f != but && f.Last <= f.place.since {
			s.letGo(f, why)
			return
		}
		from.remove(f)
		from.add(f, s.last)
	}
}

// letGo ends a flow and forgets it.
func (s *Session) letGo(f *Flow, why Reason) {
	if f.gone {
		return
	}
	f.gone = true
	if f.pending != nil {
		f.pending.round = holdRounds
		s.decide(f, true)
	}
	if f.place.class == alone && (why == ReasonFlows || why == ReasonBytes) {
		f.conn = nil // what nobody answered is not worth the search for messages in it
	}
	s.finishStream(f)
	if f.tracker != nil {
		s.end(f)
	}
	if f.place.class != unlisted {
		s.lists[f.place.class].remove(f)
		f.place.class = unlisted
	}
	s.table.remove(f)
	s.gone.add(f)
	s.reasons[why]++
	s.forgotten++
	if s.options.Gone != nil {
		s.options.Gone(f, why)
	}
}

// compact takes flows that were let go out of the list of all.
func (s *Session) compact() {
	s.flows = slices.DeleteFunc(s.flows, func(f *Flow) bool { return f.gone })
	s.forgotten = 0
}

// compactLeast spares short lists the work.
const compactLeast = 1024

// Totals are figures over flows, by protocol; under nil those that nothing explains.
type Totals map[*dissect.Protocol]*Total

// Total is the sum over some flows.
type Total struct {
	Flows      uint64
	Packets    [2]uint64 // datagrams (TCP: segments) by side
	Bytes      [2]uint64 // payload bytes on the wire
	Duplicates uint64    // capture duplicates
	Sides      [2]SideTotal
	Findings   map[*machine.Rule]uint64 // occurrences
}

// SideTotal sums what trackers tell of one side.
type SideTotal struct{ Acked, Received, Duplicates, Stale, Missing, Resends uint64 }

func (t Totals) add(f *Flow) {
	x := t[f.Protocol]
	if x == nil {
		x = &Total{Findings: map[*machine.Rule]uint64{}}
		t[f.Protocol] = x
	}
	x.Flows++
	x.Duplicates += f.Duplicates
	for side := range x.Sides {
		x.Packets[side] += f.Packets[side]
		x.Bytes[side] += f.Bytes[side]
		if sum, ok := f.Summary(machine.Side(side)); ok {
			y := &x.Sides[side]
			y.Acked, y.Received = y.Acked+sum.Acked, y.Received+sum.Received
			y.Duplicates, y.Stale = y.Duplicates+sum.Duplicates, y.Stale+sum.Stale
			y.Missing, y.Resends = y.Missing+sum.Missing, y.Resends+sum.Resends
		}
	}
	for _, found := range f.gather.list {
		x.Findings[found.Rule] += found.Count
	}
}

// Gone sums the flows that were let go.
func (s *Session) Gone() Totals { return s.gone }

// Sum sums all flows that there were: those that were let go and those that are
// remembered.
func (s *Session) Sum() Totals {
	sum := Totals{}
	for p, x := range s.gone {
		y := *x
		y.Findings = maps.Clone(x.Findings)
		sum[p] = &y
	}
	for _, f := range s.Flows() {
		sum.add(f)
	}
	return sum
}

// LetGo counts the flows that were let go for a reason.
func (s *Session) LetGo(why Reason) uint64 { return s.reasons[why] }

// Begun counts the flows that there were.
func (s *Session) Begun() uint64 { return uint64(s.begun) }

// StateBytes returns the size of the state of all flows as it was last measured;
// 0 where no limits are asked for.
func (s *Session) StateBytes() int { return s.stateBytes() }

// LiveLimits are the limits for a capture that has no end, where none are given.
var LiveLimits = Limits{Flows: 1 << 16, Idle: 5 * time.Minute, Bytes: 256 << 20}
