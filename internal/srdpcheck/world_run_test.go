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
// compares what Ackscope says with the log of the second one.
func TestSimulated(t *testing.T) {
	seeds := append(append([]uint64(nil), once...), seeds(24, 240)...)
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

// seeds returns the seeds of the runs. ACKSCOPE_SRDPCHECK=N (make srdpcheck)
// asks for N of them, from ACKSCOPE_SRDPCHECK_SEED on. Otherwise there are few,
// or whole for the long tests.
func seeds(few, whole uint64) (list []uint64) {
	first, runs := uint64(1), few
	if n, err := strconv.ParseUint(os.Getenv("ACKSCOPE_SRDPCHECK_SEED"), 10, 64); err == nil {
		first = n
	}
	if n, err := strconv.ParseUint(os.Getenv("ACKSCOPE_SRDPCHECK"), 10, 32); err == nil && n > 0 {
		runs = n
	} else if testenv.Whole() {
		runs = whole
	}
	for n := range runs {
		list = append(list, first+n)
	}
	return list
}
