package show

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestBeliefs draws a window whose acked ids are settled: its cells begin behind them.
func TestBeliefs(t *testing.T) {
	var views [2]machine.View
	sent := machine.Window{
		Name: "messages sent", First: 42, Next: 44,
		Cells: []machine.Cell{machine.CellSent, machine.CellSent},
	}
	views[machine.A].Windows = []machine.Window{sent}
	views[machine.B].Windows = []machine.Window{{
		Name: "messages received", First: 42, Next: 43,
		Cells: []machine.Cell{machine.CellReceived, machine.CellEmpty},
	}}
	p := &State{Sides: []machine.Side{machine.A}}
	for _, c := range []struct {
		known bool
		want  string
	}{
		{false, "A thinks B has no messages yet; B also has 42"},
		{true, "A thinks B has messages up to 41; B also has 42"},
	} {
		views[machine.A].Windows[0].Acked, views[machine.A].Windows[0].AckedKnown = 41, c.known
		if got := p.Beliefs(&views); !slices.Equal(got, []string{c.want}) {
			t.Errorf("acked ids known: %v: %q, expected %q", c.known, got, c.want)
		}
	}
}
