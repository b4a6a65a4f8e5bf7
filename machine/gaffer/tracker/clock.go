package tracker

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A side has halted if a frame comes later than due by more than both haltLeast and
// haltSpreads. A queue on the way that fills and empties looks the same at first. But
// then packets are early soon after.
const (
	// haltLeast is how much later than due a frame must come to show a halt.
	// Source: measured, TestMarginsGaffer
	haltLeast = 20 * time.Millisecond
	// haltSpreads is how many times the usual deviation of its packets a side must be late
	// to have halted.
	// Source: measured, TestMarginsGaffer
	haltSpreads float64 = 6
	// haltRecent is for how many packets after a halt an early packet can show that it was
	// none.
	// Source: measured, TestMarginsGaffer
	haltRecent int64 = 64
)

// frameClock estimates the frames of a side from the times at which its packets pass
// the tap. A frame sends one packet: packet x passes at phase + tick*x.
//
// tick is the slope over all packets. During a halt of the side, time goes on and its
// numbers do not. So the slope is pooled over the stretches between halts. phase
// follows the packets through the jitter of the network.
type frameClock struct {
	n    uint64
	tick float64 // nanoseconds; 0 while unknown

	// Sums over the current stretch. x and y count from its first packet.
	x0               int64
	y0               machine.Instant
	m                float64
	sx, sy, sxx, sxy float64

	last  int64   // newest packet
	phase float64 // when that passed, smoothed; nanoseconds from base
	base  machine.Instant

	spread float64 // mean deviation of packets from their frames
	haltAt int64   // the first packet after the last halt
	halted float64 // how long that halt was, beyond the frame time

	pooledXX float64 // sums over the earlier stretches, about their means
	pooledXY float64
}

// sent records that packet x passed the tap at y.
func (c *frameClock) sent(x int64, y machine.Instant) {
	c.n++
	if c.n == 1 {
		c.begin(x, y)
		c.last, c.base = x, y
		return
	}
	if ahead := x - c.last; ahead > 0 {
		ahead := float64(ahead)
		due := c.phase + c.tick*ahead
		off := float64(y-c.base) - due
		halted := c.n > 16 && off > float64(haltLeast) && off > haltSpreads*c.spread && off > 4*c.tick && ahead*c.tick < off
		undone := c.halted > 0 && x-c.haltAt < haltRecent && off < -c.halted/2
		switch {
		case halted:
			c.close()
			c.begin(x, y)
			c.haltAt, c.halted = x, off
			c.phase = due + off
		case undone:
			c.begin(x, y)
			c.phase, c.halted = due-c.halted, 0
		default:
			c.spread += (math.Abs(off) - c.spread) / 16
			if c.n > 32 {
				off *= 1. / 32
			} else {
				off /= float64(c.n)
			}
			c.phase = due + off
		}
		c.last = x
	}
	dx, dy := float64(x-c.x0), float64(y-c.y0)
	c.m++
	c.sx += dx
	c.sy += dy
	c.sxx += dx * dx
	c.sxy += dx * dy
	if c.n < 16 || c.n&15 == 0 {
		xx, xy := c.sums()
		if xx += c.pooledXX; xx > 0 {
			c.tick = max(0, (xy+c.pooledXY)/xx)
		}
	}
}

// begin starts a stretch at packet x.
func (c *frameClock) begin(x int64, y machine.Instant) {
	c.x0, c.y0 = x, y
	c.m, c.sx, c.sy, c.sxx, c.sxy = 1, 0, 0, 0, 0
}

// sums returns the current stretch's sums of squares and products about the means.
func (c *frameClock) sums() (xx, xy float64) {
	return c.sxx - c.sx*c.sx/c.m, c.sxy - c.sx*c.sy/c.m
}

// close adds the current stretch to the pooled sums.
func (c *frameClock) close() {
	xx, xy := c.sums()
	c.pooledXX += xx
	c.pooledXY += xy
}

// at returns when the frame of packet x passes the tap, in nanoseconds from the clock's
// base.
func (c *frameClock) at(x int64) float64 { return c.phase + c.tick*float64(x-c.last) }

// since returns an instant in nanoseconds from the clock's base.
func (c *frameClock) since(t machine.Instant) float64 { return float64(t - c.base) }

// halt returns how long the side halted between packets a and b, in frames.
func (c *frameClock) halt(a, b int64) float64 {
	if a < c.haltAt && c.haltAt <= b && c.tick > 0 {
		return c.halted / c.tick
	}
	return 0
}

// after returns the first frame at or after t. The last packet was sent at last, and
// frames are counted from there.
func (c *frameClock) after(last, t machine.Instant) machine.Instant {
	tick := machine.Instant(c.tick)
	if tick <= 0 || t <= last {
		return t
	}
	return last + (t-last+tick-1)/tick*tick
}
