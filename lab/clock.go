package lab

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Clock measures the time of one run: monotonic, from the start of the run. All
// hosts of a process share one.
type Clock struct{ start time.Time }

// StartClock returns a clock that starts now.
func StartClock() Clock { return Clock{start: time.Now()} }

// Now returns the time since the start of the run.
func (c Clock) Now() machine.Instant { return machine.Instant(time.Since(c.start)) }

// Wall converts an instant of the run to nanoseconds since the Unix epoch. It
// uses the monotonic clock: it ignores changes of the system clock during the
// run.
func (c Clock) Wall(at machine.Instant) machine.Instant {
	return machine.Instant(c.start.UnixNano()) + at
}

// until returns the time until an instant; it is never negative.
func (c Clock) until(at machine.Instant) time.Duration { return max(at.Sub(c.Now()), 0) }
