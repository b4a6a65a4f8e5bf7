package collect

import (
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// TestSeen compares with a plain set: numbers in nearly any order, some twice, some never.
func TestSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		s, naive := seen{}, map[uint64]bool{}
		most := uint64(1 + r.IntN(300))
		largest := uint64(0)
		for range r.IntN(600) {
			n := 1 + r.Uint64N(most)
			got := s.add(message.ID{Sensor: "a", Epoch: "e", Seq: n})
			if got == naive[n] {
				t.Fatalf("round %d: number %d: expected new %v, found %v", round, n, !naive[n], got)
			}
			naive[n] = true
			largest = max(largest, n)
		}
		if got, want := s.missing(), largest-uint64(len(naive)); got != want {
			t.Fatalf("round %d: expected %d missing, found %d", round, want, got)
		}
	}
}

// TestSeenBounds sends numbers with gaps, as an attacker may: the memory stays bounded, and the count right.
func TestSeenBounds(t *testing.T) {
	x := &spans{}
	const n = 3 * mostSpans
	for i := uint64(1); i <= n; i++ {
		if !x.add(2 * i) {
			t.Fatalf("number %d: expected that it is new", 2*i)
		}
	}
	if len(x.list) > mostSpans || x.missing() != n {
		t.Errorf("expected at most %d spans and %d missing, found %d and %d", mostSpans, n, len(x.list), x.missing())
	}
	if x.add(1) {
		t.Error("a number below all spans: expected that it is refused")
	}
}
