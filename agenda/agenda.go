// Package agenda holds values in the order of the times at which they are due:
// timers, datagrams in flight, the heads of files to merge.
//
//	var a agenda.Agenda[int64, string]
//	a.Add(30, "resend")
//	a.Add(10, "wake")
//	a.Add(10, "send")
//	a.Take() // "wake", then "send", then "resend"
//
// It imports no other package of ackscope.
package agenda

import (
	"slices"
	"unsafe"
)

// Agenda holds values by the time at which they are due. Values with the same
// time keep the order in which they were added. The zero Agenda is empty and
// ready.
//
// Each value has a handle while it is in the agenda. With it the caller can
// remove or reschedule the value. Add, Take, Remove and Move take time
// proportional to the logarithm of Len. Later values reuse the memory of
// removed ones, so that in steady use the agenda allocates nothing.
//
// Do not copy an Agenda by assignment and use both copies: see Clone.
type Agenda[At ~int64, T any] struct {
	heap   []due[At] // binary: neither child of i, at 2i+1 and 2i+2, comes before i
	values []T       // by handle
	places []int32   // by handle: the index in heap, or ^(the next free handle)
	free   int32     // 1 + the handle that was freed last; 0 if there is none
	count  uint64    // turns given so far
}

// due is an entry of the heap. It is small, so that the heap moves and compares
// little memory, whatever the values are.
type due[At ~int64] struct {
	at     At
	turn   uint64 // breaks ties of at
	handle Handle
}

// Handle names a value while it is in the agenda.
type Handle int32

func (d *due[At]) before(e *due[At]) bool { return d.at < e.at || d.at == e.at && d.turn < e.turn }

// Len returns the number of values.
func (a *Agenda[At, T]) Len() int { return len(a.heap) }

// Add adds a value with the time at which it is due, after those of the same
// time.
func (a *Agenda[At, T]) Add(at At, value T) Handle {
	h, v := a.Enter(at)
	*v = value
	return h
}

// Enter does what Add does, but the caller sets the value in place. The value
// is zero, or one that Remove took out, whose memory the caller can reuse. The
// pointer is valid until the next Add or Enter.
func (a *Agenda[At, T]) Enter(at At) (Handle, *T) {
	var h Handle
	if a.free > 0 {
		h = Handle(a.free - 1)
		a.free = ^a.places[h]
	} else {
		var zero T
		h = Handle(len(a.values))
		a.values, a.places = append(a.values, zero), append(a.places, 0)
	}
	a.count++
	a.heap = append(a.heap, due[At]{})
	a.up(len(a.heap)-1, due[At]{at: at, turn: a.count, handle: h})
	return h, &a.values[h]
}

// Next returns the time of the first value. It returns false when there is
// none.
func (a *Agenda[At, T]) Next() (at At, ok bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

// First returns the value that is due first. It returns nil when there is none.
// The pointer is valid until the next Add or Enter.
func (a *Agenda[At, T]) First() *T {
	if len(a.heap) == 0 {
		return nil
	}
	return &a.values[a.heap[0].handle]
}

// Value returns the value of a handle. It is valid until the next Add or Enter.
func (a *Agenda[At, T]) Value(h Handle) *T { return &a.values[h] }

// At returns the time at which the value of a handle is due.
func (a *Agenda[At, T]) At(h Handle) At { return a.heap[a.places[h]].at }

// Take removes and returns the value that is due first. It panics when there is
// none.
func (a *Agenda[At, T]) Take() T {
	h := a.heap[0].handle
	value := a.values[h]
	a.Remove(h)
	var zero T
	a.values[h] = zero // release what it points to
	return value
}

// Remove removes the value of a handle. The value stays readable until the next
// Add or Enter.
func (a *Agenda[At, T]) Remove(h Handle) {
	i, last := int(a.places[h]), len(a.heap)-1
	moved := a.heap[last]
	a.heap = a.heap[:last]
	if i < last {
		a.settle(i, moved)
	}
	a.places[h], a.free = ^a.free, int32(h)+1
}

// Move changes the time of a handle's value, as if it were removed and added
// again: it comes after the values of the same time.
func (a *Agenda[At, T]) Move(h Handle, at At) {
	a.count++
	a.settle(int(a.places[h]), due[At]{at: at, turn: a.count, handle: h})
}

// Advance changes the time of the value that is due first. The value keeps its
// turn: among values of that time it comes before those that were added after
// it.
func (a *Agenda[At, T]) Advance(at At) {
	d := a.heap[0]
	d.at = at
	a.down(0, d)
}

// InOrder calls do for every value in order, until do returns false. do must
// not change the agenda. InOrder allocates memory in proportion to Len.
func (a *Agenda[At, T]) InOrder(do func(*T) bool) {
	list := slices.Clone(a.heap)
	slices.SortFunc(list, func(x, y due[At]) int {
		if x.before(&y) {
			return -1
		}
		return 1
	})
	for i := range list {
		if !do(&a.values[list[i].handle]) {
			return
		}
	}
}

// Clear removes all values.
func (a *Agenda[At, T]) Clear() {
	clear(a.values)
	a.heap, a.values, a.places, a.free = a.heap[:0], a.values[:0], a.places[:0], 0
}

// Clone returns an independent copy. The copies share what the values point to.
func (a *Agenda[At, T]) Clone() Agenda[At, T] {
	return Agenda[At, T]{slices.Clone(a.heap), slices.Clone(a.values), slices.Clone(a.places), a.free, a.count}
}

// Values returns all values by handle, removed ones included. Use it to copy or
// measure what the values point to.
func (a *Agenda[At, T]) Values() []T { return a.values }

// Size returns the bytes of memory that the agenda uses, without what its
// values point to.
func (a *Agenda[At, T]) Size() int {
	var value T
	return cap(a.heap)*int(unsafe.Sizeof(due[At]{})) + cap(a.values)*int(unsafe.Sizeof(value)) + 4*cap(a.places)
}

// settle moves d from the free place i to where it belongs.
func (a *Agenda[At, T]) settle(i int, d due[At]) {
	if i > 0 && d.before(&a.heap[(i-1)/2]) {
		a.up(i, d)
		return
	}
	a.down(i, d)
}

// up puts d at the free place i, or at a place closer to the front.
func (a *Agenda[At, T]) up(i int, d due[At]) {
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(&a.heap[parent]) {
			break
		}
		a.put(i, a.heap[parent])
		i = parent
	}
	a.put(i, d)
}

// down puts d at the free place i, or at a place closer to the end.
func (a *Agenda[At, T]) down(i int, d due[At]) {
	for {
		child := 2*i + 1
		if child >= len(a.heap) {
			break
		}
		if right := child + 1; right < len(a.heap) && a.heap[right].before(&a.heap[child]) {
			child = right
		}
		if !a.heap[child].before(&d) {
			break
		}
		a.put(i, a.heap[child])
		i = child
	}
	a.put(i, d)
}

func (a *Agenda[At, T]) put(i int, d due[At]) {
	a.heap[i] = d
	a.places[d.handle] = int32(i)
}
