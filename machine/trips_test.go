package machine

import (
	"math"
	"testing"
	"time"
)

// The figures of round trips are those of the trips: the mean and the jitter exactly, a
// quantile to a bucket. More trips than a bucket counts do not change the shares.
func TestTrips(t *testing.T) {
	var none Trips
	if none.Mean() >= 0 || none.Jitter() >= 0 || none.Quantile(0.5) >= 0 {
		t.Error("figures of no trips")
	}
	for _, n := range []int{20, 200_000} {
		var x Trips
		for i := range n {
			trip := 40 * time.Millisecond
			if i%10 == 9 {
				trip = 140 * time.Millisecond
			}
			x.Add(trip)
		}
		if x.Mean() != 50*time.Millisecond || x.Least != 40*time.Millisecond || x.Most != 140*time.Millisecond {
			t.Errorf("%d trips: mean %v, from %v to %v", n, x.Mean(), x.Least, x.Most)
		}
		steps := 2*(n/10) - 1 // of 100 ms: up to each long trip and down again, but for the last
		if j, want := x.Jitter(), time.Duration(steps)*(100*time.Millisecond)/time.Duration(n-1); j != want {
			t.Errorf("%d trips: jitter %v, expected %v", n, j, want)
		}
		if q := x.Quantile(0.5); q < 40*time.Millisecond || q > 48*time.Millisecond {
			t.Errorf("%d trips: the middle one took %v, expected 40 ms, up to 19 %% more", n, q)
		}
		if q := x.Quantile(0.95); q != 140*time.Millisecond {
			t.Errorf("%d trips: the 95th percentile is %v, expected 140 ms", n, q)
		}
	}
}

// A copy of trips does not change with them.
func TestTripsClone(t *testing.T) {
	var x *Trips
	if x.Clone() != nil {
		t.Error("a copy of nothing")
	}
	x = new(Trips)
	x.Add(time.Second)
	c := x.Clone()
	x.Add(time.Second)
	if c.Count != 1 {
		t.Errorf("the copy has %d trips, expected 1", c.Count)
	}
}

// TestTripBucket: a trip lies in the first bucket whose upper end it does not pass.
func TestTripBucket(t *testing.T) {
	check := func(trip time.Duration) {
		want := 0
		if trip > tripLeast {
			want = min(tripBuckets-1, int(math.Ceil(tripsPerOctave*math.Log2(float64(trip)/float64(tripLeast)))))
		}
		if got := tripBucket(trip); got != want {
			t.Fatalf("%v: bucket %d, expected %d", trip, got, want)
		}
	}
	for trip := time.Duration(0); trip < 8*time.Second; trip += 49_999 {
		check(trip)
	}
	for octave := range 16 {
		for d := -2; d <= 2; d++ {
			check(tripLeast<<octave + time.Duration(d))
		}
	}
	check(math.MaxInt64)
}
