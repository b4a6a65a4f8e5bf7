package analyze

import (
	"math"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestSteady: loss is steady from 3 % on, over enough packets, unless it came
// in outages.
func TestSteady(t *testing.T) {
	spread := func(n, every int) (p machine.PathLoss) {
		for i := range n {
			p.Settle(every > 0 && i%every == every-1)
		}
		return p
	}
	outages := func(n, every, long int) (p machine.PathLoss) {
		for i := range n {
			p.Settle(i%every < long)
		}
		return p
	}
	for _, c := range []struct {
		name string
		path machine.PathLoss
		want bool
	}{
		{"nothing judged", machine.PathLoss{}, false},
		{"no loss", spread(1000, 0), false},
		{"2 %", spread(1000, 50), false},
		{"3 %", spread(1000, 33), true},
		{"10 %", spread(1000, 10), true},
		{"3 % of too few", spread(132, 33), false},
		{"half of few", spread(20, 2), true},
		{"two of three", spread(3, 1), false},
		{"10 % in outages of 100 packets", outages(4000, 1000, 100), false},
		{"10 % in outages of 6 packets", outages(4000, 60, 6), true},
	} {
		if got := steady(&c.path, DefaultThresholds().Loss); got != c.want {
			t.Errorf("%s (%+v): %v", c.name, c.path, got)
		}
	}
}

// TestWilson checks Wilson's interval against the roots of its own definition.
func TestWilson(t *testing.T) {
	for _, n := range []float64{5, 20, 167, 10000} {
		for _, share := range []float64{0.01, 0.05, 0.5, 0.99} {
			low := wilson(share, n)
			if off := math.Abs((share-low)/math.Sqrt(low*(1-low)/n) - steadyZ); low >= share || off > 1e-9 {
				t.Errorf("%v of %v: %v, off by %v", share, n, low, off)
			}
		}
	}
}
