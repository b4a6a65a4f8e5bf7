package riptide_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/sim"
)

// drawn gives the conditions of a seed: any version but Pytide's, any network
// that a connection can live with for a while, outages that make the window
// jump, quality limits that end it, any tap, told or to be found out.
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
		setting: setting{
			version: gridVersions[rng.IntN(len(gridVersions))], stream: rng.IntN(4) == 0, ask: rng.IntN(2) == 0,
			duration: 4 * time.Second, rate: 0.02 + rng.Float64()*0.6, leave: rng.IntN(2) == 0, stop: rng.IntN(3) == 0,
			limits: riptide.Limits{Off: rng.IntN(2) == 0},
		},
		tap: gridTaps[rng.IntN(len(gridTaps))], fixed: true,
	}
	c.path = sim.Path{Delay: 5*time.Millisecond + some(120), Jitter: some(80), Loss: share(0.4), Duplicate: share(0.2)}
	if rng.IntN(2) == 0 {
		c.path.Outages = []sim.Outage{{From: machine.Instant(time.Second + some(1000)), For: 100*time.Millisecond + some(600)}}
	}
	if c.stream {
		c.path.Duplicate = 0
		c.path.Loss /= 8
	}
	return c
}

// TestSimulatedSeeds holds the tracker against the truth under conditions that
// are drawn. SOAK_SEEDS says how many.
func TestSimulatedSeeds(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 8
	}
	if n, err := strconv.Atoi(os.Getenv("SOAK_SEEDS")); err == nil {
		seeds = n
	}
	var certain, told int
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		c := drawn(seed)
		o := c.run(t, seed)
		for _, f := range o.hold(t, fmt.Sprintf("seed %d, %s", seed, c.String()), c.tap) {
			certain += f.yes + f.no
			told += f.yes + f.no + f.likely + f.unknown
		}
	}
	if certain < told/2 {
		t.Errorf("%d of %d messages are certain: too few to prove anything", certain, told)
	}
	t.Logf("%d seeds, %d messages, %d of them certain", seeds, told, certain)
}
