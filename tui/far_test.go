package tui

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// A packet far behind the last checkpoint is stepped to in the background; its
// state is then the one that is told at once elsewhere.
func TestFarStatesAreTold(t *testing.T) {
	for _, name := range []string{"reliable-loss10.client.pcap.gz", "t210_rechunk.client.pcap.gz", "u210_falseack.server.pcapng.gz"} {
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
			if x := &d.model.sides; x.known != (walks > 8) {
				t.Fatalf("%s, %d steps at once: the state is known at once: %v (%v)", name, walks, x.known, x.err)
			}
			d.settle()
			d.draw()
			if x := &d.model.sides; !x.known || x.entry != 146 {
				t.Fatalf("%s, %d steps at once: no state of entry %d: %v", name, walks, x.entry, x.err)
			}
			if walks > 8 {
				want = d.model.sides.views
				continue
			}
			got = d.model.sides.views
			for side := range got {
				if !slices.Equal(got[side].Gauges, want[side].Gauges) || len(got[side].Windows) != len(want[side].Windows) {
					t.Errorf("%s side %d: the figures differ", name, side)
				}
				for i := range got[side].Windows {
					if !slices.Equal(got[side].Windows[i].Cells, want[side].Windows[i].Cells) || got[side].Windows[i].Next != want[side].Windows[i].Next {
						t.Errorf("%s side %d: window %s differs", name, side, got[side].Windows[i].Name)
					}
				}
			}
			// The tree and the differences come the same way.
			d.key("d 3 0 ]")
			for range 3 {
				d.draw()
				d.settle()
			}
			if d.model.sides.from != 146 || !d.model.sides.known {
				t.Errorf("%s: no differences since entry 146", name)
			}
		}
	}
}
