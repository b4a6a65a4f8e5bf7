package analyze

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestEstimateWithinBounds: the best figure of a loss lies within the bounds. Where they are far
// apart, it is likely at most, even if the packets of known fate show it for certain.
func TestEstimateWithinBounds(t *testing.T) {
	path := machine.PathLoss{Settled: 1000, Lost: 36}
	for _, x := range []struct {
		least, most uint64
		share       float64
		certain     machine.Certainty
		tells       bool
	}{
		{36, 36, 0.036, machine.Certain, true},
		{0, 36, 0.036, machine.Likely, false},
		{0, 20, 0.020, machine.Likely, false},
		{60, 90, 0.060, machine.Likely, false},
	} {
		sum := machine.Summary{Path: path, PathKnown: machine.Certain}
		n := Network{
			Share: -1, Loss: machine.LossBounds{Sent: 1000, Least: x.least, Most: x.most, Certainty: machine.Certain},
		}
		n.estimate(&sum)
		if n.Share != x.share || n.Certain != x.certain || n.Tells != x.tells {
			t.Errorf("bounds %d to %d: %v (%v, told %v), expected %v (%v, told %v)", x.least, x.most, n.Share, n.Certain,
				n.Tells, x.share, x.certain, x.tells)
		}
	}
}
