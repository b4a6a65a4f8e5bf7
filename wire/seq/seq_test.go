package seq

import (
	"math/rand/v2"
	"testing"
)

// greater is the article's rule as its listing states it, for 16 bits.
func greater(a, b uint16) bool {
	return a > b && a-b <= 32768 || a < b && b-a > 32768
}

func TestNewerIsTheListings(t *testing.T) {
	for a := 0; a < 65536; a += 13 {
		for _, d := range []int{0, 1, 2, 255, 256, 32767, 32768, 32769, 65534, 65535} {
			x, y := uint16(a), uint16(a+d)
			if got := Bits16.Newer(uint32(x), uint32(y)); got != greater(x, y) {
				t.Fatalf("Newer(%d, %d) = %v, the listing says %v", x, y, got, greater(x, y))
			}
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		space Space
		a, b  uint32
		want  int
	}{
		{Bits16, 5, 5, 0},
		{Bits16, 0, 65535, 1},
		{Bits16, 65535, 0, -1},
		{Bits16, 32768, 0, 32768},
		{Bits16, 0, 32768, -32768},
		{Bits15, 0, 32767, 1},
		{Bits15, 16384, 0, 16384},
		{Bits15, 0, 16384, -16384},
		{Bits8, 0, 255, 1},
		{Bits8, 128, 0, 128},
		{Bits8, 0, 128, -128},
		{Bits32, 0, 1<<32 - 1, 1},
		{Bits32, 1 << 31, 0, 1 << 31},
	} {
		if got := c.space.Distance(c.a, c.b); got != c.want {
			t.Errorf("%d bits: Distance(%d, %d) = %d, want %d", c.space, c.a, c.b, got, c.want)
		}
	}
}

func TestUnwrap(t *testing.T) {
	for _, space := range []Space{Bits8, Bits15, Bits16, Bits32} {
		at := int64(space.Mask()) - 5
		for range 1000 {
			next := at + int64(rand.IntN(20)) - 5
			if got := space.Unwrap(uint32(next)&space.Mask(), at); got != next {
				t.Fatalf("%d bits: %d near %d unwraps to %d", space, next, at, got)
			}
			at = next
		}
	}
}

// The model is a map: a value stays while its number is within size of the
// newest.
func TestRingModel(t *testing.T) {
	for _, size := range []int{1, 2, 3, 8, 9, 64, 100, 256, 1024} {
		for seed := range uint64(4) {
			random := rand.New(rand.NewPCG(seed, uint64(size)))
			r := NewRing[int](Bits16, size)
			live := 0
			r.Forget = func(*int) { live-- }
			model := map[int64]int{}
			newest := int64(65000)
			start := newest
			enter := func(at int64, v int) {
				e, fresh := r.Enter(uint32(at) & 0xffff)
				if at > newest {
					newest = at
				}
				for k := range model {
					if k <= newest-int64(size) {
						delete(model, k)
					}
				}
				if at <= newest-int64(size) {
					if e != nil {
						t.Fatalf("size %d: %d is older than the window of %d, and was entered", size, at, newest)
					}
					return
				}
				_, had := model[at]
				if e == nil || fresh == had {
					t.Fatalf("size %d: entering %d of newest %d: %v, fresh %v", size, at, newest, e, fresh)
				}
				if fresh {
					live++
				}
				*e, model[at] = v, v
			}
			enter(newest, 1)
			for i := range 3000 {
				switch random.IntN(20) {
				case 0:
					enter(newest+int64(random.IntN(3*size)), i)
				case 1, 2, 3, 4:
					enter(newest-int64(random.IntN(size+3)), i)
				default:
					enter(newest+1, i)
				}
				if random.IntN(10) == 0 {
					for at := max(newest-int64(2*size), start); at <= newest; at++ {
						e := r.Find(uint32(at) & 0xffff)
						v, had := model[at]
						if (e != nil) != had || had && *e != v {
							t.Fatalf("size %d, newest %d: %d is held: %v, want %v", size, newest, at, e != nil, had)
						}
					}
					count := 0
					r.All(func(uint32, *int) bool { count++; return true })
					if count != len(model) || live != len(model) {
						t.Fatalf("size %d: All gives %d entries, %d were not forgotten, the model holds %d", size, count,
							live, len(model))
					}
				}
			}
		}
	}
}

// A short flow must not use memory for a window that it never fills.
func TestRingGrows(t *testing.T) {
	r := NewRing[[64]byte](Bits16, 1024)
	for i := range uint32(5) {
		r.Enter(65533 + i) // beyond the space: only the low bits count
	}
	if len(r.slots) > firstSlots {
		t.Errorf("5 entries take %d slots", len(r.slots))
	}
	for i := range uint32(5000) {
		r.Enter(i)
	}
	if len(r.slots) != 1024 {
		t.Errorf("a full window takes %d slots", len(r.slots))
	}
}

func BenchmarkRing(b *testing.B) {
	r := NewRing[uint64](Bits16, 256)
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		e, _ := r.Enter(i & 0xffff)
		*e = uint64(i)
		i++
	}
}
