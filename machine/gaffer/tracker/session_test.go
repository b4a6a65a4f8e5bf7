package tracker

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestNewSession: two connections follow each other on one pair of addresses. The first
// packet of the second opens a session, wherever the tap is, and is not entered.
func TestNewSession(t *testing.T) {
	for _, c := range []struct {
		name    string
		tap     machine.Vantage
		known   bool
		first   time.Duration
		loss    float64
		jitter  time.Duration
		wrapped uint32 // how far the first one had counted before the capture
	}{
		{name: "near", tap: machine.VantageA, known: true, first: 20 * time.Second},
		{name: "near, short", tap: machine.VantageA, known: true, first: 2 * time.Second},
		{name: "far", tap: machine.VantageB, known: true, first: 20 * time.Second, loss: 0.1, jitter: 30 * time.Millisecond},
		{name: "between", tap: machine.VantageBetween, known: true, first: 20 * time.Second, loss: 0.1},
		{name: "held", tap: machine.VantageA, first: 5 * time.Second},
		{name: "held, reordered", tap: machine.VantageB, first: 5 * time.Second, loss: 0.1, jitter: 30 * time.Millisecond},
		{name: "high numbers", tap: machine.VantageA, known: true, first: 20 * time.Second, wrapped: 60000},
	} {
		config := worldConfig{
			tap: c.tap, tick: [2]time.Duration{time.Second / 20, time.Second / 20}, delay: 20 * time.Millisecond,
			loss: c.loss, jitter: c.jitter, length: c.first, start: [2]uint32{c.wrapped, c.wrapped},
		}
		one := newWorld(1, reliable(), config)
		one.run()
		config.length, config.start = 20*time.Second, [2]uint32{}
		two := newWorld(2, reliable(), config)
		two.run()
		facts := machine.Facts{}
		if c.known {
			facts.Vantage = c.tap
		}
		tr := NewByRules(nil, reliable(), facts)
		var out machine.Effects
		for i := range one.seen {
			if tr.take(&one.seen[i], &out); out.NewSession {
				t.Fatalf("%s: a session is found at packet %d of the first one", c.name, i)
			}
		}
		opened := -1
		for i := range two.seen {
			p := two.seen[i]
			p.at = p.at.Add(c.first + 2*time.Second)
			if tr.take(&p, &out); out.NewSession {
				opened = i
				break
			}
		}
		if opened != 0 {
			t.Errorf("%s: the second session was found at packet %d of it", c.name, opened)
		}
	}
}
