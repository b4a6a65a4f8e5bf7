package whatif

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
)

// simulation runs two references against each other over the captured network.
type simulation struct {
	trace  *machine.Trace
	cuts   silences
	run    *machine.Run
	now    machine.Instant
	nets   [2]network
	sides  [2]simulatedSide
	agenda agenda.Agenda[machine.Instant, arrival]
	out    machine.Effects
	steps  int // inputs that the references took
	sent   int // datagrams sent; see SendsMost
	stuck  int // how often in a row a step did not advance the deadline
	err    error
}

// simulatedSide is the state of one side in a run.
type simulatedSide struct {
	frame, ask int // the next frame, and the next ask
	socket     [][]byte
	since      machine.Instant // when the first datagram of socket arrived
	outcome    Outcome
	open       map[uint8][]int    // by channel: asks that were not sent yet
	known      map[messageKey]int // asks by their id on the wire
	done       map[int]bool       // messages that were delivered
	asked      map[int]machine.Instant
	given      map[int]machine.Instant // when the reference took it
	queued     map[int]time.Duration   // from given until it was first sent
}

type messageKey struct {
	channel uint8
	id      uint16
}

// simulate runs to the end of the trace. It also returns how many inputs the
// references took.
func simulate(t *machine.Trace, cuts silences, run *machine.Run) (both *[2]Outcome, steps int, err error) {
	sm := &simulation{trace: t, cuts: cuts, run: run, now: t.Start}
	for i := range sm.sides {
		sm.nets[i] = newNetwork(&t.Sides[i], t.OneWay)
		x := &sm.sides[i]
		x.open, x.known, x.done = map[uint8][]int{}, map[messageKey]int{}, map[int]bool{}
		x.asked, x.given, x.queued = map[int]machine.Instant{}, map[int]machine.Instant{}, map[int]time.Duration{}
		if len(run.Asks[i]) > 0 {
			sm.now = min(sm.now, run.Asks[i][0].At)
		}
	}
	end := t.End.Add(t.OneWay)
	for sm.err == nil {
		at, what, side := sm.next()
		if what == nothing || at > end {
			break
		}
		sm.do(at, what, side)
	}
	if sm.err != nil {
		return nil, 0, sm.err
	}
	both = &[2]Outcome{}
	for i := range both {
		both[i] = sm.sides[i].outcome
		for _, m := range sm.counted(machine.Side(i)) {
			if !sm.sides[i].done[m] {
				both[i].Undelivered++
			}
		}
		slices.Sort(both[i].Latency)
		slices.Sort(both[i].Wait)
	}
	return both, sm.steps, nil
}

// counted returns the messages of a side that were submitted and that count for
// latency.
func (sm *simulation) counted(s machine.Side) (list []int) {
	for m := range sm.sides[s].asked {
		if sm.trace.Sides[s].Messages[m].Mode == machine.ModeReliable {
			list = append(list, m)
		}
	}
	sort.Ints(list)
	return list
}

type occasion uint8

const (
	nothing occasion = iota
	anArrival
	aFrame
	anAsk
	aDeadline
)

// next returns the next event. At the same instant, an arrival comes first.
func (sm *simulation) next() (at machine.Instant, what occasion, side machine.Side) {
	offer := func(t machine.Instant, w occasion, s machine.Side) {
		if what == nothing || t < at {
			at, what, side = t, w, s
		}
	}
	if t, ok := sm.agenda.Next(); ok {
		offer(t, anArrival, sm.agenda.First().to)
	}
	for i := range sm.sides {
		s, x := machine.Side(i), &sm.sides[i]
		if frames := sm.run.Frames[i]; frames != nil {
			if n := sm.frame(s); n < frames.Len() {
				offer(frames.At(n), aFrame, s)
			}
			continue
		}
		if x.ask < len(sm.run.Asks[i]) {
			offer(sm.run.Asks[i][x.ask].At, anAsk, s)
		}
		if t, ok := sm.run.Ends[i].Deadline(); ok {
			offer(max(t, sm.now), aDeadline, s)
		}
	}
	return at, what, side
}

// frame returns the next frame in which a side has something to do: read,
// submit, or do what is due. It skips the frames before it, in which nothing
// happens. It does not skip the first one, which starts a reference's clock.
func (sm *simulation) frame(s machine.Side) int {
	x, frames := &sm.sides[s], sm.run.Frames[s]
	if x.frame == 0 {
		return 0
	}
	due := machine.Instant(math.MaxInt64)
	if len(x.socket) > 0 {
		due = x.since
	}
	if x.ask < len(sm.run.Asks[s]) {
		due = min(due, sm.run.Asks[s][x.ask].At)
	}
	if t, ok := sm.run.Ends[s].Deadline(); ok {
		due = min(due, t)
	}
	return max(x.frame, frames.Search(due))
}

func (sm *simulation) do(now machine.Instant, what occasion, s machine.Side) {
	x := &sm.sides[s]
	sm.now = max(sm.now, now)
	switch what {
	case anArrival:
		a := sm.agenda.Take()
		if sm.run.Frames[s] != nil {
			if len(x.socket) == 0 {
				x.since = now
			}
			x.socket = append(x.socket, a.bytes)
			return
		}
		sm.step(now, s, machine.Arrive{Bytes: a.bytes})
	case aDeadline:
		sm.step(now, s, machine.Wake{})
		if t, ok := sm.run.Ends[s].Deadline(); !ok || t > now {
			sm.stuck = 0
			return
		}
		sm.now = now + 1 // what is left may need another instant
		if sm.stuck++; sm.stuck > stuckMost {
			sm.err = fmt.Errorf("side %s: the reference leaves undone what was due", s)
		}
	case anAsk:
		sm.submit(now, s)
	case aFrame:
		x.frame = sm.frame(s) + 1
		sm.step(now, s, machine.Wake{})
		for _, b := range x.socket {
			sm.step(now, s, machine.Arrive{Bytes: b})
		}
		x.socket = x.socket[:0]
		for x.ask < len(sm.run.Asks[s]) && sm.run.Asks[s][x.ask].At <= now && sm.err == nil {
			sm.submit(now, s)
		}
	}
}

// stuckMost is how often a reference may leave its deadline as it was. It is
// far more than a working reference needs, and few enough to stop soon.
const stuckMost = 1 << 12

// submit passes the side's next ask to its reference.
func (sm *simulation) submit(now machine.Instant, s machine.Side) {
	x := &sm.sides[s]
	a := &sm.run.Asks[s][x.ask]
	x.ask++
	if in, ok := a.In.(machine.Submit); ok && a.Message >= 0 {
		x.asked[a.Message], x.given[a.Message] = a.At, now
		x.open[in.Channel] = append(x.open[in.Channel], a.Message)
	}
	sm.step(now, s, a.In)
}

// step passes an input to a reference and carries out the effects.
func (sm *simulation) step(now machine.Instant, s machine.Side, in machine.Input) {
	if sm.err != nil {
		return
	}
	sm.steps++
	sm.out.Reset()
	end := sm.run.Ends[s]
	if err := end.Step(now, in, &sm.out); err != nil {
		if in, ok := in.(machine.Submit); ok {
			sm.refused(s, in)
			return
		}
		sm.err = fmt.Errorf("side %s at %v: %w", s, sm.cuts.toCapture(now).Time().Format("15:04:05.000"), err)
		return
	}
	x, o := &sm.sides[s], &sm.sides[s].outcome
	for i := range sm.out.Events {
		switch e := &sm.out.Events[i]; e.Kind {
		case machine.EventSent:
			if q := x.open[e.Channel]; len(q) > 0 {
				x.known[messageKey{e.Channel, uint16(e.Sequence64)}], x.open[e.Channel] = q[0], q[1:]
				x.queued[q[0]] = sm.cuts.between(x.given[q[0]], now)
			}
		case machine.EventResent:
			if now >= sm.trace.Start {
				o.Resends++
			}
		}
	}
	for i := range sm.out.Deliver {
		sm.deliver(now, s, i)
	}
	for i := range sm.out.Transmit {
		b := sm.out.Transmit[i].Bytes
		size := len(b)
		if w, ok := end.(machine.Weigher); ok {
			size = w.Weigh(b)
		}
		sm.send(now, s, append([]byte(nil), b...), size)
	}
}

// refused counts a submission that a reference refused: its connection has
// ended.
func (sm *simulation) refused(s machine.Side, in machine.Submit) {
	x := &sm.sides[s]
	if q := x.open[in.Channel]; len(q) > 0 {
		x.open[in.Channel] = q[:len(q)-1]
		x.outcome.Refused++
	}
}

// deliver records a delivery to side s of a message from its peer.
func (sm *simulation) deliver(now machine.Instant, s machine.Side, n int) {
	d := &sm.out.Deliver[n]
	from := &sm.sides[s.Other()]
	m, ok := from.known[messageKey{d.Channel, uint16(d.ID)}]
	if !ok || from.done[m] || sm.trace.Sides[s.Other()].Messages[m].Mode != machine.ModeReliable {
		return
	}
	from.done[m] = true
	wait := from.queued[m]
	if w, ok := sm.run.Ends[s].(machine.Waiter); ok {
		wait = w.Waited(n)
	}
	since := from.asked[m]
	if sm.run.InFrames {
		since = from.given[m]
	}
	from.outcome.Latency = append(from.outcome.Latency, sm.cuts.between(since, now))
	from.outcome.Wait = append(from.outcome.Wait, wait)
}

// send puts a datagram on the captured network.
func (sm *simulation) send(now machine.Instant, s machine.Side, b []byte, size int) {
	if now < sm.trace.Start {
		sm.carry(now.Add(sm.trace.OneWay), s.Other(), b) // before the capture: a perfect network
		return
	}
	if sm.sent++; sm.sent > sm.trace.SendsMost() {
		sm.err = fmt.Errorf("the run sends more than %d packets: choose a longer resend time or a lower rate, or cut a "+
			"part of the capture out", sm.trace.SendsMost())
		return
	}
	o := &sm.sides[s].outcome
	o.Packets++
	o.Bytes += uint64(size)
	f := sm.nets[s].fate(now)
	switch {
	case f.far:
		o.Guessed++
	case f.certainty <= machine.Possible:
		o.Doubtful++
	}
	if f.lost {
		o.Lost++
		return
	}
	sm.carry(now.Add(f.travel), s.Other(), b)
	if f.duplicate > 0 {
		sm.carry(now.Add(f.duplicate), s.Other(), b)
	}
}

func (sm *simulation) carry(at machine.Instant, to machine.Side, b []byte) {
	sm.agenda.Add(at, arrival{to, b})
}

// arrival is a datagram in flight.
type arrival struct {
	to    machine.Side
	bytes []byte
}
