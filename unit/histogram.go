package unit

import (
	"math"
	"sort"
	"time"
)

// Buckets is how many buckets a histogram has. Their bounds never change, so that histograms of any
// two versions can be added.
const Buckets = 64

// Histogram counts values by bucket. It is nil while it is empty. Otherwise it has Buckets counts.
type Histogram []uint64

// bucketsPerOctave is how many buckets lie between a value and its double. So a value is known to
// 19 %, as in machine.Trips.
const bucketsPerOctave = 4

// roots are 2^(i/4).
var roots = [bucketsPerOctave]float64{1, 1.189207115002721, 1.4142135623730951, 1.681792830507429}

// leastDuration is the upper bound of the first bucket of durations. The last bound is then 13.8 s.
const leastDuration = 250 * time.Microsecond

// durationBounds are the upper bounds of the buckets of durations, in nanoseconds. The last bucket
// has no bound. shareBounds are those of shares: the first bucket is 0 alone, the last ends at 1.
var durationBounds, shareBounds = func() (d, s [Buckets]float64) {
	for i := range Buckets {
		d[i] = float64(leastDuration) * math.Ldexp(roots[i%bucketsPerOctave], i/bucketsPerOctave)
		if i > 0 { // i + 1 is a multiple of 4 in the last bucket
			s[i] = math.Ldexp(roots[(i+1)%bucketsPerOctave], (i+1)/bucketsPerOctave-Buckets/bucketsPerOctave)
		}
	}
	d[Buckets-1] = math.Inf(1)
	return d, s
}()

// DurationBound returns the upper bound of a bucket of durations, in milliseconds. That of the last
// one is infinite.
func DurationBound(bucket int) float64 { return durationBounds[bucket] / float64(time.Millisecond) }

// ShareBound returns the upper bound of a bucket of shares, 0 to 1. The first bucket holds 0 alone.
func ShareBound(bucket int) float64 { return shareBounds[bucket] }

func (h *Histogram) addDuration(d time.Duration) { h.add(&durationBounds, float64(d)) }

func (h *Histogram) addShare(v float64) { h.add(&shareBounds, v) }

// add counts a value in the first bucket whose bound it does not exceed.
func (h *Histogram) add(bounds *[Buckets]float64, v float64) {
	if *h == nil {
		*h = make(Histogram, Buckets)
	}
	i := min(sort.SearchFloat64s(bounds[:], v), Buckets-1)
	(*h)[i] = plus((*h)[i], 1)
}

func (h *Histogram) merge(o Histogram) {
	if len(o) == 0 {
		return
	}
	if len(*h) == 0 {
		*h = make(Histogram, Buckets)
	}
	for i, n := range o {
		(*h)[i] = plus((*h)[i], n)
	}
}

// Total returns how many values were counted.
func (h Histogram) Total() (n uint64) {
	for _, x := range h {
		n = plus(n, x)
	}
	return n
}

// Quantile returns the bucket of the value below which a share of the values lies. It returns -1 if
// there is none.
func (h Histogram) Quantile(share float64) int {
	total := h.Total()
	if total == 0 {
		return -1
	}
	rank, seen := uint64(math.Ceil(share*float64(total))), uint64(0)
	for i, n := range h {
		if seen = plus(seen, n); seen >= max(rank, 1) {
			return i
		}
	}
	return Buckets - 1
}
