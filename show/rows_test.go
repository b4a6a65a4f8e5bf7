package show

import (
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// The newest rows are drawn if there is no room for all. If the receiver is
// further behind, one row shows its newest packet. Both sides draw the same
// rows.
func TestRowsOf(t *testing.T) {
	window := func(name string, first, next int64, cells int) *machine.Window {
		return &machine.Window{Name: name, First: first, Next: next, Cells: make([]machine.Cell, cells)}
	}
	for _, c := range []struct {
		sent, received *machine.Window
		rows           int
		want           []int64
	}{
		{window("sent", 0, 64, 64), window("received", 0, 63, 64), 0, []int64{0, 16, 32, 48}},
		{window("sent", 0, 64, 64), window("received", 0, 63, 64), 2, []int64{32, 48}},
		{window("sent", 0, 64, 64), window("received", 0, 20, 21), 2, []int64{16, 48}},
		{window("sent", 0, 64, 64), window("received", 0, 20, 21), 3, []int64{16, 32, 48}},
		{window("sent", 0, 64, 64), window("received", 0, 20, 21), 1, []int64{48}},
		{window("sent", 0, 64, 64), nil, 2, []int64{32, 48}},
		{window("sent", -20, 4, 24), nil, 0, []int64{-32, -16, 0}},
		{nil, nil, 2, nil},
	} {
		p := &State{Rows: c.rows, Cells: 16}
		if got := p.rowsOf(c.sent, c.received); !slices.Equal(got, c.want) {
			t.Errorf("rows from %v, expected %v", got, c.want)
		}
		if got := p.rowsOf(c.received, c.sent); !slices.Equal(got, c.want) {
			t.Errorf("seen from the other side rows from %v, expected %v", got, c.want)
		}
	}
	b := &Block{}
	p := &State{Rows: 2, Cells: 16}
	p.window(b, "received", window("received", 0, 20, 21), []int64{16, 48})
	if last := b.Lines[len(b.Lines)-1]; !strings.HasPrefix(last, "⋮48") {
		t.Errorf("a row that does not follow the one above begins with %q", last)
	}
}

// A figure that does not fit loses its grade first, then its name, and never
// its value.
func TestGaugeFits(t *testing.T) {
	g := machine.Gauge{Name: "packet to acknowledgement, longest", Value: 81.56, Unit: "ms", Grade: machine.Likely}
	for width := 0; width < 80; width++ {
		p := State{Width: width}
		got := p.gauge(&g)
		if !strings.HasSuffix(got, " 81.56 ms  (likely)") {
			t.Errorf("%d columns: %q lost its value", width, got)
		}
		if cut := string(Fit([]byte(got), width)); width > 30 && !strings.Contains(cut, " 81.56 ms") {
			t.Errorf("%d columns show %q", width, cut)
		}
		if width > 60 && got != GaugeText(&g) {
			t.Errorf("%d columns: %q is cut in vain", width, got)
		}
	}
}
