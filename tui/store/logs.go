package store

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/gamelog"
)

// Logs are the game's own logs, which are read beside a capture.
type Logs interface {
	// Sink begins a run. It returns the sink of the run's records.
	Sink(next analyze.Sink) analyze.Sink
	// Forget removes a flow that a limit of the analysis has removed.
	Forget(f *analyze.Flow)
	// Report aligns the logs with the last run.
	Report(s *analyze.Session) *gamelog.Report
}

// AddLogs adds the game's own logs. They are aligned when the whole capture is read. AddLogs must
// be called before Start.
func (s *Store) AddLogs(logs Logs) {
	s.logs = logs
	if s.growing {
		s.follow()
	}
}

// follow begins to collect what the logs are aligned with.
func (s *Store) follow() {
	if s.logs != nil {
		s.trace = s.logs.Sink(nil)
	}
}

// align aligns the logs with the last run. That takes a while, so the lock is not held: the run
// has ended, and its flows change no more.
func (s *Store) align(session *analyze.Session) *gamelog.Report {
	if s.trace == nil {
		return nil
	}
	return s.logs.Report(session)
}

// HasLogs reports whether there are logs of the game.
func (s *Store) HasLogs() bool { return s.logs != nil }

// Logs returns what the game's own logs say. It is nil without logs, and until all is read.
func (s *Store) Logs() *gamelog.Report { return s.report }
