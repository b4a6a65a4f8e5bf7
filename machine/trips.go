package machine

import (
	"math"
	"math/bits"
	"time"
)

// Trips sums up round trips that the tap shows: from a packet to the first answer that
// names it. The zero value has none. Its size is fixed, whatever it counts.
type Trips struct {
	Count       uint64
	Sum         time.Duration
	Least, Most time.Duration
	Changes     time.Duration // sum of the absolute differences of successive trips; there are Count-1

	last   time.Duration
	spread [tripBuckets]uint16 // halved when one is full: the shares stay
}

// The distribution of trips has tripsPerOctave buckets for each doubling. So a quantile is at
// most 19 % above the trip that it stands for.
const (
	// tripBuckets is how many buckets there are, up to 3.5 seconds.
	// Source: bound, memory for the distribution of round trips
	tripBuckets = 52
	// tripsPerOctave is how many buckets each doubling has.
	// Source: bound, the precision of the distribution of round trips
	tripsPerOctave = 4
	// tripLeast is the upper end of the first bucket.
	// Source: bound, the shortest round trip that the distribution tells
	tripLeast = 500 * time.Microsecond
)

// Add counts one round trip. It takes a negative one for 0, since clocks step.
func (t *Trips) Add(trip time.Duration) {
	trip = max(0, trip)
	if t.Count == 0 {
		t.Least, t.Most = trip, trip
	} else {
		t.Changes = plus(t.Changes, max(trip-t.last, t.last-trip))
	}
	t.Least, t.Most, t.last = min(t.Least, trip), max(t.Most, trip), trip
	t.Count++
	t.Sum = plus(t.Sum, trip)
	b := &t.spread[tripBucket(trip)]
	if *b == math.MaxUint16 {
		for i := range t.spread {
			t.spread[i] >>= 1
		}
	}
	*b++
}

// plus adds two times that are not negative. A sum that is too long becomes the longest time.
func plus(a, b time.Duration) time.Duration {
	if a += b; a < 0 {
		return math.MaxInt64
	}
	return a
}

// tripTops are the upper ends of the buckets.
var tripTops = func() (tops [tripBuckets]time.Duration) {
	for i := range tops {
		tops[i] = time.Duration(float64(tripLeast) * math.Exp2(float64(i)/tripsPerOctave))
	}
	return tops
}()

// tripBucket returns the bucket of a trip. Shorter trips are in the first, longer ones in
// the last. It runs for every packet that is acked, so it takes no logarithm.
func tripBucket(trip time.Duration) int {
	if trip <= tripLeast {
		return 0
	}
	octave := bits.Len64(uint64((trip-1)/tripLeast)) - 1 // it lies above this many doublings
	i := octave * tripsPerOctave
	if i > tripBuckets-tripsPerOctave {
		return tripBuckets - 1
	}
	// Without a branch for each, which no processor could predict.
	tops := (*[tripsPerOctave]time.Duration)(tripTops[i:])
	return min(tripBuckets-1, i+1+above(trip, tops[1])+above(trip, tops[2])+above(trip, tops[3]))
}

// above is 1 if a trip is longer than a limit, and 0 if not.
func above(trip, limit time.Duration) int {
	return int(uint64(limit-trip) >> 63) // both are at least 0, so the difference does not overflow
}

// Clone returns an independent copy. It is nil if t is nil.
func (t *Trips) Clone() *Trips {
	if t == nil {
		return nil
	}
	c := *t
	return &c
}

// Mean returns the mean trip. It is negative if there is none.
func (t *Trips) Mean() time.Duration {
	if t.Count == 0 {
		return -1
	}
	return t.Sum / time.Duration(t.Count)
}

// Jitter returns the mean absolute difference between successive trips. It is negative for
// fewer than two. Source: RFC 3550 (6.4.1) has the same difference over one way.
func (t *Trips) Jitter() time.Duration {
	if t.Count < 2 {
		return -1
	}
	return t.Changes / time.Duration(t.Count-1)
}

// Quantile returns the trip below which a share of the trips lies, 0..1, up to 19 % too
// high. It is negative if there is none.
func (t *Trips) Quantile(share float64) time.Duration {
	if t.Count == 0 {
		return -1
	}
	total := uint64(0)
	for _, n := range t.spread {
		total += uint64(n)
	}
	need, sum := max(1, uint64(math.Ceil(share*float64(total)))), uint64(0)
	for i, n := range t.spread {
		if sum += uint64(n); sum >= need && i < tripBuckets-1 {
			return min(max(tripTops[i], t.Least), t.Most)
		}
	}
	return t.Most
}
