package analyze

import (
	"maps"
	"slices"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Limits bound what a session remembers, for captures without end. The zero
// value keeps every flow. A flow that a limit removes ends in four steps:
//
//  1. Its tracker settles what was open.
//  2. Its figures are added to Session.Gone.
//  3. Options.Gone is called.
//  4. The session forgets it.
//
// If its endpoints send again, that is a new flow.
type Limits struct {
	// Flows bounds the number of remembered flows.
	Flows int
	// Idle removes flows that were silent for this long by capture time. A flow is
	// removed after twice the time at the latest.
	Idle time.Duration
	// Bytes bounds the state of all flows together: trackers, and TCP streams with
	// the segments that they hold. The state is measured as it grows, and may
	// exceed the bound by what one packet can add.
	Bytes int
	// Room says that flows are removed only if room is short. A flow that another
	// session continues then stays, as a reader of a file expects.
	Room bool
}

func (l Limits) any() bool { return l != Limits{} }

// hold returns the bytes for datagrams whose flow has no protocol yet. That is
// most, or one part-th of l.Bytes if that is smaller, but at least what a few
// flows need.
func (l *Limits) hold(most, part int) int {
	const least = 1 << 20
	if l.Bytes == 0 {
		return most
	}
	return min(most, max(l.Bytes/part, least))
}

// Reason says why a flow was removed.
type Reason uint8

const (
	ReasonIdle    Reason = iota // it was silent
	ReasonFlows                 // there were too many
	ReasonBytes                 // their state was too large
	ReasonSession               // another session began on its addresses
)

var reasonWords = [...]string{"idle", "flows", "memory", "session"}

func (r Reason) String() string { return reasonWords[r] }

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{ReasonIdle, ReasonFlows, ReasonBytes, ReasonSession} }

// class says how much a flow has shown of itself. If room is short, flows are
// removed class by class. An attacker can forge packets, and so create any
// number of flows without an answer. Those must not displace the real ones.
type class uint8

const (
	unlisted   class = iota // there are no limits
	unanswered              // one side sends, and no protocol explains it
	answered                // both sides send, and no protocol explains it
	followed                // it has a tracker
	classes
)

// reserve is the part of the room, one in reserve, that a lower class keeps if
// it uses it. Without that part no new flow could begin beside many old ones.
const reserve = 8

// list holds the flows of a class, in the order in which they were added. A
// flow that has sent since then is moved to the end when its turn comes to be
// removed. So a packet of a known flow costs nothing here.
type list struct {
	oldest, newest *Flow
	count, bytes   int
}

// place is the position of a flow in its list.
type place struct {
	older, newer *Flow
	since        machine.Instant // when it was added
	bytes        int32           // size of its state at the last measurement
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

// classOf returns the current class of a flow.
func classOf(f *Flow) class {
	switch {
	case f.tracker != nil:
		return followed
	case f.Packets[machine.A] > 0 && f.Packets[machine.B] > 0:
		return answered
	}
	return unanswered
}

// relist moves a flow to the list of its class, and updates the size of its
// state.
func (s *Session) relist(f *Flow) {
	size := 0
	if f.tracker != nil {
		size += f.tracker.Size()
	}
	if f.conn != nil {
		size += f.conn.Size()
	}
	c := classOf(f)
	s.bounded = false
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

// measureEvery is the number of datagrams of a flow after which its state is
// measured again. Every segment of a TCP stream may be held, so streams are
// measured at each.
const measureEvery = 64

// bound runs after each packet of a flow. It updates the flow's place, and
// removes flows beyond the limits. The sums over the lists grow only where relist
// has run since.
func (s *Session) bound(f *Flow) {
	grew := f.defers && f.tracker != nil && !defers(f.tracker)
	if n := f.Packets[machine.A] + f.Packets[machine.B]; f.conn != nil || n%measureEvery <= 1 || grew ||
		f.place.class != classOf(f) {
		f.defers = f.defers && !grew
		s.relist(f)
	}
	l := &s.options.Limits
	if !s.bounded {
		s.shard.within(s.remembered(), l.Flows)
		s.shard.within(s.stateBytes(), l.Bytes)
	}
	if l.Idle > 0 {
		for c := unanswered; c < classes; c++ {
			s.letIdle(&s.lists[c])
		}
	}
	if !s.bounded {
		s.makeRoom(f)
		s.bounded = true
	}
}

// makeRoom removes flows beyond the limits. It never removes f, the flow of the current packet.
func (s *Session) makeRoom(f *Flow) {
	l := &s.options.Limits
	for l.Flows > 0 && s.remembered() > l.Flows {
		s.shard.refuse()
		s.letOne(ReasonFlows, f, func(x *list) bool { return x.count > l.Flows/reserve })
	}
	for l.Bytes > 0 && s.stateBytes() > l.Bytes && s.remembered() > 1 {
		s.shard.refuse()
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

// letIdle removes the idle flows at the head of a list.
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

// letOne removes the flow that was silent longest, of the lowest class that
// takes more than its reserve. It never removes current, the flow of the current
// packet.
func (s *Session) letOne(why Reason, current *Flow, beyond func(*list) bool) {
	spares := func(x *list) bool { return x.count > 1 || x.count == 1 && x.oldest != current }
	var from *list
	for c := unanswered; c < classes; c++ {
		x := &s.lists[c]
		if spares(x) && (from == nil || !beyond(from)) {
			from = x
		}
	}
	for f := from.oldest; ; f = from.oldest {
		if f != current && f.Last <= f.place.since {
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
	s.knownPairs() // the flow would no longer tell
	f.gone = true
	if f.pending != nil {
		f.pending.round = holdRounds
		s.decide(f, true)
	}
	if f.place.class == unanswered && (why == ReasonFlows || why == ReasonBytes) {
		f.conn = nil // a flow without an answer is not worth the search for messages
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
	s.leaveHubs(f)
	f.forgetMove()
	s.gone.add(f)
	s.reasons[why]++
	s.forgotten++
	if s.options.Gone != nil {
		s.options.Gone(f, why)
	}
}

// compact deletes removed flows from the list of all flows.
func (s *Session) compact() {
	s.flows, s.entrants = withoutGone(s.flows), withoutGone(s.entrants)
	s.forgotten = 0
}

func withoutGone(flows []*Flow) []*Flow {
	return slices.DeleteFunc(flows, func(f *Flow) bool { return f.gone })
}

// compactLeast avoids compacting short lists.
const compactLeast = 1024

// Totals are figures over flows, by protocol. The key nil has the flows that no
// protocol explains.
type Totals map[*dissect.Protocol]*Total

// Total is the sum over some flows.
type Total struct {
	Flows      uint64
	Packets    [2]uint64 // datagrams (TCP: segments) per side
	Bytes      [2]uint64 // payload bytes on the wire
	Duplicates uint64    // capture duplicates
	Sides      [2]SideTotal
	Findings   map[*machine.Rule]uint64 // occurrences
}

// SideTotal sums the figures of trackers for one side.
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
	for _, found := range f.findings.all() {
		x.Findings[found.Rule] += found.Count
	}
}

// Gone returns the sums over the flows that limits removed.
func (s *Session) Gone() Totals { return s.gone }

// Sum returns the sums over all flows: those that limits removed and those that
// are remembered.
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

// LetGo returns how many flows were removed for a reason.
func (s *Session) LetGo(why Reason) uint64 { return s.reasons[why] }

// Begun returns how many flows there were.
func (s *Session) Begun() uint64 { return uint64(s.begun) }

// StateBytes returns the size of the state of all flows at the last
// measurement. It returns 0 without limits.
func (s *Session) StateBytes() int { return s.stateBytes() }

// LiveLimits are the default limits for a live capture.
var LiveLimits = Limits{Flows: 1 << 16, Idle: 5 * time.Minute, Bytes: 256 << 20}

// FlowCost is the most that a flow of one packet can cost, in bytes, with what a command keeps of
// it.
const FlowCost = 8 << 10

// FileLimits are the limits for a file that is analysed in so much memory. The caller keeps own
// bytes of a flow beyond FlowCost.
func FileLimits(memory int64, own int) Limits {
	return Limits{Flows: int(memory / int64(FlowCost+own)), Bytes: int(memory / 2), Room: true}
}
