package bench

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
)

// TestPrintedMallocs: in steady state a line that is printed allocates nothing, as text or as JSON. It counts the
// allocations of a command over a capture, less those over one of half the length.
func TestPrintedMallocs(t *testing.T) {
	testenv.Grid(t, "captures of many minutes")
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	const size = 300_000 // packets, about
	captures := func(size int) []input {
		return []input{
			synthetic(t, size, 8, 0.05),
			simulated(t, "riptide", 4, time.Duration(size/250)*time.Second, "--clients 4 --no-limits"),
			simulated(t, "srdp", 4, time.Duration(size/1000)*time.Second, "--clients 4"),
		}
	}
	half, all := captures(size/2), captures(size)
	for i := range all {
		for _, command := range []string{"events", "packets", "events --json", "packets --json", "messages --json"} {
			t.Run(all[i].name+"/"+command, func(t *testing.T) {
				before, after := printed(t, command, half[i].path), printed(t, command, all[i].path)
				got := (float64(after) - float64(before)) / float64(all[i].packets-half[i].packets)
				if got > testenv.MostMallocs {
					t.Errorf("a packet allocates %.5f times, expected %v at most: %d of %d packets, %d of %d", got,
						testenv.MostMallocs, before, half[i].packets, after, all[i].packets)
				}
			})
		}
	}
}

// printed returns how often a command allocates.
func printed(t *testing.T, command, path string) uint64 {
	t.Helper()
	var complaint strings.Builder
	args := append(strings.Fields(command), "-q", path)
	streams := app.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &complaint}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what goroutines hand each other is warm only after long
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := cli.Run(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}, args, streams)
	runtime.ReadMemStats(&after)
	if code != app.ExitDone {
		t.Fatal(fmt.Sprint(args, " ended with ", code, ": ", complaint.String()))
	}
	return after.Mallocs - before.Mallocs
}
