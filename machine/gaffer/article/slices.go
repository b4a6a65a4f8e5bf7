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

// less returns the slices that are in s and not in o.
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

// first returns the lowest slice in s. It returns -1 if s is empty.
func (s *sliceSet) first() int {
	for i, w := range s {
		if w != 0 {
			return 64*i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// draw formats an ack of count slices, slice 0 first.
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

// sliceRound is the slices of the block that is being sent. The unacked ones are sent
// in rounds.
type sliceRound struct {
	count       int // 0: no block is being sent
	acked, sent sliceSet
	at          []machine.Instant // of the latest send of each
	cursor      int               // the slice at which the round continues
}

// begin starts a block of count slices.
func (r *sliceRound) begin(count int) {
	if cap(r.at) < count {
		r.at = make([]machine.Instant, count)
	}
	*r = sliceRound{count: count, at: r.at[:count]}
}

// next returns the first unacked slice of the round for which waits is false. It
// returns -1 if there is none.
func (r *sliceRound) next(waits func(slice int) bool) int {
	for i := range r.count {
		if k := (r.cursor + i) % r.count; !r.acked.has(k) && !waits(k) {
			return k
		}
	}
	return -1
}

// last returns the last unacked slice of the block for which waits is false. It returns
// -1 if there is none. Only a fault sends slices in this order.
func (r *sliceRound) last(waits func(slice int) bool) int {
	for k := r.count - 1; k >= 0; k-- {
		if !r.acked.has(k) && !waits(k) {
			return k
		}
	}
	return -1
}

// sends records that a slice was sent. The series' sample then continues one slice
// after the slice at which it began, not after the slice that it sent. So it may send
// one slice twice in a row.
func (r *sliceRound) sends(k int, now machine.Instant, asSample bool) {
	r.sent.add(k)
	r.at[k] = now
	if asSample {
		k = r.cursor
	}
	r.cursor = (k + 1) % r.count
}

// learns applies the bits of an ack of this block. It reports whether all slices are
// acked.
func (r *sliceRound) learns(came *sliceSet) bool {
	r.acked = r.acked.with(came)
	return r.acked.size() >= r.count
}

// sliceIntake is the block that is being received, without the contents of its slices.
type sliceIntake struct {
	chunk   int64 // id of the block that is expected, unwrapped
	count   int   // of its slices; 0 if none has arrived
	have    sliceSet
	last    int  // slices of the previous block, for its acks
	current bool // an ack of the present block is due
	before  bool // an ack of the previous block is due
}

// arrive enters a slice. It is fresh if it belongs to the expected block and had not
// arrived yet. whole reports whether it was the last missing one. A slice of the
// previous block requests that block's ack again.
func (r *sliceIntake) arrive(chunk uint16, id, count int) (fresh, whole bool) {
	if chunk == uint16(r.chunk-1) && r.last == count {
		r.before = true
		return false, false
	}
	if chunk != uint16(r.chunk) || r.count > 0 && r.count != count {
		return false, false
	}
	r.count = count
	// The sender has moved on, so it knows about the previous block.
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

// sliceClaim is the content of an ack.
type sliceClaim struct {
	chunk uint16
	count int
	came  sliceSet
}

// claim returns the ack that is due. It returns false if none is.
func (r *sliceIntake) claim() (c sliceClaim, ok bool) {
	switch {
	case r.before:
		return sliceClaim{uint16(r.chunk - 1), r.last, allSlices(r.last)}, true
	case r.current:
		return sliceClaim{uint16(r.chunk), r.count, r.have}, true
	}
	return c, false
}

// claimed records that the ack that was due is sent.
func (r *sliceIntake) claimed() {
	if r.before {
		r.before = false
	} else {
		r.current = false
	}
}

// allSlices returns the set of the first n slices.
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
