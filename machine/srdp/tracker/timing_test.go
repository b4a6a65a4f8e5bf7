package tracker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestNewestIntervals: the order that is kept is that of sorting the newest intervals, equal ones included.
func TestNewestIntervals(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var kept timing
	var all []uint32
	for range 2000 {
		x := uint32(random.IntN(40))
		all = append(all, x)
		kept.interval(time.Duration(x) * time.Microsecond)
		newest := slices.Sorted(slices.Values(all[max(0, len(all)-len(kept.recent)):]))
		if got := kept.sorted[:len(newest)]; !slices.Equal(got, newest) {
			t.Fatalf("after %d intervals: %d, expected %d", len(all), got, newest)
		}
	}
}
