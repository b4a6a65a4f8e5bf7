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

// theatre runs two references against each other over the captured network.
type theatre struct {
	trace  *machine.Trace
	cuts   silences
	cast   *machine.Cast
	now    machine.Instant
	nets   [2]network
	sides  [2]actor
	agenda agenda.Agenda[machine.Instant, arrival]
	out    machine.Effects
	steps  int // inputs that the references took
	sent   int // datagrams, of SendsMost
	stuck  int // how often in a row a deadline was left as it was
	err    error
}

// actor is one side at work.
type actor struct {
	frame, ask int // the next ones
	socket     [][]byte
	since      machine.Instant // when the first of socket arrived
	outcome    Outcome
	open       map[uint8][]int    // asks by channel that were not sent yet
	known      map[messageKey]int // asks by what they are called on the wire
	done       map[int]bool       // messages that were delivered
	asked      map[int]machine.Instant
	given      map[int]machine.Instant // when the reference was handed it
	queued     map[int]time.Duration   // from then until it was first sent
}

type messageKey struct {
	channel uint8
	id      uint16
}

// act runs a cast to the end of the trace, and gives the inputs that it took, too.
func act(t *machine.Trace, cuts silences, c *machine.Cast) (both *[2]Outcome, steps int, err error) {
	th := &theatre{trace: t, cuts: cuts, cast: c, now: t.Start}
	for i := range th.sides {
		th.nets[i] = newNetwork(&t.Sides[i], t.OneWay)
		x := &th.sides[i]
		x.open, x.known, x.done = map[uint8][]int{}, map[messageKey]int{}, map[int]bool{}
		x.asked, x.given, x.queued = map[int]machine.Instant{}, map[int]machine.Instant{}, map[int]time.Duration{}
		if len(c.Asks[i]) > 0 {
			th.now = min(th.now, c.Asks[i][0].At)
		}
	}
	end := t.End.Add(t.OneWay)
	for th.err == nil {
		at, what, side := th.next()
		if what == nothing || at > end {
			break
		}
		th.do(at, what, side)
	}
	if th.err != nil {
		return nil, 0, th.err
	}
	both = &[2]Outcome{}
	for i := range both {
		both[i] = th.sides[i].outcome
		for _, m := range th.counted(machine.Side(i)) {
			if !th.sides[i].done[m] {
				both[i].Undelivered++
			}
		}
		slices.Sort(both[i].Latency)
		slices.Sort(both[i].Wait)
	}
	return both, th.steps, nil
}

// counted returns the messages of a side that were asked for and whose delivery counts.
func (th *theatre) counted(s machine.Side) (list []int) {
	for m := range th.sides[s].asked {
		if th.trace.Sides[s].Messages[m].Mode == machine.ModeReliable {
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

// next returns what happens next; of the same instant, what arrives comes first.
func (th *theatre) next() (at machine.Instant, what occasion, side machine.Side) {
	offer := func(t machine.Instant, w occasion, s machine.Side) {
		if what == nothing || t < at {
			at, what, side = t, w, s
		}
	}
	if t, ok := th.agenda.Next(); ok {
		offer(t, anArrival, th.agenda.First().to)
	}
	for i := range th.sides {
		s, x := machine.Side(i), &th.sides[i]
		if frames := th.cast.Frames[i]; frames != nil {
			if n := th.frame(s); n < frames.Len() {
				offer(frames.At(n), aFrame, s)
			}
			continue
		}
		if x.ask < len(th.cast.Asks[i]) {
			offer(th.cast.Asks[i][x.ask].At, anAsk, s)
		}
		if t, ok := th.cast.Ends[i].Deadline(); ok {
			offer(max(t, th.now), aDeadline, s)
		}
	}
	return at, what, side
}

// frame returns the next frame in which a side has something to do: to read, to
// submit, or to do what is due. In the frames before it nothing happens. (The
// first one starts a reference's clock.)
func (th *theatre) frame(s machine.Side) int {
	x, frames := &th.sides[s], th.cast.Frames[s]
	if x.frame == 0 {
		return 0
	}
	due := machine.Instant(math.MaxInt64)
	if len(x.socket) > 0 {
		due = x.since
	}
	if x.ask < len(th.cast.Asks[s]) {
		due = min(due, th.cast.Asks[s][x.ask].At)
	}
	if t, ok := th.cast.Ends[s].Deadline(); ok {
		due = min(due, t)
	}
	return max(x.frame, frames.Search(due))
}

func (th *theatre) do(now machine.Instant, what occasion, s machine.Side) {
	x := &th.sides[s]
	th.now = max(th.now, now)
	switch what {
	case anArrival:
		a := th.agenda.Take()
		if th.cast.Frames[s] != nil {
			if len(x.socket) == 0 {
				x.since = now
			}
			x.socket = append(x.socket, a.bytes)
			return
		}
		th.step(now, s, machine.Arrive{Bytes: a.bytes})
	case aDeadline:
		th.step(now, s, machine.Wake{})
		if t, ok := th.cast.Ends[s].Deadline(); !ok || t > now {
			th.stuck = 0
			return
		}
		th.now = now + 1 // it may want another moment for what is left
		if th.stuck++; th.stuck > stuckMost {
			th.err = fmt.Errorf("side %s: the reference leaves undone what was due", s)
		}
	case anAsk:
		th.submit(now, s)
	case aFrame:
		x.frame = th.frame(s) + 1
		th.step(now, s, machine.Wake{})
		for _, b := range x.socket {
			th.step(now, s, machine.Arrive{Bytes: b})
		}
		x.socket = x.socket[:0]
		for x.ask < len(th.cast.Asks[s]) && th.cast.Asks[s][x.ask].At <= now && th.err == nil {
			th.submit(now, s)
		}
	}
}

// stuckMost is how often a reference may ask for another moment: far more than any
// that works does, and few enough to end at once.
const stuckMost = 1 << 12

// submit gives the side's next ask.
func (th *theatre) submit(now machine.Instant, s machine.Side) {
	x := &th.sides[s]
	a := &th.cast.Asks[s][x.ask]
	x.ask++
	if in, ok := a.In.(machine.Submit); ok && a.Message >= 0 {
		x.asked[a.Message], x.given[a.Message] = a.At, now
		x.open[in.Channel] = append(x.open[in.Channel], a.Message)
	}
	th.step(now, s, a.In)
}

// step hands an input over and carries out what comes of it.
func (th *theatre) step(now machine.Instant, s machine.Side, in machine.Input) {
	if th.err != nil {
		return
	}
	th.steps++
	th.out.Reset()
	end := th.cast.Ends[s]
	if err := end.Step(now, in, &th.out); err != nil {
		if in, ok := in.(machine.Submit); ok {
			th.refused(s, in)
			return
		}
		th.err = fmt.Errorf("side %s at %v: %w", s, th.cuts.captured(now).Time().Format("15:04:05.000"), err)
		return
	}
	x, o := &th.sides[s], &th.sides[s].outcome
	for i := range th.out.Events {
		switch e := &th.out.Events[i]; e.Kind {
		case machine.EventSent:
			if q := x.open[e.Channel]; len(q) > 0 {
				x.known[messageKey{e.Channel, uint16(e.Sequence64)}], x.open[e.Channel] = q[0], q[1:]
				x.queued[q[0]] = th.cuts.between(x.given[q[0]], now)
			}
		case machine.EventResent:
			if now >= th.trace.Start {
				o.Resends++
			}
		}
	}
	for i := range th.out.Deliver {
		th.deliver(now, s, i)
	}
	for i := range th.out.Transmit {
		b := th.out.Transmit[i].Bytes
		size := len(b)
		if w, ok := end.(machine.Weigher); ok {
			size = w.Weigh(b)
		}
		th.send(now, s, append([]byte(nil), b...), size)
	}
}

// refused notes that a reference did not take a submission: its connection has ended.
func (th *theatre) refused(s machine.Side, in machine.Submit) {
	x := &th.sides[s]
	if q := x.open[in.Channel]; len(q) > 0 {
		x.open[in.Channel] = q[:len(q)-1]
		x.outcome.Refused++
	}
}

// deliver takes a delivery to side s of what its peer had asked for.
func (th *theatre) deliver(now machine.Instant, s machine.Side, n int) {
	d := &th.out.Deliver[n]
	from := &th.sides[s.Other()]
	m, ok := from.known[messageKey{d.Channel, uint16(d.ID)}]
	if !ok || from.done[m] || th.trace.Sides[s.Other()].Messages[m].Mode != machine.ModeReliable {
		return
	}
	from.done[m] = true
	wait := from.queued[m]
	if w, ok := th.cast.Ends[s].(machine.Waiter); ok {
		wait = w.Waited(n)
	}
	since := from.asked[m]
	if th.cast.InFrames {
		since = from.given[m]
	}
	from.outcome.Latency = append(from.outcome.Latency, th.cuts.between(since, now))
	from.outcome.Wait = append(from.outcome.Wait, wait)
}

// send puts a datagram on the captured network.
func (th *theatre) send(now machine.Instant, s machine.Side, b []byte, size int) {
	if now < th.trace.Start {
		th.carry(now.Add(th.trace.OneWay), s.Other(), b) // before the capture: a perfect network
		return
	}
	if th.sent++; th.sent > th.trace.SendsMost() {
		th.err = fmt.Errorf("the run sends more than %d packets: choose a longer resend time or a lower rate, or cut a "+
			"part of the capture out", th.trace.SendsMost())
		return
	}
	o := &th.sides[s].outcome
	o.Packets++
	o.Bytes += uint64(size)
	f := th.nets[s].fate(now)
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
	th.carry(now.Add(f.travel), s.Other(), b)
	if f.again > 0 {
		th.carry(now.Add(f.again), s.Other(), b)
	}
}

func (th *theatre) carry(at machine.Instant, to machine.Side, b []byte) {
	th.agenda.Add(at, arrival{to, b})
}

// arrival is a datagram under way.
type arrival struct {
	to    machine.Side
	bytes []byte
}
