package analyze

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// The candidates of an endpoint take no more room than twice the flows that are remembered, and
// an endpoint without flows takes none.
func TestHubsForget(t *testing.T) {
	var s Session
	server := endpointKey{lo: 1, port: 40000}
	var kept []*Flow
	for i := range 1000 {
		f := &Flow{origin: endpointKey{lo: 2, port: uint16(i)}, answer: server}
		s.enterHub(f, machine.B)
		if kept = append(kept, f); len(kept) > 10 {
			kept[0].gone = true
			s.leaveHubs(kept[0])
			kept = kept[1:]
		}
		if n := len(s.hubs[server].flows); n > 2*11 {
			t.Fatalf("%d candidates after %d flows, of which %d are remembered", n, i+1, len(kept))
		}
	}
	for _, f := range kept {
		f.gone = true
		s.leaveHubs(f)
	}
	if len(s.hubs) != 0 {
		t.Errorf("%d endpoints are kept without flows", len(s.hubs))
	}
}

// The chance counts the gaps that are as near as the one found, to either expected one.
func TestAsNear(t *testing.T) {
	for _, c := range []struct{ gap, paced, want float64 }{
		{1, 1, 1},   // the next number, at once
		{2, 1, 3},   // 0, 1, 2
		{1, 60, 2},  // 1, or 60
		{60, 60, 2}, // the same
		{61, 60, 6}, // 0 to 2, 59 to 61
		{4, 2, 6},   // -1 to 4: the two ranges overlap
	} {
		if got := asNear(c.gap, c.paced); got != c.want {
			t.Errorf("gap %v where 1 or %v is expected: %v, expected %v", c.gap, c.paced, got, c.want)
		}
	}
}
