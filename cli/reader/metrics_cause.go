package reader

import (
	"sync"
	"time"

	"github.com/ackscope/ackscope/cause"
)

// causeWait is how long a scrape waits for a comparison. A comparison of 1,000 flows takes some
// 30 ms, and one of 100,000 flows takes seconds: a later scrape shows that one. Prometheus gives
// a scrape 10 s, and the server 5 s.
const causeWait = time.Second

// commonCause compares the flows for scrapes. The zero value has compared none.
type commonCause struct {
	mu      sync.Mutex
	begun   time.Time     // the last comparison
	running chan struct{} // closed at its end; nil before the first
	last    *cause.Report // of the last one that ended
}

// report returns the newest comparison. It begins one if the last began 10 s ago.
func (c *commonCause) report(r *Running, now time.Time) *cause.Report {
	done := c.compare(r, now)
	timer := time.NewTimer(causeWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// compare begins a comparison, unless one is running or the last is recent. It returns a
// channel that is closed at the end of the newest one.
func (c *commonCause) compare(r *Running, now time.Time) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		select {
		case <-c.running:
		default:
			return c.running
		}
		if now.Sub(c.begun) < cause.Again {
			return c.running
		}
	}
	done := make(chan struct{})
	c.begun, c.running = now, done
	go func() {
		defer close(done)
		r.mu.Lock()
		g := cause.Gather(r.Session)
		for g.Take(causeAtOnce) {
			r.mu.Unlock() // the capture goes on between two parts
			r.mu.Lock()
		}
		r.mu.Unlock()
		report := g.Compare()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = report
	}()
	return done
}

// causeAtOnce is how many flows are read while the capture waits. That takes less than 10 ms,
// and the smallest ring holds the packets of 50 ms at a million packets a second.
const causeAtOnce = 4096
