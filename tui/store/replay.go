package store

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/replay"
)

// Replay is a replay of what has been read against the references, at work in the
// background. The lock is to be held to read it.
type Replay struct {
	Behaviour string // that was asked for; empty for what the packets suggest
	Matrix    bool   // every side against every behaviour that applies
	File      *replay.File

	store   *Store
	source  *reread
	survey  *analyze.Survey
	err     error
	done    bool
	stopped bool // by the user
}

// Replay begins to replay what has been read so far.
func (s *Store) Replay(behaviour string, matrix bool) *Replay {
	r := &Replay{store: s, source: newReread(s), Behaviour: behaviour, Matrix: matrix, survey: s.survey}
	o := replay.Options{Analysis: s.options, Behaviour: behaviour, Matrix: matrix, Survey: s.survey}
	s.Work(func() {
		file, err := replay.Run("", r.source, o)
		s.Lock()
		defer s.Unlock()
		r.File, r.err, r.done = file, err, true
		s.tell()
	})
	return r
}

// Done reports whether it has ended.
func (r *Replay) Done() bool { return r.done }

// Err says why it failed; nil where it did not.
func (r *Replay) Err() error { return r.err }

// Outdated reports whether more is known of the capture than when it was begun.
func (r *Replay) Outdated() bool { return r.survey != r.store.survey }

// Packets is how many packets it goes through.
func (r *Replay) Packets() int { return r.source.end }

// Percent says how far it is.
func (r *Replay) Percent() int64 { return 100 * r.source.read.Load() / int64(max(r.source.end, 1)) }

// Rewound reports whether it has begun to read anew.
func (r *Replay) Rewound() bool { return r.source.rewound.Load() }

// Stop ends it for good, as the user asked.
func (r *Replay) Stop() {
	r.stopped = true
	close(r.source.stop)
}

// Stopped reports whether the user has ended it.
func (r *Replay) Stopped() bool { return r.stopped }

// End ends it where it is at work; nil is none.
func (r *Replay) End() {
	if r != nil && !r.done && !r.stopped {
		close(r.source.stop)
	}
}
