package store

import (
	"errors"

	"github.com/ackscope/ackscope/analyze"
)

// walkAtOnce is how many datagrams a key or a drawing may step over on the UI's
// thread to compute a state. A step takes about 3 µs, and a drawing computes up
// to three states.
const walkAtOnce = 2048

// ErrApproach says that the state is not available yet: a walk to its packet is
// running.
var ErrApproach = errors.New("the flow is being stepped to this packet …")

// approach is a background walk to a packet far behind the last checkpoint. It
// leaves a checkpoint at that packet.
type approach struct {
	flow, entry, pass int
	over              bool
}

// IsNear reports whether the state of a flow at an entry is available at once.
// If it is not, IsNear starts a background walk to the packet before it.
func (s *Store) IsNear(f *analyze.Flow, n int) bool {
	if s.timeline.Distance(f, n, s.Walks) <= s.Walks {
		return true
	}
	if x := s.approach; x != nil && !x.over && x.flow == f.ID && x.entry == n && x.pass == s.pass {
		return false // it is running
	} else if x != nil {
		x.over = true
	}
	x := &approach{flow: f.ID, entry: n, pass: s.pass}
	s.approach = x
	s.Work(func() { s.step(x, f) })
	return false
}

// step runs the walk. It releases the lock after each batch of steps.
func (s *Store) step(x *approach, f *analyze.Flow) {
	var w *analyze.Walk
	for {
		select {
		case <-s.stop:
			return
		default:
		}
		s.Lock()
		// The second run has checkpoints of its own.
		if x.over || x.pass != s.pass || f != s.Flow(x.flow) {
			x.over = true
			s.Unlock()
			return
		}
		if w == nil {
			var err error
			if w, err = s.timeline.Walk(f, x.entry); err != nil {
				x.over = true
				s.Unlock()
				return
			}
		}
		more := true
		for range min(collectSteps, max(s.Walks, 1)) {
			n, ok := w.Peek()
			if more = ok && n < x.entry && w.Next() != nil; !more {
				break
			}
		}
		if !more {
			w.Keep()
			x.over = true
			s.approached++
			s.Redraw()
		}
		s.Unlock()
		if !more {
			return
		}
	}
}

// Approached counts the finished walks. When it changes, states that were not
// available can be drawn.
func (s *Store) Approached() int { return s.approached }
