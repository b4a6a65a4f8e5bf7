package srdp_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/machine/srdp"
)

// TestPlaces compares a Places with a map.
func TestPlaces(t *testing.T) {
	var places srdp.Places
	model := map[uint16]int{}
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 200_000 {
		id := uint16(random.IntN([]int{16, 1 << 16}[n/1000%2]))
		switch has := places.Find(id); {
		case random.IntN(2) == 0:
			place := random.IntN(1 << 20)
			places.Set(id, place)
			model[id] = place
		case has >= 0:
			places.Remove(id)
			delete(model, id)
		}
		place, is := model[id]
		if !is {
			place = -1
		}
		if found := places.Find(id); found != place || places.Len() != len(model) {
			t.Fatalf("step %d: id %d is at %d, expected %d", n, id, found, place)
		}
	}
	copied := places.Clone()
	for id, place := range model {
		places.Remove(id)
		if places.Find(id) != -1 || copied.Find(id) != place {
			t.Fatalf("id %d is at %d once removed, and at %d in the copy", id, places.Find(id), copied.Find(id))
		}
	}
}
