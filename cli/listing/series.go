package listing

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
)

// seriesSink is a sink for the second run. It collects the series of some
// flows, and what their bytes were spent on.
type seriesSink struct {
	Flows  map[int]*graph.Flow // by flow number
	Ledger ledger.Ledger
}

// NewSeriesSink returns a sink that follows no flow yet.
func NewSeriesSink() *seriesSink {
	s := &seriesSink{Flows: map[int]*graph.Flow{}}
	s.Ledger.Spent = func(f *analyze.Flow, from machine.Side, at machine.Instant, c *ledger.Cost) {
		if g := s.Flows[f.ID]; g != nil {
			g.Spend(from, at, float64(c.Link+c.IP+c.Transport+c.Header)/8, float64(c.Acks)/8, float64(c.Resent)/8,
				float64(c.Goodput)/8)
		}
	}
	return s
}

// Follow starts to collect the series of a flow that the first run has found.
func (s *seriesSink) Follow(f *analyze.Flow) { s.Flows[f.ID] = graph.NewFlow(f.First, f.Last) }

// Take implements analyze.Sink.
func (s *seriesSink) Take(r *analyze.Record) {
	s.Ledger.Take(r)
	if r.Flow == nil {
		return
	}
	g := s.Flows[r.Flow.ID]
	if g == nil {
		return
	}
	g.Take(r)
	var moved [2]bool
	for i := range r.Events {
		if k := r.Events[i].Kind; k == machine.EventAcked || k == machine.EventLost {
			moved[r.Events[i].Side] = true
		}
	}
	for side, yes := range moved {
		if !yes {
			continue
		}
		if sum, ok := r.Flow.Summary(machine.Side(side)); ok {
			g.Measure(machine.Side(side), r.Datagram.At, &sum)
		}
	}
}
