package tracker

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// TestEstimatesAgainstOracle compares each side's smoothed RTT, loss and count of acks
// with what its own library computed. The near side must match to a fraction of a
// millisecond, the far one to about a tenth of its frame.
func TestEstimatesAgainstOracle(t *testing.T) {
	for seed := range int64(120) {
		rnd := rand.New(rand.NewSource(seed))
		tap := []machine.Vantage{machine.VantageA, machine.VantageB}[rnd.Intn(2)]
		rate := func() time.Duration { return time.Second / time.Duration([]int{20, 30, 40, 60, 128}[rnd.Intn(5)]) }
		c := worldConfig{
			tap: tap, tick: [2]time.Duration{rate(), rate()},
			delay: time.Duration(5+rnd.Intn(80)) * time.Millisecond, jitter: time.Duration(rnd.Intn(8)) * time.Millisecond,
			loss: []float64{0, 0.01, 0.05, 0.1}[rnd.Intn(4)], length: 25 * time.Second,
		}
		if seed%3 == 0 {
			// The other side sends more packets meanwhile than a header covers, but no more than
			// its sent buffer holds.
			x := machine.Side(rnd.Intn(2))
			c.outage[x] = min(time.Duration(40+rnd.Intn(150))*c.tick[x.Other()], outageEvery/2)
		}
		w := newWorld(seed, reliable(), c)
		w.run()
		tr := NewByRules(nil, w.rules, machine.Facts{Vantage: tap})
		var out machine.Effects
		for i := range w.seen {
			tr.take(&w.seen[i], &out)
		}
		tr.Finish(&out)
		for _, x := range []machine.Side{machine.A, machine.B} {
			var want estimate
			acked := uint64(0)
			for _, l := range w.host[x].log {
				if l.kind == machine.EventAcked {
					want.sample(float64(l.rtt), rttSame)
					acked++
				}
			}
			got := tr.Summary(x)
			within := 0.3
			if !tap.Near(x) {
				within = 0.5 + 0.1*machine.Milliseconds(c.tick[x])
			}
			if off := math.Abs(float64(got.RTT)-want.rtt) / 1e6; off > within {
				t.Errorf("seed %d %+v: %v (near %v): RTT %v, its own %.2f ms", seed, c, x, tap.Near(x), got.RTT, want.rtt/1e6)
			}
			// The older half of its sent buffer: 128 packets.
			s := &w.host[x].State
			lost := 0
			for n := 256; n > 128; n-- {
				if e := s.Sent((s.NextSequence() - uint32(n)) & 0xffff); e == nil || e.Flags&gaffer.SentAcked == 0 {
					lost++
				}
			}
			loss, allowed := float64(lost)/128, 1.2/128
			if !tap.Near(x) {
				allowed = 5. / 128
			}
			if math.Abs(got.Loss-loss) > allowed {
				t.Errorf("seed %d %+v: %v (near %v): loss %.4f, its own %.4f", seed, c, x, tap.Near(x), got.Loss, loss)
			}
			if tap.Near(x) && got.Acked != acked {
				t.Errorf("seed %d %+v: %v: acked %d, its own %d", seed, c, x, got.Acked, acked)
			}
		}
	}
}

// TestCloneGoesOn: a clone continues as the original does, and does not change it.
func TestCloneGoesOn(t *testing.T) {
	for _, vantage := range []machine.Vantage{
		machine.VantageUnknown, machine.VantageA, machine.VantageB,
		machine.VantageBoth, machine.VantageBetween,
	} {
		for seed := range int64(6) {
			rnd := rand.New(rand.NewSource(seed))
			w := newWorld(seed, reliable(), randomConfig(rnd, machine.VantageA))
			w.run()
			at := rnd.Intn(len(w.seen))
			tr := NewByRules(nil, w.rules, machine.Facts{Vantage: vantage})
			var out, again machine.Effects
			for i := range w.seen[:at] {
				tr.take(&w.seen[i], &out)
			}
			other := tr.Clone().(*Tracker)
			if got, least := other.Size(), trackerBytes; got < least {
				t.Fatalf("a clone says it takes %d bytes", got)
			}
			out.Reset()
			for i := at; i < len(w.seen); i++ {
				other.take(&w.seen[i], &again)
			}
			other.Finish(&again)
			for i := at; i < len(w.seen); i++ {
				tr.take(&w.seen[i], &out)
			}
			tr.Finish(&out)
			if len(out.Events) != len(again.Events) {
				t.Fatalf("%v seed %d at %d: %d events, of the clone %d", vantage, seed, at, len(out.Events), len(again.Events))
			}
			for i := range out.Events {
				if out.Events[i] != again.Events[i] {
					t.Fatalf("%v seed %d at %d: event %d differs", vantage, seed, at, i)
				}
			}
			for _, x := range []machine.Side{machine.A, machine.B} {
				if a, b := tr.Summary(x), other.Summary(x); a != b {
					t.Fatalf("%v seed %d at %d: %v: %+v, of the clone %+v", vantage, seed, at, x, a, b)
				}
				var a, b machine.View
				tr.Inspect(x, &a)
				other.Inspect(x, &b)
				if len(a.Windows) != len(b.Windows) || len(a.Gauges) != len(b.Gauges) {
					t.Fatalf("%v seed %d at %d: the views of %v differ", vantage, seed, at, x)
				}
			}
		}
	}
}
