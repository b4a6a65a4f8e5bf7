package tui

import (
	"errors"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// collect walks one flow from a packet on in the background and hands each step
// to take, under the store's lock, a few hundred at a time. While the capture
// grows it goes on with it. Where a second run makes what was told obsolete,
// reset is called and the walk begins anew.
type collect struct {
	store *Store
	flow  *analyze.Flow
	from  int // entry to begin at; -1 for the flow's first
	take  func(*analyze.Record, machine.Tracker) bool
	reset func()
	done  bool // everything was told
	err   error
	stop  chan struct{}
}

const collectSteps = 512

func (c *collect) start() {
	stop := make(chan struct{})
	c.stop = stop
	c.store.work(func() { c.run(stop) }) // which may begin after end
}

func (c *collect) end() {
	if c != nil && c.stop != nil {
		close(c.stop)
		c.stop = nil
	}
}

func (c *collect) run(stop <-chan struct{}) {
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
		s.tell()
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

// batch takes some steps; false where there are none for now.
func (c *collect) batch(walk **analyze.Walk) bool {
	s := c.store
	if f := s.flowByID(c.flow.ID); f != nil {
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

func (s *Store) flowByID(id int) *analyze.Flow {
	return s.session.Flow(id)
}
