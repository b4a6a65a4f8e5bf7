package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestFrames compares the stretches of Frames with a plain list of instants.
func TestFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		f, list := &Frames{}, []Instant{}
		at := Instant(rng.IntN(1000))
		for range rng.IntN(20) {
			switch rng.IntN(3) {
			case 0:
				f.Add(at)
				list = append(list, at)
			case 1:
				to, parts := at+Instant(rng.IntN(1000)), rng.IntN(9)
				f.AddBetween(at, to, parts)
				for k := 1; k < parts; k++ {
					list = append(list, at+(to-at)*Instant(k)/Instant(parts))
				}
				at = to
			default:
				to, rate := at+Instant(rng.IntN(1000)), float64(time.Second)/float64(1+rng.IntN(100))
				f.Extend(EvenFrames(at, to, rate))
				for step := max(Instant(float64(time.Second)/rate), 1); at <= to; at += step {
					list = append(list, at)
				}
			}
			at += Instant(rng.IntN(50))
		}
		if f.Len() != len(list) {
			t.Fatalf("%d frames, expected %d", f.Len(), len(list))
		}
		for i, want := range list {
			if f.At(i) != want {
				t.Fatalf("frame %d of %v at %d, expected %d", i, list, f.At(i), want)
			}
		}
		for range 100 {
			at := Instant(rng.IntN(20000))
			want, _ := slices.BinarySearch(list, at)
			if got := f.Search(at); got != want {
				t.Fatalf("search %d in %v: %d, expected %d", at, list, got, want)
			}
		}
	}
	if f := (*Frames)(nil); f.Len() != 0 || f.Search(1) != 0 {
		t.Error("nil is not empty")
	}
}

// TestFramesOfYears checks that the memory for frames does not grow with their
// number.
func TestFramesOfYears(t *testing.T) {
	const years = 79 * 365 * 24 * time.Hour
	n := testing.AllocsPerRun(10, func() {
		f := EvenFrames(0, Instant(years), 10000)
		f.AddBetween(Instant(years), Instant(2*years), int(years/time.Millisecond))
		if f.Len() < int(years/time.Millisecond) || f.Search(Instant(years)/2) == 0 {
			t.Error("frames are missing")
		}
	})
	if n > 5 {
		t.Errorf("%v allocations", n)
	}
}
