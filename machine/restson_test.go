package machine_test

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

func TestRestsOn(t *testing.T) {
	for _, c := range []struct {
		rests         machine.RestsOn
		peer, absence bool
		words         []string
	}{
		{machine.RestsOnOwn, false, false, []string{"own"}},
		{machine.RestsOnPeer, true, false, []string{"peer"}},
		{machine.RestsOnAbsence, false, true, []string{"absence"}},
		{machine.RestsOnBoth, true, true, []string{"peer", "absence"}},
	} {
		if c.rests.Peer() != c.peer || c.rests.Absence() != c.absence || !slices.Equal(c.rests.Words(), c.words) {
			t.Errorf("%b: peer %v, absence %v, %v; expected %v, %v, %v", c.rests, c.rests.Peer(), c.rests.Absence(),
				c.rests.Words(), c.peer, c.absence, c.words)
		}
	}
}
