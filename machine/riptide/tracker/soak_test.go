package tracker_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/machine/riptide/riptidetest"
	"github.com/ackscope/ackscope/sim"
)

// drawn returns random conditions for a seed:
//
//   - any version but Pytide's;
//   - any network that a connection survives for a while;
//   - outages that make the window jump, and quality limits that end the connection;
//   - a tap at any place, given or to be inferred.
func drawn(seed uint64) conditions {
	rng := rand.New(rand.NewPCG(seed, 0x50ab))
	share := func(most float64) float64 {
		if rng.IntN(3) == 0 {
			return 0
		}
		return rng.Float64() * most
	}
	some := func(most int) time.Duration { return time.Duration(rng.IntN(most)) * time.Millisecond }
	c := conditions{
		Setting: riptidetest.Setting{
			Version: gridVersions[rng.IntN(len(gridVersions))], Stream: rng.IntN(4) == 0, Ask: rng.IntN(2) == 0,
			Duration: 4 * time.Second, Rate: 0.02 + rng.Float64()*0.6, Leave: rng.IntN(2) == 0, Stop: rng.IntN(3) == 0,
			Limits: endpoint.Limits{Off: rng.IntN(2) == 0},
		},
		tap: gridTaps[rng.IntN(len(gridTaps))], fixed: true,
	}
	c.Path = sim.Path{Delay: 5*time.Millisecond + some(120), Jitter: some(80), Loss: share(0.4), Duplicate: share(0.2)}
	if rng.IntN(2) == 0 {
		c.Path.Outages = []sim.Outage{{
			From: machine.Instant(time.Second + some(1000)), For: 100*time.Millisecond + some(600),
		}}
	}
	if c.Stream {
		c.Path.Duplicate = 0
		c.Path.Loss /= 8
	}
	return c
}

// TestSimulatedSeeds compares the tracker with the truth under random conditions. The tap's place
// is given or to be inferred. The other end's address can be that of a relay on the same host.
// Wherever the tracker places the tap, what it reports as certain must be true. SOAK_SEEDS sets how
// many seeds run, SOAK_FIRST the first one.
func TestSimulatedSeeds(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 8
	}
	if n, err := strconv.Atoi(os.Getenv("SOAK_SEEDS")); err == nil {
		seeds = n
	}
	first := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SOAK_FIRST"), 10, 64); err == nil {
		first = n
	}
	var certain, all [3]int // as below
	for seed := first; seed < first+uint64(seeds); seed++ {
		c := drawn(seed)
		name := fmt.Sprintf("seed %d, %s", seed, c.String())
		o := c.run(t, seed)
		count := func(i int, figure [2]figures) {
			for _, f := range figure {
				certain[i] += f.yes + f.no
				all[i] += f.yes + f.no + f.likely + f.unknown
			}
		}
		count(0, o.hold(t, name, c.tap))
		c.fixed = false
		for i, relay := range []bool{false, true} {
			c.relay = relay
			o.track(t)
			count(1+i, o.hold(t, fmt.Sprintf("%s, taken for %v (%s)", name, o.learned.Vantage, o.learned.VantageReason),
				machine.VantageUnknown))
		}
	}
	for i, how := range []string{"told", "found out", "found out behind a relay on one address"} {
		t.Logf("%d seeds, the tap's place %s: %d messages, %d of them certain", seeds, how, all[i], certain[i])
		if certain[i] < all[i]/3 {
			t.Errorf("the tap's place %s: %d of %d messages are certain: too few to prove anything", how, certain[i], all[i])
		}
	}
}
