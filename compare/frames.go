package compare

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// steps are the times between the packets of a side. They show whether it sends in frames,
// and whether these stay in step at the tap.
type steps struct {
	last   machine.Instant
	n      int
	counts [stepsMost]uint32
}

// Source: bound, the times between packets that show frames: 200 of half a millisecond
const (
	stepsMost = 200
	stepWidth = 500 * time.Microsecond
)

func (s *steps) add(at machine.Instant) {
	d := at.Sub(s.last)
	s.last = at
	// Packets of one frame follow each other at once.
	if i := int(min(d, time.Second) / stepWidth); d >= 2*time.Millisecond && i < stepsMost {
		s.counts[i]++
		s.n++
	}
}

// frameOf returns the frame time of one end in seconds, from the steps of its packets in
// several flows. It also returns how regular the steps are: 1 if all are multiples of it.
func frameOf(list []*steps) (frame, regular float64) {
	shortest, kept := time.Second, list[:0:0]
	for _, s := range list {
		if s != nil && s.n >= stepsFew {
			kept = append(kept, s)
			shortest = min(shortest, s.tenth())
		}
	}
	for period := 0.004; period <= 1.1*shortest.Seconds()+0.001; period += 0.0001 {
		if x := regularity(kept, period); x > regular {
			frame, regular = period, x
		}
	}
	return frame, regular
}

// regularity returns the mean of regular over several flows.
func regularity(list []*steps, period float64) (sum float64) {
	n := 0.0
	for _, s := range list {
		if s != nil && s.n >= stepsFew {
			sum += s.regular(period)
			n++
		}
	}
	return sum / max(1, n)
}

// How much runs differ by their frames.
// Source: definition, as of circular statistics: the squared length of the mean phase is the
// regularity of steps. The mean wait of a packet for a frame varies with that length
const (
	sharp        = 0.5      // the end sends in frames, and the path to the tap keeps them
	usualFrame   = 1.0 / 60 // seconds; where no end is sharp
	usualInStep  = 0.3
	leastInStep  = 0.3
	inStepFactor = 2
)

// fall returns how much times of two runs can differ by how the frames of both ends fall on each
// other. It also returns which share of a frame that is. Jitter of the path makes it small: then
// packets of one run fall on all places of a frame.
func fall(ends [2][]*steps) (seconds, share float64) {
	frames, regular := [2]float64{}, [2]float64{}
	for end, list := range ends {
		frames[end], regular[end] = frameOf(list)
	}
	a, b := regular[0] >= sharp, regular[1] >= sharp
	switch {
	case a && b:
		share = math.Sqrt(min(regular[0], regular[1]))
	case a:
		frames[1], share = 0, math.Sqrt(max(0, regularity(ends[1], frames[0])))
	case b:
		frames[0], share = 0, math.Sqrt(max(0, regularity(ends[0], frames[1])))
	default:
		frames, share = [2]float64{usualFrame}, usualInStep
	}
	share = min(1, inStepFactor*max(share, leastInStep))
	return max(frames[0], frames[1]) * share, share
}

// stepsFew is how many steps show frames.
// Source: definition, the least number of steps between packets that show frames
const stepsFew = 50

// tenth returns the time above which nine of ten steps are.
func (s *steps) tenth() time.Duration {
	sum := 0
	for i, n := range s.counts {
		if sum += int(n); sum*10 >= s.n {
			return time.Duration(i+1) * stepWidth
		}
	}
	return time.Second
}

// regular returns how much the steps are multiples of a period, in seconds. It is 1 where all
// are, and about 0 where they have nothing to do with it.
func (s *steps) regular(period float64) float64 {
	sum := 0.0
	for i, n := range s.counts {
		if n > 0 {
			at := (time.Duration(i)*stepWidth + stepWidth/2).Seconds()
			sum += float64(n) * math.Cos(2*math.Pi*at/period)
		}
	}
	return sum / float64(s.n)
}
