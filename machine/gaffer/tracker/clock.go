package tracker

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A side has halted where a frame comes later than due by at least haltLeast,
// and by haltSpreads times of what its packets usually stray. (A queue on the way
// that fills and empties looks the same at first: then packets are early soon
// after.)
const (
	haltLeast   = 20 * time.Millisecond
	haltSpreads = 6
	haltRecent  = 64 // packets
)

// frameClock fits a side's frames to the times at which its packets pass the
// tap, one packet a frame: packet x shows at phase + tick*x.
//
// tick is the slope of all packets, pooled over the stretches between halts of
// the side, across which its numbers stand still and the time does not. phase
// follows the packets through the jitter of the network.
type frameClock struct {
	n    uint64
	tick float64 // nanoseconds; 0 while unknown

	// The present stretch: sums of x and y from its first packet on.
	x0               int64
	y0               machine.Instant
	m                float64
	sx, sy, sxx, sxy float64

	last  int64   // newest packet
	phase float64 // when that shows, smoothed; nanoseconds from base
	base  machine.Instant

	spread float64 // of packets about their frames: mean deviation
	haltAt int64   // the first packet after the last halt
	halted float64 // how long that was, beyond the frame's time

	pooledXX float64 // sums of the stretches before, about their means
	pooledXY float64
}

// sent takes it that packet x passed the tap at y.
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

// sums returns the present stretch's sums of squares and products about the means.
func (c *frameClock) sums() (xx, xy float64) {
	return c.sxx - c.sx*c.sx/c.m, c.sxy - c.sx*c.sy/c.m
}

// close pools the present stretch.
func (c *frameClock) close() {
	xx, xy := c.sums()
	c.pooledXX += xx
	c.pooledXY += xy
}

// at returns when the frame of packet x shows at the tap, in nanoseconds from the
// clock's base.
func (c *frameClock) at(x int64) float64 { return c.phase + c.tick*float64(x-c.last) }

// since returns an instant in nanoseconds from the clock's base.
func (c *frameClock) since(t machine.Instant) float64 { return float64(t - c.base) }

// halt gives, in frames, how long the side halted between packets a and b.
func (c *frameClock) halt(a, b int64) float64 {
	if a < c.haltAt && c.haltAt <= b && c.tick > 0 {
		return c.halted / c.tick
	}
	return 0
}

// after returns the first frame at or after an instant, counted on from the last
// packet, which was sent at last.
func (c *frameClock) after(last, t machine.Instant) machine.Instant {
	tick := machine.Instant(c.tick)
	if tick <= 0 || t <= last {
		return t
	}
	return last + (t-last+tick-1)/tick*tick
}
