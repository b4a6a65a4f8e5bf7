package agenda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// list is the model: a list that is sorted before each query. Sorting is
// stable, so items of the same time keep their order.
type list []item

type item struct {
	at     int64
	turn   int // orders items of the same time
	value  int
	handle Handle
}

func (l list) sort() {
	slices.SortFunc(l, func(x, y item) int {
		switch {
		case x.at < y.at || x.at == y.at && x.turn < y.turn:
			return -1
		case x == y:
			return 0
		}
		return 1
	})
}

// run applies a script to an agenda and to a list. A step is two bytes: the
// operation, and the time or the item that it concerns.
func run(t *testing.T, script []byte) {
	t.Helper()
	var (
		a     Agenda[int64, int]
		model list
		turn  int
	)
	for step := 0; len(script) >= 2; step++ {
		deed, by := script[0], script[1]
		script = script[2:]
		turn++
		at := int64(by) - 128
		switch by {
		case 0:
			at = math.MinInt64
		case 255:
			at = math.MaxInt64
		}
		pick := int(by) % max(1, len(model))
		switch deed % 8 {
		case 0, 1, 2:
			model = append(model, item{at, turn, step, a.Add(at, step)})
		case 3:
			if len(model) > 0 {
				if got := a.Take(); got != model[0].value {
					t.Fatalf("step %d: took %d, want %+v", step, got, model[0])
				}
				model = model[1:]
			}
		case 4:
			if len(model) > 0 {
				h := model[pick].handle
				if a.Remove(h); *a.Value(h) != model[pick].value {
					t.Fatalf("step %d: removed %d, want %+v", step, *a.Value(h), model[pick])
				}
				model = slices.Delete(model, pick, pick+1)
			}
		case 5:
			if len(model) > 0 {
				x := &model[pick]
				x.at, x.turn = int64(deed)-128, turn
				a.Move(x.handle, x.at)
			}
		case 6:
			if len(model) > 0 {
				model[0].at = at
				a.Advance(at)
			}
		case 7:
			switch by % 8 {
			case 0:
				a.Clear()
				model = nil
			case 1:
				c := a.Clone()
				for a.Len() > 0 {
					a.Take()
				}
				a = c
			}
		}
		model.sort()
		compare(t, step, &a, model)
	}
	for _, x := range model {
		if got := a.Take(); got != x.value {
			t.Fatalf("at the end: took %d, want %+v", got, x)
		}
	}
}

func compare(t *testing.T, step int, a *Agenda[int64, int], model list) {
	t.Helper()
	if a.Len() != len(model) {
		t.Fatalf("step %d: %d values, want %d", step, a.Len(), len(model))
	}
	at, ok := a.Next()
	switch first := a.First(); {
	case len(model) == 0:
		if ok || first != nil {
			t.Fatalf("step %d: an empty agenda has %v at %d", step, first, at)
		}
	case !ok || first == nil || at != model[0].at || *first != model[0].value:
		t.Fatalf("step %d: the first is %v at %d, want %+v", step, first, at, model[0])
	}
	for _, x := range model {
		if a.At(x.handle) != x.at || *a.Value(x.handle) != x.value {
			t.Fatalf("step %d: %d at %d, want %+v", step, *a.Value(x.handle), a.At(x.handle), x)
		}
	}
	if step%16 > 0 {
		return
	}
	i := 0
	a.InOrder(func(v *int) bool {
		if *v != model[i].value {
			t.Fatalf("step %d: number %d in order is %d, want %+v", step, i, *v, model[i])
		}
		i++
		return i < len(model)
	})
}

func TestAgendaIsASortedList(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 18))
		script := make([]byte, 2*rng.IntN(400))
		narrow := seed%2 == 0 // few times, many ties
		for i := range script {
			script[i] = byte(rng.Uint32())
			if narrow && i%2 == 1 {
				script[i] = 126 + script[i]%4
			}
		}
		run(t, script)
	}
}

func FuzzAgenda(f *testing.F) {
	f.Add([]byte{0, 10, 0, 10, 0, 5, 3, 0, 5, 1, 6, 200, 4, 0, 7, 1, 7, 0})
	f.Fuzz(func(t *testing.T, script []byte) { run(t, script[:min(len(script), 2000)]) })
}

// Advance keeps the turn of the first value; Move gives it a new one.
func TestTurns(t *testing.T) {
	var a Agenda[int64, string]
	first := a.Add(1, "first")
	a.Add(2, "second")
	a.Advance(2)
	if got := *a.First(); got != "first" {
		t.Errorf("after Advance, %q comes first", got)
	}
	a.Move(first, 2)
	if got := *a.First(); got != "second" {
		t.Errorf("after Move, %q comes first", got)
	}
}

// The agenda must release a value that was taken. It must reuse the memory of
// one that was removed.
func TestMemory(t *testing.T) {
	var a Agenda[int64, []byte]
	a.Add(1, make([]byte, 3, 77))
	a.Take()
	h, v := a.Enter(1)
	if *v != nil {
		t.Errorf("what was taken is still there: %v", *v)
	}
	*v = make([]byte, 3, 78)
	a.Remove(h)
	if again, v := a.Enter(1); again != h || cap(*v) != 78 {
		t.Errorf("handle %d with %d bytes, want %d with those that were removed", again, cap(*v), h)
	}
	before := a.Size()
	for range 100 {
		a.Add(1, nil)
	}
	if grown := a.Size() - before; grown < 100*(24+24+4)/2 || grown > 100*(24+24+4)*3 {
		t.Errorf("100 values take %d bytes", grown)
	}
}

func TestNoAllocations(t *testing.T) {
	var a Agenda[int64, [4]uint64]
	for i := range int64(64) {
		a.Add(i, [4]uint64{})
	}
	now := int64(0)
	if got := testing.AllocsPerRun(1000, func() {
		now++
		a.Take()
		h := a.Add(now+7, [4]uint64{})
		a.Move(h, now+3)
		a.Advance(now + 64)
		a.Remove(h)
		a.Add(now+64, [4]uint64{})
	}); got != 0 {
		t.Errorf("%v allocations for each round of a steady agenda", got)
	}
}

func BenchmarkAddTake(b *testing.B) {
	var a Agenda[int64, [4]uint64]
	rng := rand.New(rand.NewPCG(1, 1))
	now := int64(0)
	for range 1000 {
		a.Add(rng.Int64N(1000), [4]uint64{})
	}
	b.ReportAllocs()
	for b.Loop() {
		now, _ = a.Next()
		a.Take()
		a.Add(now+rng.Int64N(1000), [4]uint64{})
	}
}
