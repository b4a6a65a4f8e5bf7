package store

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
)

// Study collects from the records what the overview of a capture needs beside the flows.
type Study interface {
	Take(r *analyze.Record)
	// Forget drops what is kept of a flow.
	Forget(f *analyze.Flow, why analyze.Reason)
	// Input returns what was collected, as at an instant.
	Input(at machine.Instant) *overview.Input
}

// StudyWith makes the store collect what overviews need. It is called before Start. Each run begins
// a new study.
func (s *Store) StudyWith(begin func() Study) { s.newStudy = begin }

// Overview returns what an overview of the packets read so far is made of.
func (s *Store) Overview() *overview.Input {
	in := &overview.Input{}
	if s.study != nil {
		in = s.study.Input(s.last)
	}
	in.Session, in.Problem, in.Logs = s.session, s.end, s.report
	return in
}
