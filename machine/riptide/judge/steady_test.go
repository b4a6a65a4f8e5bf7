package judge

import (
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/riptidetest"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestSteadyMallocs: in steady state a packet that does not diverge allocates nothing.
func TestSteadyMallocs(t *testing.T) {
	list := riptidetest.Steady(t)
	speaker := riptide.Speaker{Codec: wire.Codec{Dialect: wire.V21}, Builds: wire.BuildsOf(wire.V21)}
	j, err := New(riptide.Config{Senders: [2]riptide.Speaker{speaker, speaker}}, machine.Facts{Vantage: machine.VantageA},
		[2]string{"riptide@2.1.1-2.2.1", "riptide@2.1.1-2.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	got := testenv.SteadyMallocs(len(list), func(i int) { j.Observe(&list[i]) })
	if t.Logf("%d packets: %v", len(list), got); got > testenv.MostMallocs {
		t.Errorf("a packet allocates %v times", got)
	}
	for x := range j.sides {
		if o := j.Opinion(machine.Side(x)); o.Divergence != nil || o.Compared < uint64(len(list)/4) {
			t.Errorf("side %d: %+v, and %d packets compared", x, o.Divergence, o.Compared)
		}
	}
}
