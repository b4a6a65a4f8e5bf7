package bench

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	files "github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
)

// head is a capture of which the first frames are read.
type head struct {
	*files.Input
	frames, read int
}

func (h *head) Next(f *files.Frame) error {
	if h.read == h.frames {
		return io.EOF
	}
	h.read++
	return h.Input.Next(f)
}

func (h *head) Rewind() error { h.read = 0; return h.Input.Rewind() }

func (h *head) MayReadAhead() bool { return true }

// TestSteadyMallocs: in steady state the whole analysis of a packet allocates nothing. It counts the allocations over
// a capture, less those over its first half.
func TestSteadyMallocs(t *testing.T) {
	testenv.Long(t, "captures of minutes")
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	size, threads := 300_000, []int{1}
	if testenv.Whole() {
		// What the goroutines hand each other is warm only after some hundred thousand packets.
		size, threads = million, []int{1, 2}
	}
	registry := dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
	for _, in := range []input{
		synthetic(t, size, 8, 0.05),
		simulated(t, "riptide", 4, time.Duration(size/250)*time.Second, "--clients 4 --no-limits"),
		simulated(t, "srdp", 4, time.Duration(size/1000)*time.Second, "--clients 4"),
	} {
		for _, threads := range threads {
			for _, listed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/threads=%d/listed=%v", in.name, threads, listed), func(t *testing.T) {
					records := 0
					o := analyze.Options{Registry: registry, Threads: threads}
					if listed {
						o.Sink, o.Detached = func(*analyze.Record) { records++ }, true
					}
					half, got := in.packets/2, 1.0
					// How many of its chunks a run with several goroutines fills, is the scheduler's choice. So a pair of
					// runs that differ in that is measured again.
					for try := 0; try < 3 && got > testenv.MostMallocs; try++ {
						first, all := mallocs(t, in.path, half, o), mallocs(t, in.path, in.packets, o)
						got = (float64(all) - float64(first)) / float64(in.packets-half)
						t.Logf("%d packets: %d allocations, %d in the first half: %.5f a packet", in.packets, all, first, got)
					}
					if got > testenv.MostMallocs {
						t.Errorf("a packet allocates %.5f times, expected %v at most", got, testenv.MostMallocs)
					}
					if listed && records < in.packets {
						t.Errorf("%d records of %d packets", records, in.packets)
					}
				})
			}
		}
	}
}

// mallocs returns how often the analysis of the first frames allocates. A sink gets the records of a second run.
func mallocs(t *testing.T, path string, frames int, o analyze.Options) uint64 {
	t.Helper()
	in, err := files.Open([]string{path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	run := analyze.RunTwice
	if o.Sink == nil {
		run = func(src analyze.Rewinder, o analyze.Options) (*analyze.Session, error) { return analyze.Run(src, o) }
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := run(&head{Input: in, frames: frames}, o)
	runtime.ReadMemStats(&after)
	if err != nil || s.Packets() != uint64(frames) {
		t.Fatalf("%d packets, %v, expected %d", s.Packets(), err, frames)
	}
	return after.Mallocs - before.Mallocs
}
