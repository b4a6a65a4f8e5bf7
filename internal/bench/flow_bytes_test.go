package bench

import (
	"runtime"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	files "github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
)

// flowBytesMost is what a flow of 12 packets may take of the heap at the end of a run, before it is summed up. The
// survey of the first run counts too.
const flowBytesMost = 2200

// TestFlowBytes: short flows that go on at a time take few bytes, in the first run and in the second.
func TestFlowBytes(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	testenv.Long(t, "a capture of 10,000 flows")
	const flows = 10_000
	in := synthetic(t, 12*flows, flows, 0.05)
	registry := dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
	src, err := files.Open([]string{in.path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	before := heapInUse()
	var survey *analyze.Survey
	for run := range 2 {
		frames, begun, after := 0, 0, uint64(0)
		var s *analyze.Session
		o := analyze.Options{Registry: registry, Survey: survey}
		o.Fed = func(_ *files.Frame, _ *files.Packet, f *analyze.Flow) {
			begun = max(begun, f.ID)
			if frames++; frames == in.packets {
				after = heapInUse()
			}
		}
		if s, err = analyze.Run(src, o); err != nil {
			t.Fatal(err)
		}
		if begun < in.packets/100 {
			t.Fatalf("only %d flows", begun)
		}
		got := (after - before) / uint64(begun)
		t.Logf("run %d: %d bytes for each of %d flows", run+1, got, begun)
		if got > flowBytesMost {
			t.Errorf("run %d: a flow takes %d bytes, expected %d at most", run+1, got, flowBytesMost)
		}
		survey = s.Survey()
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
