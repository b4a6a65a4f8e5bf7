package machine_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Fastest returns the same times as a sorted list of all times.
func TestFastest(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var f machine.Fastest
		var all []time.Duration
		if f.Count() != 0 || f.Least() != 0 || f.Second() != 0 {
			t.Fatalf("none was measured: %+v", f)
		}
		for n := 1; n <= 1100; n++ {
			d := time.Duration(1 + rng.IntN(2000))
			f.Add(d)
			at, _ := slices.BinarySearch(all, d)
			all = slices.Insert(all, at, d)
			strays := min(n/256, 3)
			if f.Count() != n || f.Least() != all[strays] {
				t.Fatalf("seed %d, of %d times the least is %v, want %v of %v", seed, n, f.Least(), all[strays], all[:min(n, 5)])
			}
			if n > 1 && f.Second() != all[min(strays+1, 3)] {
				t.Fatalf("seed %d, of %d times the second is %v, want %v of %v", seed, n, f.Second(), all[min(strays+1, 3)],
					all[:min(n, 5)])
			}
		}
	}
}
