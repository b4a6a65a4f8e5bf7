package machine_test

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

func TestKeepNewest(t *testing.T) {
	var list []int
	for n := range 100 {
		list = machine.KeepNewest(list, n, 7)
		var want []int
		for x := max(0, n-6); x <= n; x++ {
			want = append(want, x)
		}
		if !slices.Equal(list, want) {
			t.Fatalf("after %d: %v, want %v", n, list, want)
		}
	}
	if list = machine.KeepNewest(list, 100, 3); !slices.Equal(list, []int{98, 99, 100}) {
		t.Errorf("with room for 3: %v", list)
	}
	if got := testing.AllocsPerRun(100, func() { list = machine.KeepNewest(list, 1, 3) }); got != 0 {
		t.Errorf("%v allocations where the list is full", got)
	}
}
