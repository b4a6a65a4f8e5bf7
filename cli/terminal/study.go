package terminal

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
)

// study implements store.Study with what `ackscope overview` collects.
type study struct {
	messages overview.Messages
	endings  app.Endings
}

// Take implements store.Study.
func (s *study) Take(r *analyze.Record) {
	s.messages.Take(r)
	s.endings.Take(r)
}

// Forget implements store.Study.
func (s *study) Forget(f *analyze.Flow, why analyze.Reason) {
	s.messages.Forget(f.ID)
	s.endings.Forget(f, why)
}

// Input implements store.Study.
func (s *study) Input(at machine.Instant) *overview.Input {
	in := &overview.Input{Messages: &s.messages, Ends: map[int]overview.End{}}
	for _, e := range s.endings.Ended(at) {
		in.Ends[e.Flow.ID] = overview.End{Silent: e.Silent, Failed: e.Failed, Story: e.Story}
	}
	return in
}
