package gaffer

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// The library's own estimates (reliable 1.4.0; facts in its source): a sample is
// its frame time at the reading of the first ack of a packet, less its frame
// time at the sending; the first positive one is taken as it is, of each later
// one a part.
const (
	rttSmoothing = 0.0025
	rttSame      = 10 // ns
)

// estimate rebuilds one side's view of the network.
//
// Near: frames show as the side's own sends, so samples are plain differences.
//
// Far: its frames are seen through the network. It sends one packet a frame, so
// its sequence numbers count its frames: a sample is a number of frames, and the
// smoothed figure is kept in frames, to be multiplied by the frame time that the
// whole capture shows.
type estimate struct {
	rtt       float64 // smoothed, in ns (near) or frames (far)
	variation float64 // smoothed deviation of samples from it, in ns; near only
	samples   uint64

	clock frameClock
	// transit is the usual time from a packet of the peer passing the tap to the
	// far frame that reads it, as seen at the tap: a median over the cases in
	// which no header is missing. Nanoseconds.
	transit  float64
	transits uint64
}

// sample takes one RTT sample; same is the difference that the library neglects.
func (e *estimate) sample(s, same float64) {
	e.samples++
	if e.samples > 1 {
		e.variation += (math.Abs(s-e.rtt) - e.variation) / 16
	}
	switch {
	case e.rtt == 0 && s > 0, math.Abs(e.rtt-s) < same:
		e.rtt = s
	default:
		e.rtt += (s - e.rtt) * rttSmoothing
	}
}

// readFrame tells in which of a far side's frames a packet of its peer was
// read, which passed the tap at: after the frame that sent `before`, whose
// header did not name it, and no later than the one that sent `first`, whose
// header did.
func (e *estimate) readFrame(before, first int64, at machine.Instant) int64 {
	tick := e.clock.tick()
	if tick <= 0 {
		return first
	}
	if first == before+1 {
		wait := e.clock.at(first) - float64(at)
		step := tick / 16
		switch e.transits++; {
		case e.transits == 1:
			e.transit = wait
		case wait > e.transit:
			e.transit += min(step, wait-e.transit)
		default:
			e.transit -= min(step, e.transit-wait)
		}
		return first
	}
	if e.transits == 0 || first-before > 1<<15 {
		return first
	}
	due := float64(at) + e.transit - tick/2
	frame := before + 1
	if late := due - e.clock.at(frame); late > 0 {
		frame += int64(math.Ceil(late / tick))
	}
	return min(frame, first)
}

// frameClock fits a side's frame time to the times at which its packets pass the
// tap, one packet a frame.
type frameClock struct {
	n                int
	x0               int64
	y0               machine.Instant
	sx, sy, sxx, sxy float64
	phase            float64 // of y - tick*x, smoothed
}

// sent takes it that the packet numbered x passed the tap at y.
func (c *frameClock) sent(x int64, y machine.Instant) {
	if c.n == 0 {
		c.x0, c.y0 = x, y
	}
	c.n++
	dx, dy := float64(x-c.x0), float64(y-c.y0)
	c.sx += dx
	c.sy += dy
	c.sxx += dx * dx
	c.sxy += dx * dy
}

// tick gives the frame time in nanoseconds, 0 while unknown.
func (c *frameClock) tick() float64 {
	n := float64(c.n)
	d := n*c.sxx - c.sx*c.sx
	if c.n < 2 || d <= 0 {
		return 0
	}
	return max(0, (n*c.sxy-c.sx*c.sy)/d)
}

// at gives when the frame that sends the packet numbered x shows at the tap.
func (c *frameClock) at(x int64) float64 {
	n := float64(c.n)
	if c.n == 0 {
		return 0
	}
	k := c.tick()
	return float64(c.y0) + (c.sy-k*c.sx)/n + k*float64(x-c.x0)
}

// frameAfter gives the first frame at or after an instant, counted on from the
// side's last sending.
func (e *estimate) frameAfter(last, at machine.Instant) machine.Instant {
	tick := machine.Instant(e.clock.tick())
	if tick <= 0 || at <= last {
		return at
	}
	return last + (at-last+tick-1)/tick*tick
}

// rtt gives the side's smoothed RTT as its library has it.
func (t *Tracker) rtt(x machine.Side) (time.Duration, machine.Certainty) {
	s := &t.sides[x]
	if s.estimate.samples == 0 {
		return -1, machine.Unknown
	}
	if s.near {
		sure := machine.Certain
		if !s.fresh {
			sure = machine.Likely // what it had smoothed before the capture is unknown
		}
		return time.Duration(s.estimate.rtt), t.grade(sure)
	}
	tick := s.estimate.clock.tick()
	if tick <= 0 {
		return -1, machine.Unknown
	}
	return time.Duration(s.estimate.rtt * tick), machine.Likely
}

// loss gives the side's packet loss as its library has it, smoothing settled: of
// the older half of its sent buffer, the share that was not acked.
func (t *Tracker) loss(x machine.Side) (float64, machine.Certainty) {
	s := &t.sides[x]
	if !s.met {
		return -1, machine.Unknown
	}
	size := s.rules.Sent
	sent, missing := 0, 0
	for n := size; n > size/2; n-- {
		q := (s.sentNext - uint32(n)) & s.rules.mask()
		if s.unwrap(q) < s.first64 {
			continue
		}
		switch e := s.Sent(q); {
		case e != nil:
			sent++
			if e.Flags&SentAcked == 0 {
				missing++
			}
		case !s.near:
			sent++ // lost before the tap
			missing++
		}
	}
	sure := machine.Likely
	if s.near && s.fresh {
		sure = t.grade(machine.Certain)
	}
	if sent == 0 {
		return 0, sure
	}
	return float64(missing) / float64(sent), sure
}
