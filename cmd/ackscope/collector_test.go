//go:build !js

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// TestPercentFor: a small heap may grow by gcRoom, a large one by a fifth.
func TestPercentFor(t *testing.T) {
	for _, x := range []struct {
		marked uint64
		want   int
	}{
		{0, gcPercentStart},
		{1 << 20, gcPercentStart},
		{6 << 20, 100},
		{12 << 20, 50},
		{30 << 20, gcPercent},
		{1 << 40, gcPercent},
	} {
		if got := percentFor(x.marked); got != x.want {
			t.Errorf("of %d bytes: %d %%, expected %d", x.marked, got, x.want)
		}
	}
}

// TestPaceCollector: each collection is noticed, also where one thread is busy. A heap that has grown and
// shrunk again gets its percentage each time.
func TestPaceCollector(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	paceCollector()
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	percent := func() int {
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	for _, x := range []struct{ size, least, most int }{
		{64 << 20, gcPercent, gcPercent}, {1, gcPercent + 1, gcPercentStart - 1}, {64 << 20, gcPercent, gcPercent},
	} {
		kept := make([]byte, x.size)
		runtime.GC()
		for began := time.Now(); percent() < x.least || percent() > x.most; { // busy, as an analysis is
			if time.Since(began) > 10*time.Second {
				t.Fatalf("with %d bytes more the heap may grow by %d %%, expected %d to %d", x.size, percent(), x.least, x.most)
			}
		}
		runtime.KeepAlive(kept)
	}
}
