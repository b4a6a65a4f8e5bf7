package store

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/replay"
)

// Replay replays what has been read so far against the references, in the
// background. Its readers hold the store's lock.
type Replay struct {
	Behaviour string // the requested one; empty for what the packets suggest
	Matrix    bool   // every side is compared with every applicable behaviour
	File      *replay.File

	store   *Store
	source  *reread
	survey  *analyze.Survey
	err     error
	done    bool
	stopped bool // the user stopped it
}

// Replay starts a replay of what has been read so far.
func (s *Store) Replay(behaviour string, matrix bool) *Replay {
	r := &Replay{store: s, source: newReread(s), Behaviour: behaviour, Matrix: matrix, survey: s.survey}
	o := replay.Options{Analysis: s.options, Behaviour: behaviour, Matrix: matrix, Survey: s.survey}
	s.Work(func() {
		file, err := replay.Run("", r.source, o)
		s.Lock()
		defer s.Unlock()
		r.File, r.err, r.done = file, err, true
		s.notify()
	})
	return r
}

// Done reports whether the replay has ended.
func (r *Replay) Done() bool { return r.done }

// Err returns why the replay failed, or nil.
func (r *Replay) Err() error { return r.err }

// Outdated reports whether more is known of the capture than when the replay
// started.
func (r *Replay) Outdated() bool { return r.survey != r.store.survey }

// Packets returns the number of packets to replay.
func (r *Replay) Packets() int { return r.source.end }

// Percent returns how many percent of the packets have been replayed.
func (r *Replay) Percent() int64 { return 100 * r.source.read.Load() / int64(max(r.source.end, 1)) }

// Rewound reports whether the replay reads the packets for the second time.
func (r *Replay) Rewound() bool { return r.source.rewound.Load() }

// Stop stops the replay for the user.
func (r *Replay) Stop() {
	r.stopped = true
	close(r.source.stop)
}

// Stopped reports whether the user stopped the replay.
func (r *Replay) Stopped() bool { return r.stopped }

// End stops a running replay. It does nothing if r is nil or not running.
func (r *Replay) End() {
	if r != nil && !r.done && !r.stopped {
		close(r.source.stop)
	}
}
