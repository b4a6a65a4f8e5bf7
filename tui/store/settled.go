package store

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// ErrNoFlow says that a packet has no state to show.
var ErrNoFlow = errors.New("the packet belongs to no flow whose state is followed")

// Settled is what the step over one packet settled.
type Settled struct {
	Events   []machine.Event
	Messages []machine.Message
}

// SettledAt steps a packet's flow up to that packet, and returns what it
// settled.
func (s *Store) SettledAt(n int) (*Settled, error) {
	if n < 0 || n >= s.Len() {
		return nil, ErrNoFlow
	}
	f := s.FlowOf(n)
	if f == nil || f.Protocol == nil || f.Protocol.NewTracker == nil {
		return nil, ErrNoFlow
	}
	if !s.Reached(n) {
		return nil, analyze.ErrNotReached
	}
	if !s.IsNear(f, n) {
		return nil, ErrApproach
	}
	w, err := s.timeline.Walk(f, n)
	if err != nil {
		return nil, err
	}
	out := &Settled{}
	for {
		at, ok := w.Peek()
		if !ok || at > n {
			return out, w.Err()
		}
		r := w.Next()
		if r == nil {
			return out, w.Err()
		}
		if at == n {
			out.Events = append(out.Events, r.Events...)
			out.Messages = append(out.Messages, r.Messages...)
		}
	}
}

// nearStart is the number of packets whose state is available while the first
// run has left no checkpoints.
const nearStart = 1 << 14

// Reached reports whether the state at an entry is available without a long
// walk.
func (s *Store) Reached(n int) bool {
	if s.pass == 1 && !s.growing {
		return n < nearStart
	}
	return n < s.timeline.Filled()
}

// Full returns a packet's record. It includes what the packet settled, if the
// state there is available. For a TCP segment it is the record of the first
// message.
func (s *Store) Full(n int) (*analyze.Record, error) {
	f := s.FlowOf(n)
	if f != nil && f.Protocol != nil && f.Protocol.NewTracker != nil && s.Reached(n) &&
		!s.timeline.At(n).Marks.Duplicate() && s.IsNear(f, n) {
		w, err := s.timeline.Walk(f, n)
		if err == nil {
			for {
				at, ok := w.Peek()
				if !ok || at > n {
					break
				}
				if r := w.Next(); r != nil && at == n {
					return r, nil
				}
			}
		}
	}
	r, err := s.timeline.Read(n)
	if err != nil {
		return nil, err
	}
	if r.Flow == nil && s.timeline.FlowID(n) != 0 {
		r.Flow = f
		r.Datagram.From = s.timeline.At(n).Marks.From()
	}
	return r, nil
}

// StateAt fills views with the state of both sides of a flow at an entry.
func (s *Store) StateAt(f *analyze.Flow, n int, views *[2]machine.View) error {
	if f.Protocol == nil {
		return fmt.Errorf("flow %d has no state: %s", f.ID, f.Verdict.Reason)
	}
	if f.Protocol.NewTracker == nil {
		return fmt.Errorf("flow %d has no state: %s is decoded, what its sides knew is not followed", f.ID, f.Protocol.Title)
	}
	tracker, err := s.timeline.StateAt(f, s.timeline.At(n).Ref)
	if err != nil {
		return err
	}
	for side := range views {
		views[side].Reset()
		tracker.Inspect(machine.Side(side), &views[side])
	}
	return nil
}
