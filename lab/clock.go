package lab

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Clock is the time of one run: monotonic, from its start. All hosts of a
// process share one.
type Clock struct{ start time.Time }

// StartClock begins a run now.
func StartClock() Clock { return Clock{start: time.Now()} }

// Now returns the time since the start of the run.
func (c Clock) Now() machine.Instant { return machine.Instant(time.Since(c.start)) }

// Wall returns an instant of the run in nanoseconds since the Unix epoch. It goes
// by the monotonic clock: where the system's is set during the run, the two part.
func (c Clock) Wall(at machine.Instant) machine.Instant {
	return machine.Instant(c.start.UnixNano()) + at
}

// until returns how long it is to an instant; never negative.
func (c Clock) until(at machine.Instant) time.Duration { return max(at.Sub(c.Now()), 0) }
