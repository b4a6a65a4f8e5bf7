package listing

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
)

// seriesSink gathers the series of some flows, and what their bytes were spent
// on, as the sink of a second run.
type seriesSink struct {
	Flows  map[int]*graph.Flow // by the flow's number
	Ledger ledger.Ledger
}

// NewSeriesSink follows no flow yet.
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

// Follow has the series of a flow gathered, which the first run has met.
func (s *seriesSink) Follow(f *analyze.Flow) { s.Flows[f.ID] = graph.NewFlow(f.First, f.Last) }

// Take is the analyze.Sink.
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
