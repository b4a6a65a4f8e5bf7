package tracker_test

import (
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/riptidetest"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestSteadyMallocs: in steady state a packet allocates nothing, with events and without, where the tap's place is
// given and where it is inferred.
func TestSteadyMallocs(t *testing.T) {
	list := riptidetest.Steady(t)
	speaker := riptide.Speaker{Codec: wire.Codec{Dialect: wire.V21}, Builds: wire.BuildsOf(wire.V21)}
	for _, quiet := range []bool{false, true} {
		for _, facts := range []machine.Facts{{}, {Vantage: machine.VantageA}} {
			tr := tracker.New(riptide.Config{Senders: [2]riptide.Speaker{speaker, speaker}}, facts)
			out := machine.Effects{NoEvents: quiet}
			got := testenv.SteadyMallocs(len(list), func(i int) {
				out.Reset()
				tr.Observe(&list[i], &out)
			})
			if t.Logf("%d packets: %v", len(list), got); got > testenv.MostMallocs {
				t.Errorf("without events %v, tap %v: a packet allocates %v times", quiet, facts.Vantage, got)
			}
			if tr.Summary(machine.A).Resends == 0 {
				t.Error("nothing was sent again")
			}
		}
	}
}
