package tui

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

// soakRuns is the default number of runs of the soak test.
const soakRuns = 200

// TestSoak plays 60 random keys over each of many mutated captures, on screens
// of any size. ACKSCOPE_TUI_SOAK sets the number of runs. ACKSCOPE_TUI_SEED
// sets the first seed, to repeat a run that failed.
func TestSoak(t *testing.T) {
	runs, first := number64(t, "ACKSCOPE_TUI_SOAK", soakRuns), number64(t, "ACKSCOPE_TUI_SEED", 1)
	list, err := samples()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "capture")
	now := make(chan uint64, 1)
	defer close(now)
	go watchdog(now)
	var opened, keys, panics int
	var largest, at, perByte uint64 // at: the seed of the largest
	var smallest int                // input of the run with perByte
	for seed := first; seed < first+runs; seed++ {
		now <- seed
		rng := rand.New(rand.NewPCG(seed, 12))
		file := list[rng.IntN(len(list))].mutate(rng)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		measure := seed%memoryEvery == 0
		var before, after runtime.MemStats
		if measure {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		d := newDriver(t, path)
		if d == nil {
			continue // the mutation left no capture
		}
		d.screen.hollow = seed%wholeEvery != 0
		opened++
		keys += soakKeys
		if fault := played(d, rng); fault != "" {
			panics++
			t.Errorf("ACKSCOPE_TUI_SOAK=1 ACKSCOPE_TUI_SEED=%d: %s", seed, fault)
		}
		if measure {
			d.screen.SetSize(80, 24) // a terminal of a thousand columns costs memory of its own
			runtime.GC()
			runtime.ReadMemStats(&after)
			used := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
			if used > largest {
				largest, at = used, seed
			}
			if x := used / uint64(max(len(file), 1)); x > perByte {
				perByte, smallest = x, len(file)
			}
		}
		d.close(t)
		if panics > 20 {
			t.Fatal("more than 20 runs failed")
		}
	}
	t.Logf("runs %d, seeds %d to %d, opened %d, keys %d, panics %d, hangs 0, largest heap of a run %.2f MB (seed %d), "+
		"of an input byte %d bytes (a file of %d bytes)",
		runs, first, first+runs-1, opened, keys, panics, float64(largest)/1e6, at, perByte, smallest)
	if opened < int(runs)/2 {
		t.Errorf("only %d of %d mutated files were opened: the runs test little", opened, runs)
	}
}

const (
	soakKeys    = 60
	memoryEvery = 16 // runs: a garbage collection costs as much as some runs
	wholeEvery  = 4  // runs: in the others the simulated screen stores no cells
)

// played plays a run and returns its panic; "" for none.
func played(d *driver, rng *rand.Rand) (fault string) {
	defer func() {
		if x := recover(); x != nil {
			fault = fmt.Sprintf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	d.play(soakKeys, func(n int) int {
		if n <= 0 {
			return 0
		}
		return rng.IntN(n)
	})
	return ""
}

// watchdog ends the program when a run takes longer than a minute, which is
// some thousand times the expected time. So a hang names its seed.
func watchdog(now <-chan uint64) {
	const bound = time.Minute
	seed := uint64(0)
	for timer := time.NewTimer(bound); ; timer.Reset(bound) {
		select {
		case next, ok := <-now:
			if !ok {
				return
			}
			seed = next
		case <-timer.C:
			debug.SetTraceback("all")
			panic(fmt.Sprintf("a hang: ACKSCOPE_TUI_SOAK=1 ACKSCOPE_TUI_SEED=%d has not ended after %v", seed, bound))
		}
	}
}

func number64(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 48)
	if err != nil || n == 0 {
		t.Fatalf("%s=%s: expected a number from 1", name, text)
	}
	return n
}
