package tui

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/store"
)

// untilRun runs along one flow, in the background, until a filter holds. The
// filter sees the packet, what it settled, and what both sides knew then.
type untilRun struct {
	model   *Model
	filter  *filter.Filter
	way     int
	from    int // the entry to start after, or before
	reading *filter.Reading
	found   int // -1 for none yet
	work    *store.Collect
	over    atomic.Bool
}

// knowledge is what both sides of a flow know at a packet, for filters.
type knowledge struct{ tracker machine.Tracker }

func (k *knowledge) RTT(s machine.Side) time.Duration { return machine.RTT(k.tracker, s) }

func (k *knowledge) Loss(s machine.Side) float64 { return machine.Loss(k.tracker, s) }

func (k *knowledge) Sent(s machine.Side) (uint64, bool) { return machine.Sent(k.tracker, s), true }

func (k *knowledge) Facts() machine.Facts { return k.tracker.Learned() }

// runUntil starts a run. A positive way runs forwards.
func (m *Model) runUntil(f *filter.Filter, way int) {
	flow := m.Focus()
	if flow == nil || flow.Protocol == nil || flow.Protocol.NewTracker == nil {
		m.Fail("%v", store.ErrNoFlow)
		return
	}
	m.until.end()
	u := &untilRun{model: m, filter: f, way: way, from: m.Selected, found: -1, reading: m.Store.NewReading()}
	u.reading.Join = f.Needs()&filter.NeedFields != 0
	from := -1
	if way > 0 {
		from = u.from + 1
	}
	var k knowledge
	take := func(r *analyze.Record, tracker machine.Tracker) bool {
		if r.Frame == nil {
			return true
		}
		if way < 0 && int(r.N) >= u.from {
			return false
		}
		x := u.reading.Take(r)
		u.reading.Previous = r.Datagram.At
		k.tracker = tracker
		x.Knowledge = &k
		if u.filter.Match(x) {
			u.found = int(r.N)
			return way < 0
		}
		return true
	}
	u.work = m.Store.Collect(flow, from, take, func() { u.found = -1 })
	m.until = u
	m.Say("running until %s", f)
}

// running reports whether the run goes on. It returns false for nil.
func (u *untilRun) running() bool { return u != nil && !u.over.Load() }

// end stops the run.
func (u *untilRun) end() {
	if u.running() {
		u.over.Store(true)
		u.work.End()
	}
}

// settleUntil selects the packet at which the run has ended.
func (m *Model) settleUntil() {
	u := m.until
	if !u.running() || !u.work.Over() {
		return
	}
	u.end()
	switch {
	case u.work.Err() != nil && !errors.Is(u.work.Err(), analyze.ErrNotReached):
		m.Fail("%v", u.work.Err())
	case u.found >= 0:
		m.Jump(u.found)
		m.Say("%s holds at frame %s", u.filter, m.SelectedFrame())
	case u.way > 0:
		m.Say("%s holds at no later packet of the flow", u.filter)
	default:
		m.Say("%s holds at no earlier packet of the flow", u.filter)
	}
}
