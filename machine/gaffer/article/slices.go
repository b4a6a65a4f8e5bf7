package article

import (
	"math/bits"
	"strings"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sliceSet is a set of slices of one block.
type sliceSet [wire.MaxSlices / 64]uint64

func (s *sliceSet) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }
func (s *sliceSet) add(i int)      { s[i/64] |= 1 << (i % 64) }

func (s *sliceSet) size() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// less returns what is in s and not in o.
func (s sliceSet) less(o *sliceSet) sliceSet {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

func (s sliceSet) with(o *sliceSet) sliceSet {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// first returns the lowest slice in s; -1 for none.
func (s *sliceSet) first() int {
	for i, w := range s {
		if w != 0 {
			return 64*i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// draw writes what an ack of count slices says, slice 0 first.
func (s *sliceSet) draw(count int) string {
	var b strings.Builder
	for i := range count {
		if s.has(i) {
			b.WriteRune(machine.CellReceived.Rune())
		} else {
			b.WriteRune(machine.CellEmpty.Rune())
		}
	}
	return b.String()
}

// sliceRound is the slices of the block that is being sent: they go round and
// round, but for those that are acked.
type sliceRound struct {
	count       int // 0: no block is under way
	acked, sent sliceSet
	at          []machine.Instant // of the latest send of each
	cursor      int               // where the round goes on
}

// begin takes a block of so many slices under way.
func (r *sliceRound) begin(count int) {
	if cap(r.at) < count {
		r.at = make([]machine.Instant, count)
	}
	*r = sliceRound{count: count, at: r.at[:count]}
}

// next returns the first slice of the round for which waits is false, of those not
// acked; -1 where there is none.
func (r *sliceRound) next(waits func(slice int) bool) int {
	for i := range r.count {
		if k := (r.cursor + i) % r.count; !r.acked.has(k) && !waits(k) {
			return k
		}
	}
	return -1
}

// sends takes it that a slice was sent. The series' sample then goes on one slice
// behind where it began, not behind the slice that it sent, so that one may go
// twice in a row.
func (r *sliceRound) sends(k int, now machine.Instant, asSample bool) {
	r.sent.add(k)
	r.at[k] = now
	if asSample {
		k = r.cursor
	}
	r.cursor = (k + 1) % r.count
}

// learns takes the bits of an ack of this block, and reports whether all is acked.
func (r *sliceRound) learns(came *sliceSet) bool {
	r.acked = r.acked.with(came)
	return r.acked.size() >= r.count
}

// sliceIntake is the block that is being received, but for what its slices hold.
type sliceIntake struct {
	chunk   int64 // id of the block that is expected, unwrapped
	count   int   // of its slices; 0: none has come
	have    sliceSet
	last    int  // slices of the block before, for the acks of it
	current bool // an ack of the present block is due
	before  bool // an ack of the one before is due
}

// arrive takes a slice. It is fresh where it is of the expected block and had not
// come; whole tells that it was the last one missing. One of the block before asks
// for its ack again.
func (r *sliceIntake) arrive(chunk uint16, id, count int) (fresh, whole bool) {
	if chunk == uint16(r.chunk-1) && r.last == count {
		r.before = true
		return false, false
	}
	if chunk != uint16(r.chunk) || r.count > 0 && r.count != count {
		return false, false
	}
	r.count = count
	// The sender has moved on: it knows of the block before.
	r.current, r.before = true, false
	if r.have.has(id) {
		return false, false
	}
	r.have.add(id)
	if r.have.size() < count {
		return true, false
	}
	r.last, r.count, r.have = count, 0, sliceSet{}
	r.current, r.before = false, true
	r.chunk++
	return true, true
}

// sliceClaim is what an ack says.
type sliceClaim struct {
	chunk uint16
	count int
	came  sliceSet
}

// claim returns the ack that is due; false for none.
func (r *sliceIntake) claim() (c sliceClaim, ok bool) {
	switch {
	case r.before:
		return sliceClaim{uint16(r.chunk - 1), r.last, allSlices(r.last)}, true
	case r.current:
		return sliceClaim{uint16(r.chunk), r.count, r.have}, true
	}
	return c, false
}

// claimed takes it that the ack that was due is sent.
func (r *sliceIntake) claimed() {
	if r.before {
		r.before = false
	} else {
		r.current = false
	}
}

// allSlices returns the set of the first n.
func allSlices(n int) (s sliceSet) {
	for i := range s {
		switch left := n - 64*i; {
		case left >= 64:
			s[i] = ^uint64(0)
		case left > 0:
			s[i] = 1<<left - 1
		}
	}
	return s
}
