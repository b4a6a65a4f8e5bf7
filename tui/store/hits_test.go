package store

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var h hits
	var want []int
	for n := range 40_000 {
		if rng.IntN(5) == 0 {
			want = append(want, n)
		}
	}
	late := want[len(want)/2]
	for _, n := range want {
		if n != late {
			h.add(n)
		}
	}
	h.add(late) // an entry that a held datagram adds late
	h.add(late)
	if h.total != len(want) {
		t.Fatalf("%d hits, expected %d", h.total, len(want))
	}
	for k, n := range want {
		if got, ok := h.nth(k); !ok || got != n {
			t.Fatalf("hit %d is %d, %v; expected %d", k, got, ok, n)
		}
		if got := h.rank(n); got != k {
			t.Fatalf("rank of %d is %d, expected %d", n, got, k)
		}
	}
	if _, ok := h.nth(len(want)); ok {
		t.Error("a hit past the last")
	}
	if h.has(want[0]+1) != slices.Contains(want, want[0]+1) {
		t.Error("has is wrong")
	}
}
