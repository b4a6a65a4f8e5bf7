package machine

import (
	"math"
	"sort"
	"time"
)

// Frames are the instants at which a game reads its socket, in order. They are
// stored as stretches of even spacing: 48 bytes each. An hour without traffic
// therefore costs as much as a second.
type Frames struct {
	stretches []stretch
	count     int
}

// stretch holds some of the frames: number k is at from + span*(skip+k)/parts.
type stretch struct {
	first       int // how many frames come before it
	count       int
	from        Instant
	skip        int64
	span, parts int64
}

func (s *stretch) at(k int) Instant { return s.from + Instant(s.span*(s.skip+int64(k))/s.parts) }

// Len returns the number of frames. It returns 0 for a nil list.
func (f *Frames) Len() int {
	if f == nil {
		return 0
	}
	return f.count
}

// At returns frame i, counted from 0.
func (f *Frames) At(i int) Instant {
	n := sort.Search(len(f.stretches), func(n int) bool { return f.stretches[n].first > i }) - 1
	s := &f.stretches[n]
	return s.at(i - s.first)
}

// Search returns the index of the first frame at or after an instant, or Len
// when there is none. Its time grows with the logarithm of the stretches.
func (f *Frames) Search(at Instant) int {
	if f == nil {
		return 0
	}
	n := sort.Search(len(f.stretches), func(n int) bool { return f.stretches[n].at(0) >= at })
	if n == 0 {
		return 0
	}
	// The last stretch that begins before the instant may end after it.
	s := &f.stretches[n-1]
	return s.first + sort.Search(s.count, func(k int) bool { return s.at(k) >= at })
}

// Add appends one frame. The frame must not be before the last one.
func (f *Frames) Add(at Instant) { f.add(stretch{count: 1, from: at, parts: 1}) }

// AddBetween appends the frames that divide the time between two instants into
// the given number of equal parts. It leaves out the two instants themselves.
func (f *Frames) AddBetween(from, to Instant, parts int) {
	if parts < 2 {
		return
	}
	s := stretch{count: parts - 1, from: from, skip: 1, span: int64(to - from), parts: int64(parts)}
	if s.span > math.MaxInt64/s.parts { // method at multiplies them
		s.span, s.parts = s.span/s.parts, 1
	}
	f.add(s)
}

// Extend appends the frames of another list.
func (f *Frames) Extend(other *Frames) {
	if other == nil {
		return
	}
	for _, s := range other.stretches {
		f.add(s)
	}
}

func (f *Frames) add(s stretch) {
	if s.count <= 0 {
		return
	}
	s.first = f.count
	f.stretches = append(f.stretches, s)
	f.count += s.count
}

// EvenFrames returns frames at a rate per second, from one instant to another.
func EvenFrames(from, to Instant, rate float64) *Frames {
	f := &Frames{}
	if to >= from {
		step := max(int64(float64(time.Second)/rate), 1)
		f.add(stretch{count: int(int64(to-from)/step) + 1, from: from, span: step, parts: 1})
	}
	return f
}

// OtherFrames returns a side's frames at a rate that the capture does not have.
// At that rate the offset between the two games' frames is unknown. The frames
// of side B therefore slip by one whole frame over the run: all offsets count
// alike.
func OtherFrames(from, to Instant, rate float64, side Side) *Frames {
	n := int64(rate * to.Sub(from).Seconds())
	if n < 1 || side == A {
		return EvenFrames(from, to, rate)
	}
	return EvenFrames(from, to, rate*float64(n)/float64(n+1))
}
