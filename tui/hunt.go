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

// hunt runs along one flow until a filter holds: over the packet, what it
// settled, and what both sides knew then. It works in the background.
type hunt struct {
	model   *Model
	filter  *filter.Filter
	way     int
	from    int // entry that it begins behind, or before
	reading *filter.Reading
	found   int // -1 for none yet
	work    *store.Collect
	over    atomic.Bool
}

// knowledge is what a walk knows of its flow at a packet.
type knowledge struct{ tracker machine.Tracker }

func (k *knowledge) RTT(s machine.Side) time.Duration { return machine.RTT(k.tracker, s) }

func (k *knowledge) Loss(s machine.Side) float64 { return machine.Loss(k.tracker, s) }

func (k *knowledge) Sent(s machine.Side) (uint64, bool) { return machine.Sent(k.tracker, s), true }

func (k *knowledge) Facts() machine.Facts { return k.tracker.Learned() }

// breakWhen begins to run.
func (m *Model) breakWhen(f *filter.Filter, way int) {
	flow := m.Focus()
	if flow == nil || flow.Protocol == nil || flow.Protocol.NewTracker == nil {
		m.Fail("%v", store.ErrNoFlow)
		return
	}
	m.hunt.end()
	h := &hunt{model: m, filter: f, way: way, from: m.Selected, found: -1, reading: m.Store.NewReading()}
	h.reading.Join = f.Needs()&filter.NeedFields != 0
	from := -1
	if way > 0 {
		from = h.from + 1
	}
	var k knowledge
	take := func(r *analyze.Record, tracker machine.Tracker) bool {
		if r.Frame == nil {
			return true
		}
		if way < 0 && int(r.N) >= h.from {
			return false
		}
		x := h.reading.Take(r)
		h.reading.Previous = r.Datagram.At
		k.tracker = tracker
		x.Knowledge = &k
		if h.filter.Match(x) {
			h.found = int(r.N)
			return way < 0
		}
		return true
	}
	h.work = m.Store.Collect(flow, from, take, func() { h.found = -1 })
	m.hunt = h
	m.Say("running until %s", f)
}

// running reports whether it has not ended.
func (h *hunt) running() bool { return h != nil && !h.over.Load() }

// end stops it.
func (h *hunt) end() {
	if h.running() {
		h.over.Store(true)
		h.work.End()
	}
}

// settle goes where the hunt has ended.
func (m *Model) settleHunt() {
	h := m.hunt
	if !h.running() || !h.work.Over() {
		return
	}
	h.end()
	switch {
	case h.work.Err() != nil && !errors.Is(h.work.Err(), analyze.ErrNotReached):
		m.Fail("%v", h.work.Err())
	case h.found >= 0:
		m.Jump(h.found)
		m.Say("%s holds at frame %s", h.filter, m.SelectedFrame())
	case h.way > 0:
		m.Say("%s holds at no later packet of the flow", h.filter)
	default:
		m.Say("%s holds at no earlier packet of the flow", h.filter)
	}
}
