package analyze

import (
	"math/rand"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// TestTable compares a table with a map, while flows come, succeed each other and go.
func TestTable(t *testing.T) {
	type pair struct {
		x, y      endpointKey
		transport capture.Transport
	}
	rnd := rand.New(rand.NewSource(1))
	end := func() endpointKey {
		return endpointKey{hi: uint64(rnd.Intn(2)), lo: uint64(rnd.Intn(20)), port: uint16(rnd.Intn(5))}
	}
	var table table
	model := map[pair]*Flow{}
	find := func(k pair) (*Flow, machine.Side) {
		if f := model[k]; f != nil {
			return f, machine.A
		}
		if f := model[pair{k.y, k.x, k.transport}]; f != nil {
			return f, machine.B
		}
		return nil, machine.A
	}
	found := 0
	for step := range 200000 {
		k := pair{end(), end(), []capture.Transport{capture.UDP, capture.TCP}[rnd.Intn(2)]}
		want, wantSide := find(k)
		got, side := table.find(k.transport, &k.x, &k.y)
		if got != want || side != wantSide {
			t.Fatalf("step %d: flow %p of %v, expected %p of %v", step, got, side, want, wantSide)
		}
		if want != nil {
			found++
		}
		// The table fills in one phase and empties in the next.
		switch filling := step/20000%2 == 0; {
		case want == nil && (filling || rnd.Intn(8) == 0):
			f := &Flow{origin: k.x, answer: k.y, Transport: k.transport}
			model[k] = f
			table.put(f)
		case want == nil:
		case rnd.Intn(4) == 0:
			next := &Flow{origin: want.origin, answer: want.answer, Transport: want.Transport}
			model[pair{want.origin, want.answer, want.Transport}] = next
			table.put(next)
			table.remove(want) // another flow has its place
		case !filling:
			delete(model, pair{want.origin, want.answer, want.Transport})
			table.remove(want)
		}
		if table.count != len(model) {
			t.Fatalf("step %d: %d flows, expected %d", step, table.count, len(model))
		}
	}
	if found < 10000 {
		t.Errorf("only %d flows were found", found)
	}
}
