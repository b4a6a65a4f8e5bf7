package store

import (
	"errors"

	"github.com/ackscope/ackscope/analyze"
)

// walkAtOnce is how many datagrams a key or a drawing steps over on the UI's
// thread to tell a state: about 3 us each, and a drawing tells up to three states.
const walkAtOnce = 2048

// ErrApproach says that a state is told later: a walk to its packet goes on.
var ErrApproach = errors.New("the flow is being stepped to this packet …")

// approach is a walk to a packet that lies far behind the last checkpoint. It goes
// on in the background and leaves a checkpoint there.
type approach struct {
	flow, entry, pass int
	over              bool
}

// IsNear reports whether the state of a flow at an entry can be told at once.
// Where it cannot, a walk to the packet before it begins in the background.
func (s *Store) IsNear(f *analyze.Flow, n int) bool {
	if s.timeline.Distance(f, n, s.Walks) <= s.Walks {
		return true
	}
	if x := s.approach; x != nil && !x.over && x.flow == f.ID && x.entry == n && x.pass == s.pass {
		return false // it goes on
	} else if x != nil {
		x.over = true
	}
	x := &approach{flow: f.ID, entry: n, pass: s.pass}
	s.approach = x
	s.Work(func() { s.step(x, f) })
	return false
}

// step walks, letting go of the lock now and then.
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
			s.Poke()
		}
		s.Unlock()
		if !more {
			return
		}
	}
}

// Approached counts the walks that came to their packets: what was told of a packet
// before is told anew when it has changed.
func (s *Store) Approached() int { return s.approached }
