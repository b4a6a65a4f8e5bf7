package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// A packet far behind the last checkpoint is stepped to in the background. Its
// state is then the same as the state computed at once.
func TestFarStatesAreTold(t *testing.T) {
	for _, name := range []string{
		"reliable-loss10.client.pcap.gz", "t210_rechunk.client.pcap.gz",
		"u210_falseack.server.pcapng.gz",
	} {
		var want, got [2]machine.View
		for _, walks := range []int{1 << 30, 8} {
			d := newDriver(t, testenv.Capture(t, name))
			defer d.close(t)
			d.screen.SetSize(160, 50)
			d.store.Walks = walks
			d.store.Start()
			d.settle()
			d.draw()
			d.settle()
			d.draw()
			d.key("Enter S 1 4 7 g g")
			d.draw()
			if x := d.model.screens.State; x.Known != (walks > 8) {
				t.Fatalf("%s, %d steps at once: the state is known at once: %v", name, walks, x.Known)
			}
			d.settle()
			d.draw()
			if x := d.model.screens.State; !x.Known || x.Entry != 146 {
				t.Fatalf("%s, %d steps at once: expected the state of entry 146, found that of %d", name, walks, x.Entry)
			}
			if walks > 8 {
				want = d.model.screens.State.Views
				continue
			}
			got = d.model.screens.State.Views
			for side := range got {
				if !slices.Equal(got[side].Gauges, want[side].Gauges) || len(got[side].Windows) != len(want[side].Windows) {
					t.Errorf("%s side %d: the figures differ", name, side)
				}
				for i := range got[side].Windows {
					if !slices.Equal(got[side].Windows[i].Cells, want[side].Windows[i].Cells) ||
						got[side].Windows[i].Next != want[side].Windows[i].Next {
						t.Errorf("%s side %d: window %s differs", name, side, got[side].Windows[i].Name)
					}
				}
			}
			// The tree and the differences are computed in the same way.
			d.key("d 3 0 ]")
			for range 3 {
				d.draw()
				d.settle()
			}
			d.screen.Show()
			if !d.model.screens.State.Known ||
				!strings.Contains(textOf(d.screen.SimulationScreen), "changed from frame 147 to") {
				t.Errorf("%s: no differences since entry 146", name)
			}
		}
	}
}
