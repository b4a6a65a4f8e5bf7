package clock

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTick: RTTs that are times rounded up to a tick show that tick. Other RTTs show none.
func TestTick(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, tick := range []time.Duration{
		5 * time.Millisecond, 10 * time.Millisecond,
		16*time.Millisecond + 750*time.Microsecond, 33 * time.Millisecond,
	} {
		var c Clock
		for range keeps {
			atTap := time.Duration(30+rng.IntN(90)) * time.Millisecond
			c.Add(int(ceil(atTap, tick)/time.Millisecond), atTap)
		}
		// Several ticks fit alike, a quarter of a ms apart, and the longest counts.
		if got := c.Tick(); (got - tick).Abs() > time.Millisecond/2 {
			t.Errorf("a tick of %v is reported as %v", tick, got)
		}
	}
	var c Clock
	for range keeps {
		c.Add(rng.IntN(400), time.Duration(rng.IntN(100))*time.Millisecond)
	}
	if got := c.Tick(); got != 0 {
		t.Errorf("RTTs that have nothing to do with the tap show a tick of %v", got)
	}
}

// TestRTT: a known tick predicts an RTT. Without one, the mean excess of the RTTs so far over the
// times at the tap does.
func TestRTT(t *testing.T) {
	const atTap = 33 * time.Millisecond
	var c Clock
	if got := c.RTT(atTap); got != 38 {
		t.Errorf("without a sample: %d ms, expected 33 ms and half a usual tick", got)
	}
	c.Add(60, 40*time.Millisecond)
	if got := c.RTT(atTap); got != 53 {
		t.Errorf("after one sample that was 20 ms longer: %d ms, expected 53", got)
	}
	c = Clock{}
	for _, told := range []int{20, 40, 60, 80, 100} {
		c.Add(told, time.Duration(told-7)*time.Millisecond)
	}
	if got := c.RTT(atTap); got != 40 {
		t.Errorf("at a tick of 20 ms: %d ms, expected two ticks", got)
	}
}

// TestTickNaive compares Tick with a search through all samples and ticks.
func TestTickNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	found := 0
	for range 200 {
		var c Clock
		tick := 4*time.Millisecond + time.Duration(rng.IntN(36_000))*time.Microsecond
		for range 1 + rng.IntN(3*keeps) {
			atTap := time.Duration(rng.IntN(200_000)) * time.Microsecond
			reported := ceil(atTap, tick)
			if rng.IntN(6) == 0 {
				reported = time.Duration(rng.IntN(300)) * time.Millisecond
			}
			c.Add(int(reported/time.Millisecond), atTap)
			if got, want := c.Tick(), naive(c.known()); got != want {
				t.Fatalf("Tick is %v, expected %v", got, want)
			} else if want > 0 {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("no samples show a tick")
	}
}

func naive(known []sample) (best time.Duration) {
	most := len(known)*4/5 - 1
	for tick := tickMost; tick >= tickLeast && len(known) >= least; tick -= tickStep {
		fits := 0
		for _, s := range known {
			if (s.reported - ceil(s.atTap, tick)).Abs() <= fitsWithin {
				fits++
			}
		}
		if fits > most {
			best, most = tick, fits
		}
	}
	return best
}
