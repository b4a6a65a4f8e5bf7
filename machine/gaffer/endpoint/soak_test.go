package endpoint_test

import (
	"testing"

	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
)

// TestSoak is the soak test that the article recommends: thousands of terrible
// networks, and every promise of the protocol checked at every step. SOAK_SEEDS sets
// the number of seeds; `make soak` runs more.
func TestSoak(t *testing.T) {
	seeds := gaffertest.Seeds(300, 80)
	acks, messages := 0, 0
	for seed := range uint64(seeds) {
		s := gaffertest.DrawSoak(seed)
		c, err := s.Run(seed)
		if err != nil {
			t.Fatal(err)
		}
		if c.Problem != nil {
			t.Fatalf("seed %d (%+v): %v", seed, s, c.Problem)
		}
		acks += c.Acks
		messages += c.Delivered[0] + c.Delivered[1]
	}
	if acks == 0 || messages == 0 {
		t.Fatalf("%d acks and %d messages: the soak tested nothing", acks, messages)
	}
	t.Logf("%d seeds: %d acks, none false; %d messages, all in order and whole", seeds, acks, messages)
}
