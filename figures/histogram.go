package figures

import (
	"math"
	"slices"
	"time"
)

// Times is a distribution of times, in buckets whose bounds grow by 4 %. It keeps counts
// only, in memory that does not grow with the number of times. The zero value is empty.
type Times struct {
	from   int // the bucket of counts[0]
	counts []uint32
	n      uint64
}

// Source: bound, memory for a distribution of times: 4 % wide buckets from 50 µs to 17 minutes
const (
	timesLeast   = float64(50 * time.Microsecond)
	timesGrowth  = 1.04
	timesBuckets = 430
)

var logGrowth = math.Log(timesGrowth)

func bucketOf(d time.Duration) int {
	if float64(d) <= timesLeast {
		return 0
	}
	return min(timesBuckets-1, 1+int(math.Log(float64(d)/timesLeast)/logGrowth))
}

// Add counts one time. It takes a negative one for 0.
func (t *Times) Add(d time.Duration) { t.add(bucketOf(d), 1) }

func (t *Times) add(bucket int, n uint32) {
	switch {
	case t.counts == nil:
		t.from, t.counts = bucket, make([]uint32, 1, 8)
	case bucket < t.from:
		t.counts = slices.Insert(t.counts, 0, make([]uint32, t.from-bucket)...)
		t.from = bucket
	case bucket-t.from >= len(t.counts):
		t.counts = append(t.counts, make([]uint32, bucket-t.from-len(t.counts)+1)...)
	}
	t.counts[bucket-t.from] += n
	t.n += uint64(n)
}

// Join adds the counts of another distribution.
func (t *Times) Join(o *Times) {
	for i, n := range o.counts {
		if n > 0 {
			t.add(o.from+i, n)
		}
	}
}

// Count returns how many times were added.
func (t *Times) Count() uint64 { return t.n }

// Weigh adds the counts, times a weight, to sums by bucket. sums has Buckets elements.
func (t *Times) Weigh(weight float64, sums []float64) {
	for i, n := range t.counts {
		sums[t.from+i] += weight * float64(n)
	}
}

// Buckets is the number of buckets of every distribution.
const Buckets = timesBuckets

// LongestTime is the end of the last bucket.
var LongestTime = time.Duration(timesLeast * math.Pow(timesGrowth, timesBuckets-1))

// BucketAt returns the bucket of a time in nanoseconds, and which part of the bucket lies
// below the time, 0..1.
func BucketAt(at float64) (bucket int, below float64) {
	bucket = bucketOf(time.Duration(max(0, at)))
	high := timesLeast * math.Pow(timesGrowth, float64(bucket))
	low := high / timesGrowth
	if bucket == 0 {
		low = 0
	}
	return bucket, min(1, max(0, (at-low)/(high-low)))
}

// Quantile returns the time below which a share of the times lies, 0..1, to within 2 %. It
// is negative if there is none.
func (t *Times) Quantile(share float64) time.Duration {
	var sums [Buckets]float64
	t.Weigh(1, sums[:])
	return time.Duration(QuantileOf(sums[:], share))
}

// QuantileOf is Quantile for the sums of Weigh.
func QuantileOf(sums []float64, share float64) float64 {
	total := 0.0
	for _, n := range sums {
		total += n
	}
	if total <= 0 {
		return -1
	}
	need := share * total
	for i, n := range sums {
		if need -= n; need > 0 || n <= 0 {
			continue
		}
		// Within a bucket, times are taken as evenly spread.
		high := timesLeast * math.Pow(timesGrowth, float64(i))
		low := high / timesGrowth
		if i == 0 {
			low = 0
		}
		return high + (high-low)*need/n
	}
	return timesLeast * math.Pow(timesGrowth, float64(len(sums)-1))
}
