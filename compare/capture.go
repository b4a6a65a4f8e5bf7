package compare

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/machine"
)

// Limits of memory. Of more flows, several share the figures of one.
// Source: bound, memory of a comparison: flows, slices of time, and types of messages
const (
	flowsMost  = 2048
	slicesMost = 128
	typesMost  = 32
	phasesMost = 16
	framesKept = 1 << 14
)

// sliceLeast is the length of a slice of time, until a flow has slicesMost of them. Then
// pairs of slices become one.
const sliceLeast = time.Second

// Capture collects the figures of one set of captures. The zero value is empty.
type Capture struct {
	Recordings int
	Flows      int // of a known protocol
	Other      int // flows of none
	Span       time.Duration

	flows  []*flow // several flows may share one, beyond flowsMost
	open   map[*analyze.Flow]*flow
	names  map[typeKey]string
	frames [framesKept]struct {
		ref machine.Ref
		at  machine.Instant
	}
}

// flow is the figures of one flow over time.
type flow struct {
	protocol string
	ports    [2]uint16
	first    machine.Instant
	last     machine.Instant
	width    time.Duration
	slices   []slice
	current  int // the slice of the last packet
	before   [2]machine.Summary
	paths    [2][lossKinds]machine.PathLoss // the last one of each kind
	known    [2]bool                        // before is set
	steps    [2]*steps
	timer    [2]time.Duration // how soon the side sent a message again, lately
	stall    [2]time.Duration // the longest silence of a side, and noTime if it is not known
	wait     [2]time.Duration // the longest wait of a complete message, likewise
}

// noTime is a longest time that the capture does not show.
const noTime time.Duration = -1

// slice is what happened in one slice of time, by sender.
type slice [2]sideSlice

type sideSlice struct {
	packets, bytes int64
	settled, lost  [lossKinds]int64
	open           int64 // by the bounds: packets that may be lost or not
	trips          int64
	tripSum        time.Duration
	changes        time.Duration
	types          map[string]*typeSlice
	rules          map[*machine.Rule]int64
}

// How losses are counted.
const (
	lossBounded = iota // on the way to the peer, at least: open more are possible
	lossOneWay         // on the way to the peer, of packets whose fate is known
	lossRound          // on the way there and back, of such packets
	lossKinds
)

// typeSlice is the messages of one type that were first sent in a slice.
type typeSlice struct {
	messages int64 // that are sent until they are acked
	resends  int64
	fewer    int64 // of the resends: those that another position of frames would spare
	further  int64 // messages that another position of frames would have sent again
	arrival  figures.Times
}

// Options makes an analysis collect into the capture. Call End after the run.
func (c *Capture) Options(o *analyze.Options) {
	c.open = map[*analyze.Flow]*flow{}
	gone := o.Gone
	o.Sink, o.Found = c.take, c.found
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		c.end(f)
		if gone != nil {
			gone(f, why)
		}
	}
}

// End completes the figures of one recording.
func (c *Capture) End(s *analyze.Session) {
	for _, f := range s.Flows() {
		c.end(f)
	}
	first, last := s.Span()
	c.Span += max(0, last.Sub(first))
	c.Recordings++
	clear(c.open)
}

func (c *Capture) end(f *analyze.Flow) {
	if f.Protocol == nil {
		c.Other++
		return
	}
	c.Flows++
	if x := c.open[f]; x != nil {
		x.measure(f)
		x.last = max(x.last, f.Last)
		for side := range x.stall {
			if n, ok := f.Network(machine.Side(side)); ok {
				x.stall[side] = max(x.stall[side], n.Stall)
			}
		}
		delete(c.open, f)
	}
}

// flowOf returns the figures of a flow.
func (c *Capture) flowOf(f *analyze.Flow) *flow {
	if x := c.open[f]; x != nil {
		return x
	}
	x := &flow{
		protocol: f.Protocol.Name, ports: [2]uint16{f.A.Port(), f.B.Port()}, first: f.First, last: f.First,
		width: sliceLeast, stall: [2]time.Duration{noTime, noTime}, wait: [2]time.Duration{noTime, noTime},
	}
	if len(c.flows) < flowsMost {
		if len(c.flows) < phasesMost {
			x.steps = [2]*steps{new(steps), new(steps)}
		}
		c.flows = append(c.flows, x)
	} else {
		// Flows share figures in turn, from the same time on.
		for i := range c.flows {
			if y := c.flows[(len(c.open)*7919+c.Flows+i)%len(c.flows)]; y.protocol == x.protocol && y.ports[1] == x.ports[1] {
				y.first, y.known = f.First, [2]bool{}
				x = y
				break
			}
		}
	}
	c.open[f] = x
	return x
}

// room returns how many slices each flow may have.
func (c *Capture) room() int { return max(1, min(slicesMost, 16*slicesMost/max(1, len(c.flows)))) }

// slice returns the index of the slice of an instant.
func (f *flow) slice(at machine.Instant, most int) int {
	since := max(0, at.Sub(f.first))
	for int64(since/f.width) >= int64(most) || len(f.slices) > most {
		f.halve()
	}
	i := int(since / f.width)
	for len(f.slices) <= i {
		f.slices = append(f.slices, slice{})
	}
	return i
}

// halve joins pairs of slices.
func (f *flow) halve() {
	for i := range f.slices {
		if i%2 == 0 {
			f.slices[i/2] = f.slices[i]
			continue
		}
		for side := range f.slices[i] {
			f.slices[i/2][side].join(&f.slices[i][side])
		}
	}
	f.slices = f.slices[:(len(f.slices)+1)/2]
	f.current /= 2
	f.width *= 2
}

func (s *sideSlice) join(o *sideSlice) {
	s.packets, s.bytes = s.packets+o.packets, s.bytes+o.bytes
	for i := range s.settled {
		s.settled[i], s.lost[i] = s.settled[i]+o.settled[i], s.lost[i]+o.lost[i]
	}
	s.open += o.open
	s.trips, s.tripSum, s.changes = s.trips+o.trips, s.tripSum+o.tripSum, s.changes+o.changes
	for name, t := range o.types {
		s.kind(name).join(t)
	}
	for rule, n := range o.rules {
		s.rule(rule, n)
	}
}

func (t *typeSlice) join(o *typeSlice) {
	t.messages, t.resends = t.messages+o.messages, t.resends+o.resends
	t.fewer, t.further = t.fewer+o.fewer, t.further+o.further
	t.arrival.Join(&o.arrival)
}

// furtherTypes collects the types beyond typesMost.
const furtherTypes = "further types"

func (s *sideSlice) kind(name string) *typeSlice {
	t := s.types[name]
	if t == nil && len(s.types) >= typesMost {
		name = furtherTypes
		t = s.types[name]
	}
	if t == nil {
		if s.types == nil {
			s.types = map[string]*typeSlice{}
		}
		t = new(typeSlice)
		s.types[name] = t
	}
	return t
}

func (s *sideSlice) rule(r *machine.Rule, n int64) {
	if s.rules == nil {
		s.rules = map[*machine.Rule]int64{}
	}
	s.rules[r] += n
}

// take is the sink of the second run.
func (c *Capture) take(r *analyze.Record) {
	if r.Flow == nil || r.Flow.Protocol == nil {
		return
	}
	f, at, most := c.flowOf(r.Flow), r.Datagram.At, c.room()
	i := f.slice(at, most)
	if i != f.current {
		f.measure(r.Flow)
		f.current = i
	}
	if r.Packet != nil && r.Index == 0 {
		side := &f.slices[i][r.Datagram.From]
		side.packets++
		side.bytes += int64(r.Packet.Length)
		if steps := f.steps[r.Datagram.From]; steps != nil {
			steps.add(at)
		}
		slot := &c.frames[r.Datagram.Ref.Frame()%framesKept]
		slot.ref, slot.at = r.Datagram.Ref, at
		f.last = max(f.last, at)
	}
	for j := range r.Messages {
		c.message(f, r.Flow, &r.Messages[j], most)
	}
}

// measure adds what the summaries of both sides counted since the last call.
func (f *flow) measure(of *analyze.Flow) {
	if f.current >= len(f.slices) {
		return
	}
	for side := range f.before {
		now, ok := of.Summary(machine.Side(side))
		if !ok {
			continue
		}
		x, old := &f.slices[f.current][side], &f.before[side]
		if !f.known[side] {
			*old, f.paths[side] = machine.Summary{}, [lossKinds]machine.PathLoss{}
		}
		kind := lossOneWay
		if now.PathBoth {
			kind = lossRound
		}
		if now.PathKnown != machine.Unknown {
			path := &f.paths[side][kind]
			// A tracker that learns more may count anew, over other packets. What it counted
			// of earlier slices then does not belong to this one.
			if anew := now.Path.Settled < path.Settled || *path == (machine.PathLoss{}) && f.known[side]; !anew {
				x.settled[kind] += int64(now.Path.Settled) - int64(path.Settled)
				x.lost[kind] += int64(now.Path.Lost) - int64(path.Lost)
			}
			*path = now.Path
		}
		if now.Bounds.Known() {
			x.settled[lossBounded] += int64(now.Bounds.Sent) - int64(old.Bounds.Sent)
			x.lost[lossBounded] += int64(now.Bounds.Least) - int64(old.Bounds.Least)
			x.open += int64(now.Bounds.Most-now.Bounds.Least) - int64(old.Bounds.Most-old.Bounds.Least)
		} else {
			now.Bounds = old.Bounds
		}
		x.trips += int64(now.Trips.Count) - int64(old.Trips.Count)
		x.tripSum += now.Trips.Sum - old.Trips.Sum
		x.changes += now.Trips.Changes - old.Trips.Changes
		*old, f.known[side] = now, true
	}
}

// message adds the life of a message to the slice in which it was first sent.
func (c *Capture) message(f *flow, of *analyze.Flow, m *machine.Message, most int) {
	t := f.slices[f.slice(m.At, most)][m.From].kind(c.typeName(of, m))
	if about := m.About(); about >= 0 {
		t.arrival.Add(about)
	}
	if m.Delivered != machine.Unanswered {
		f.wait[m.From] = max(f.wait[m.From], m.Wait)
	}
	if m.Mode != machine.ModeReliable || m.Attempts < 1 {
		return
	}
	t.messages++
	t.resends += int64(m.Again())
	if m.Acked != machine.Yes {
		return
	}
	// A copy that left within a frame of the ack could have been spared. A message that was acked
	// within a frame of its timer could have been sent again.
	frame := frameMost
	if m.Attempts == 1 {
		if timer := f.timer[m.From]; timer > 0 && m.AckedAt.Sub(m.At) > timer-frame {
			t.further++
		}
		return
	}
	if again := &c.frames[m.Frames[1].Frame()%framesKept]; again.ref == m.Frames[1] {
		f.timer[m.From] = again.at.Sub(m.At)
	}
	last := m.Frames[min(m.Attempts, machine.MessageFrames)-1]
	if copied := &c.frames[last.Frame()%framesKept]; copied.ref == last {
		if after := m.AckedAt.Sub(copied.at); after >= 0 && after < frame {
			t.fewer++
		}
	}
}

// frameMost is the longest frame of a game that counts for the position of frames.
// Source: definition, the frame of a game that sends 30 times a second
const frameMost = 34 * time.Millisecond

// typeName returns the name of a message's type. It asks the protocol once for each type.
func (c *Capture) typeName(f *analyze.Flow, m *machine.Message) string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Untyped:
		return "unknown type"
	}
	key := typeKey{f.Config(), m.Type}
	name, ok := c.names[key]
	if ok {
		return name
	}
	if say := f.Protocol.Message; say != nil {
		name, _ = say(f.Config(), &machine.Message{From: m.From, Type: m.Type, ID: m.ID, Mode: m.Mode, Bits: m.Bits})
	}
	if name == "" {
		name = m.TypeText()
	}
	if c.names == nil {
		c.names = map[typeKey]string{}
	}
	if len(c.names) < flowsMost {
		c.names[key] = name
	}
	return name
}

// typeKey is a type of messages as a configuration reads it.
type typeKey struct {
	config *dissect.Config
	kind   uint32
}

// found counts an occurrence of a rule.
func (c *Capture) found(x *analyze.Finding) {
	if x.Flow == nil || x.Flow.Protocol == nil {
		return
	}
	f := c.flowOf(x.Flow)
	f.slices[f.slice(x.Last, c.room())][x.Side].rule(x.Rule, 1)
}
