package srdpcheck

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// once are seeds of which Ackscope once said something wrong.
var once = []uint64{27, 83, 142, 198, 281, 647, 753, 785, 848, 899, 984}

// TestSimulated runs both endpoints against each other in virtual time, and
// compares what Ackscope says with the log of the second one. With
// ACKSCOPE_SRDPCHECK=N (make srdpcheck) it makes N runs, from the seed
// ACKSCOPE_SRDPCHECK_SEED on.
func TestSimulated(t *testing.T) {
	seeds := append([]uint64(nil), once...)
	first, runs := uint64(1), uint64(24)
	if n, err := strconv.ParseUint(os.Getenv("ACKSCOPE_SRDPCHECK_SEED"), 10, 64); err == nil {
		first = n
	}
	if n, err := strconv.ParseUint(os.Getenv("ACKSCOPE_SRDPCHECK"), 10, 32); err == nil && n > 0 {
		runs = n
	} else if testenv.Whole() {
		runs = 240
	}
	for n := range runs {
		seeds = append(seeds, first+n)
	}
	var sum tally
	for _, seed := range seeds {
		s := draw(seed)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			o := s.simulate(t)
			faults := o.talked(s)
			held, c := o.hold(t, s, tell(t, fmt.Sprint("seed ", seed), o.capture))
			sum.add(c)
			if faults = append(faults, held...); len(faults) > 0 {
				t.Errorf("%v:\n%s", s, strings.Join(faults, "\n"))
			}
		})
	}
	t.Logf("%d runs: %v", len(seeds), &sum)
	switch {
	case sum.certain*2 < sum.facts:
		t.Errorf("%d of %d facts are certain: expected half of them", sum.certain, sum.facts)
	case sum.placed*10 < sum.near*9:
		t.Errorf("the tap is placed at %d of %d endpoints, expected nine of ten", sum.placed, sum.near)
	}
}
