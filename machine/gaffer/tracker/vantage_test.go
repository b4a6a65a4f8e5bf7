package tracker

import (
	"math/rand"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestVantageIsFound: over all sorts of networks a tap at one side is never placed
// elsewhere. It stays unknown only in the few cases without evidence.
func TestVantageIsFound(t *testing.T) {
	unknown, total := 0, 0
	for seed := range int64(250) {
		rnd := rand.New(rand.NewSource(seed + 100000))
		tap := []machine.Vantage{machine.VantageA, machine.VantageB}[rnd.Intn(2)]
		c := randomConfig(rnd, tap)
		if rnd.Intn(4) == 0 {
			c.refuse = 0.05
		}
		w := newWorld(seed, reliable(), c)
		w.run()
		tr := NewByRules(nil, w.rules, machine.Facts{})
		var out machine.Effects
		for i := range w.seen {
			if tr.take(&w.seen[i], &out); out.NewSession {
				t.Fatalf("seed %d: a session is found at packet %d: %+v", seed, i, c)
			}
		}
		tr.Finish(&out)
		total++
		switch f := tr.Learned(); {
		case f.Vantage == machine.VantageUnknown:
			unknown++
		case f.Vantage != tap:
			t.Errorf("seed %d: the tap is at %v, found %v (%s): %+v", seed, tap, f.Vantage, f.VantageReason, c)
		}
	}
	if unknown > total/50 {
		t.Errorf("unknown in %d of %d", unknown, total)
	}
}

// TestVantageOfBothAndNeither: on loopback both endpoints are at the tap. In the middle
// of a path neither is.
func TestVantageOfBothAndNeither(t *testing.T) {
	for _, c := range []struct {
		name string
		want machine.Vantage
		c    worldConfig
	}{
		{"loopback", machine.VantageBoth, worldConfig{
			tap: machine.VantageBoth, tick: [2]time.Duration{time.Second / 60, time.Second / 47}, delay: 15 * time.Microsecond,
			length: 25 * time.Second,
		}},
		{"the middle", machine.VantageBetween, worldConfig{
			tap: machine.VantageBetween, tick: [2]time.Duration{time.Second / 60, time.Second / 47},
			delay: 40 * time.Millisecond, loss: 0.05, length: 25 * time.Second,
		}},
	} {
		w := newWorld(3, reliable(), c.c)
		w.run()
		tr, _, _ := w.facts(machine.VantageUnknown)
		if f := tr.Learned(); f.Vantage != c.want || f.VantageReason == "" {
			t.Errorf("%s: found %v (%s)", c.name, f.Vantage, f.VantageReason)
		}
	}
}

// TestHeldBackIsNotLost: a first run that finds the vantage reports the same facts as a
// run that was given it.
func TestHeldBackIsNotLost(t *testing.T) {
	w := newWorld(5, reliable(), worldConfig{
		tap: machine.VantageA, tick: [2]time.Duration{time.Second / 60, time.Second / 30}, delay: 30 * time.Millisecond,
		jitter: 5 * time.Millisecond,
		loss:   0.1, length: 20 * time.Second,
	})
	w.run()
	var events [2][]machine.Event
	for i, known := range []machine.Vantage{machine.VantageUnknown, machine.VantageA} {
		tr := NewByRules(nil, w.rules, machine.Facts{Vantage: known})
		var out machine.Effects
		for n := range w.seen {
			tr.take(&w.seen[n], &out)
		}
		tr.Finish(&out)
		events[i] = out.Events
	}
	if len(events[0]) == 0 || len(events[0]) != len(events[1]) {
		t.Fatalf("%d events and %d", len(events[0]), len(events[1]))
	}
	for i := range events[0] {
		if events[0][i] != events[1][i] {
			t.Fatalf("event %d: %+v and %+v", i, events[0][i], events[1][i])
		}
	}
}

// TestNamesNoneIsNotNear: A is a round trip of 40 ms away, and began anew. B names none of A's
// packets: it holds a late one of A's session before. That does not place the tap at B. It does if B
// names some, or if A had no session before.
func TestNamesNoneIsNotNear(t *testing.T) {
	a := reach{named: 40, packets: 40, upper: 60 * time.Millisecond, lower: 40 * time.Millisecond}
	for _, c := range []struct {
		b    reach
		want machine.Vantage
	}{
		{reach{packets: 40, follows: true}, machine.VantageUnknown},
		{reach{packets: 40}, machine.VantageB},
		{reach{packets: 40, follows: true, named: 40, upper: time.Millisecond}, machine.VantageB},
	} {
		if got, reason, _, _ := compareReach(&[2]reach{a, c.b}); got != c.want {
			t.Errorf("%+v: the tap is %v (%s), expected %v", c.b, got, reason, c.want)
		}
	}
}
