package gaffer

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	tracker "github.com/ackscope/ackscope/machine/gaffer"
)

// sampleOf gives the connection packets of one flow of a capture.
func sampleOf(t testing.TB, r *yojimboRun, at string, flow int) *tracker.Sample {
	t.Helper()
	s := &tracker.Sample{}
	for _, p := range r.packets(t, at) {
		if p.flow == flow {
			s.Add(p.from, int64(p.sequence), p.payload)
		}
	}
	return s
}

func TestInferConfiguration(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		for _, at := range []string{"client", "server"} {
			for flow := range r.client {
				i := sampleOf(t, r, at, flow).Infer()
				if i == nil {
					t.Logf("%s.%s %d: nothing inferred", name, at, flow)
					continue
				}
				t.Logf("%s.%s %d: %d channels, types %d-%d, %+v; of %d packets %d read, %d opaque, %d wrong; next %d with %d", name, at, flow, len(i.Config.Channels), i.TypesLeast, i.TypesMost, i.Channels, i.Packets, i.Read, i.Opaque, i.Wrong, i.Next, i.NextRead)
			}
		}
	}
}

var _ = machine.A
