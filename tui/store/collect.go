package store

import (
	"errors"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Collect is a background walk along one flow: see Store.Collect.
type Collect struct {
	store *Store
	flow  *analyze.Flow
	from  int // entry to begin at; -1 for the flow's first
	take  func(*analyze.Record, machine.Tracker) bool
	reset func()
	done  bool // take has seen every step
	err   error
	stop  chan struct{}
}

const collectSteps = 512

// Collect walks a flow in the background, from an entry (-1 for the first), and
// passes each step to take. It holds the store's lock for up to 512 steps at a
// time. The walk ends when take returns false; on a growing capture it waits
// for more. The second run over a file makes earlier steps obsolete: Collect
// then calls reset and restarts.
func (s *Store) Collect(
	f *analyze.Flow, from int, take func(*analyze.Record, machine.Tracker) bool, reset func(),
) *Collect {
	stop := make(chan struct{})
	c := &Collect{store: s, flow: f, from: from, take: take, reset: reset, stop: stop}
	s.Work(func() { c.run(stop) }) // may start after End
	return c
}

// Done reports whether take has seen every step. It returns true for a nil c.
func (c *Collect) Done() bool { return c == nil || c.done }

// Err returns the error that ended the walk, or nil.
func (c *Collect) Err() error {
	if c == nil {
		return nil
	}
	return c.err
}

// Over reports whether the walk has ended, with or without an error.
func (c *Collect) Over() bool { return c == nil || c.done || c.err != nil }

// End stops the walk.
func (c *Collect) End() {
	if c != nil && c.stop != nil {
		close(c.stop)
		c.stop = nil
	}
}

func (c *Collect) run(stop <-chan struct{}) {
	s := c.store
	var walk *analyze.Walk
	var survey *analyze.Survey
	for {
		select {
		case <-stop:
			return
		default:
		}
		s.Lock()
		if survey != s.survey {
			survey, walk = s.survey, nil
			c.reset()
		}
		more := c.batch(&walk)
		s.notify()
		over := c.done || c.err != nil
		s.Unlock()
		if over {
			return
		}
		if !more && !s.wait(stop) {
			return
		}
	}
}

// batch makes up to 512 steps. It returns false when there are none for now.
func (c *Collect) batch(walk **analyze.Walk) bool {
	s := c.store
	if f := s.Flow(c.flow.ID); f != nil {
		c.flow = f
	}
	if *walk == nil {
		w, err := s.timeline.Walk(c.flow, max(c.from, 0))
		switch {
		case errors.Is(err, analyze.ErrNotReached) || c.flow.Pending():
			return false
		case err != nil:
			c.err = err
			return false
		}
		*walk = w
	}
	w := *walk
	for range collectSteps {
		n, ok := w.Peek()
		if !ok {
			if c.err = w.Err(); c.err == nil && s.pass == 3 {
				if r := w.Finish(); r != nil {
					c.take(r, w.Tracker())
				}
				c.done = true
			}
			return false
		}
		r := w.Next()
		if r == nil {
			c.err = w.Err()
			return false
		}
		if n >= c.from && !c.take(r, w.Tracker()) {
			c.done = true
			return false
		}
	}
	return true
}
