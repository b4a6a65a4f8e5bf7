package riptide

import (
	"math/rand/v2"
	"testing"
)

// TestMainWindow compares the window of main with a plain set of ids. Each id is delivered once, and
// an Ack names exactly what came. The window overruns when an id that never came is more than 1024
// behind the newest. (At a jump of 1025 the library gives up one id sooner.)
func TestMainWindow(t *testing.T) {
	overran := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 21))
		r := NewReceiver(LookupBehaviour("riptide@main"))
		came, newest, oldest := map[int]bool{}, 0, 1 // oldest is the oldest id that has not come
		for step := 0; step < 3000 && !r.Overran; step++ {
			id := newest + 1
			switch n := rng.IntN(400); {
			case n == 0:
				id += rng.IntN(200)
			case n < 40:
				id += rng.IntN(3)
			case n < 180:
				id = oldest // sent again
			case n < 200:
				id = max(1, newest-rng.IntN(60)) // a copy
			}
			if seed%3 == 0 && id == 7 {
				continue // never comes
			}
			if fresh := r.Take(uint16(id)); fresh == came[id] {
				t.Fatalf("seed %d: id %d with newest %d is delivered: %t, came before: %t", seed, id, newest, fresh, came[id])
			}
			came[id], newest = true, max(newest, id)
			for came[oldest] {
				oldest++
			}
			last, bits := r.Ack()
			for i := range WindowAcks {
				if was := newest - 1 - i; was > 0 && bits>>i&1 == 1 != came[was] || last != uint16(newest) {
					t.Fatalf("seed %d: the Ack has newest %d and bits %#x; newest is %d, and %d came: %t", seed, last, bits, newest,
						was, came[was])
				}
			}
			if want := oldest < newest && newest-oldest > 1024; r.Overran != want {
				t.Fatalf("seed %d: newest %d, oldest that never came %d: overran %t", seed, newest, oldest, r.Overran)
			}
		}
		if r.Overran {
			overran++
		}
	}
	if overran < 10 || overran > 50 {
		t.Errorf("%d of 60 windows overran: too few, or too many, to test both", overran)
	}
}

// TestMainMisreadsNone: at a jump of the newest acked id, the repaired sender decides only ids that
// an Ack can speak of. The faulty one goes on to ids beyond the one acked before.
func TestMainMisreadsNone(t *testing.T) {
	for _, c := range []struct {
		behaviour string
		beyond    bool
	}{{"riptide@main", false}, {"riptide@2.1.1-2.2.1", true}} {
		s := NewSender(LookupBehaviour(c.behaviour))
		for id := uint16(1); id <= 40; id++ {
			s.Acked(id, 0xffff, id, func(uint16, Verdict) {})
		}
		beyond := 0
		s.Acked(100, 0, 100, func(id uint16, _ Verdict) {
			if id > 40 && id != 100 {
				beyond++
			}
		})
		if beyond > 0 != c.beyond {
			t.Errorf("%s: after 40, an Ack of 100 decides %d ids between them", c.behaviour, beyond)
		}
	}
}
