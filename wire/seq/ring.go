package seq

import "math/bits"

// Ring holds values by sequence number, in a window: the newest number and the
// size-1 numbers before it. Entering a newer number clears every slot that the
// window moves over. So no entry of one wrap earlier remains, as the article
// "Reliable Ordered Messages" recommends.
//
// Its memory grows with the span in use, up to size entries. Thousands of short
// flows therefore need little memory.
//
// The endpoints of the protocols, and replay, do not use Ring. Their entries
// leave by other rules: by the library's buffer size, by age, or once their
// reply came.
//
// The zero Ring is not ready: use NewRing.
type Ring[T any] struct {
	space  Space
	begun  bool // at least one number was entered
	newest uint32
	size   int
	span   int // numbers from the oldest that may be in the ring to the newest
	slots  []slot[T]

	// Forget, if set, is called for every value that leaves the window.
	Forget func(*T)
}

type slot[T any] struct {
	live   bool
	number uint32
	value  T
}

const firstSlots = 8

// NewRing returns a ring of at most size entries, and at most half of the
// space.
func NewRing[T any](space Space, size int) *Ring[T] {
	return &Ring[T]{space: space, size: min(max(size, 1), 1<<(space-1))}
}

// Enter returns the entry of a number. When the ring does not have the number,
// the entry is new and zero, and fresh is true. Enter returns nil for a number
// older than the window.
func (r *Ring[T]) Enter(number uint32) (entry *T, fresh bool) {
	number &= r.space.Mask()
	switch {
	case !r.begun:
		r.begun, r.newest, r.span = true, number, 1
		r.grow()
	default:
		d := r.space.Distance(number, r.newest)
		switch {
		case d > 0:
			r.advance(number, d)
		case -d >= r.size:
			return nil, false
		case 1-d > r.span:
			r.span = 1 - d
			r.grow()
		}
	}
	s := r.slot(number)
	fresh = !s.live || s.number != number
	if fresh {
		r.clear(s)
		*s = slot[T]{live: true, number: number}
	}
	return &s.value, fresh
}

// Find returns the entry of a number. It returns nil when the ring does not
// have it.
func (r *Ring[T]) Find(number uint32) *T {
	number &= r.space.Mask()
	if len(r.slots) == 0 {
		return nil
	}
	s := r.slot(number)
	if !s.live || s.number != number {
		return nil
	}
	return &s.value
}

// All calls do for every entry, oldest first, until do returns false.
func (r *Ring[T]) All(do func(number uint32, entry *T) bool) {
	for n := r.span - 1; n >= 0; n-- {
		number := r.space.Add(r.newest, -n)
		if e := r.Find(number); e != nil && !do(number, e) {
			return
		}
	}
}

// Advance makes number the newest without entering it. It does nothing unless
// the number is newer.
func (r *Ring[T]) Advance(number uint32) {
	number &= r.space.Mask()
	if !r.begun {
		r.begun, r.newest, r.span = true, number, 1
		r.grow()
		return
	}
	if d := r.space.Distance(number, r.newest); d > 0 {
		r.advance(number, d)
	}
}

// advance moves the window forward by d and clears the slots that it newly
// covers.
func (r *Ring[T]) advance(number uint32, d int) {
	r.span = min(r.span+d, r.size)
	r.grow()
	if d >= len(r.slots) {
		for i := range r.slots {
			r.clear(&r.slots[i])
		}
	} else {
		for n := r.space.Add(r.newest, 1); ; n = r.space.Add(n, 1) {
			r.clear(r.slot(n))
			if n == number {
				break
			}
		}
	}
	r.newest = number
	// The number of slots is a power of two: it may exceed the size of the
	// window.
	if len(r.slots) > r.size {
		for n := min(len(r.slots), r.size+d) - 1; n >= r.size; n-- {
			old := r.space.Add(number, -n)
			if s := r.slot(old); s.live && s.number == old {
				r.clear(s)
			}
		}
	}
}

func (r *Ring[T]) clear(s *slot[T]) {
	if s.live && r.Forget != nil {
		r.Forget(&s.value)
	}
	*s = slot[T]{}
}

// slot returns the slot of a number. The number of slots divides the space, so
// consecutive numbers have adjacent slots even at the wrap.
func (r *Ring[T]) slot(number uint32) *slot[T] { return &r.slots[int(number)&(len(r.slots)-1)] }

func (r *Ring[T]) grow() {
	if len(r.slots) >= r.span {
		return
	}
	limit := 1 << bits.Len(uint(r.size-1))
	n := min(max(firstSlots, 1<<bits.Len(uint(r.span-1))), limit)
	old := r.slots
	r.slots = make([]slot[T], n)
	for i := range old {
		if old[i].live {
			*r.slot(old[i].number) = old[i]
		}
	}
}
