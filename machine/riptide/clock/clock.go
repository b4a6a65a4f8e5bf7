// Package clock infers how the clock of a Riptide client counts, from the RTTs that the client
// reports in its heartbeats.
//
// The library reads its clock once per tick of the application. So the RTT that it measures is the
// time that the answer took, rounded up to ticks.
//
// Example: an answer takes 33 ms at a tap at the client, whose application ticks every 16.75 ms.
// The client measures two ticks, and reports 34 ms.
package clock

import "time"

// Clock holds the newest RTTs that a client reported, each with the time of the same answer at the
// tap. The zero value holds none.
//
//   - 0 ≤ count; the samples that count are the newest min(count, keeps)
//   - fits[k] is how many of these samples fit tick k
//   - tick is what the samples showed when there were searched of them
type Clock struct {
	samples  [keeps]sample // sample n is at n mod keeps
	count    int
	fits     [tickCount]uint8
	tick     time.Duration
	searched int
}

// sample is an RTT that the client has reported, and the time of its answer at the tap.
type sample struct {
	atTap    time.Duration
	reported time.Duration
	fits     [(tickCount + 63) / 64]uint64 // bit k: with tick k, the RTT is the time at the tap rounded up
}

const (
	// keeps is how many RTTs a Clock keeps: those of the last 16 s.
	// Source: bound, the RTTs that are kept
	keeps = 16
	// least is how many RTTs must be known before they show a tick.
	// Source: measured, TestMarginsRiptide
	least = 4

	// tickLeast, tickMost and tickStep are the shortest and the longest tick that is tried, and the
	// step between two tries.
	// Source: bound, the ticks that are tried
	tickLeast, tickMost, tickStep = 4 * time.Millisecond, 40 * time.Millisecond, time.Millisecond / 4
	// tickCount is how many ticks are tried. Tick k lasts tickLeast and k steps.
	// Source: bound, the ticks that are tried
	tickCount = int((tickMost-tickLeast)/tickStep) + 1
	// fitsWithin is how far an RTT may lie from a whole number of ticks.
	// Source: measured, TestMarginsRiptide
	fitsWithin = 1500 * time.Microsecond
	// UsualSlack is half a tick of an application with 100 ticks a second. Without samples, an RTT is
	// assumed to exceed its time at the tap by that much.
	// Source: measured, TestMarginsRiptide
	UsualSlack = 5 * time.Millisecond
)

// Add records an RTT that the client reported, in ms, and the time of that answer at the tap.
func (c *Clock) Add(reported int, atTap time.Duration) {
	s := &c.samples[c.count%keeps]
	s.atTap, s.reported = atTap, time.Duration(reported)*time.Millisecond
	for k := range c.fits {
		word, bit := &s.fits[k/64], uint64(1)<<(k%64)
		off := s.reported - ceil(atTap, tickOf(k))
		switch fits := off.Abs() <= fitsWithin; {
		case fits && *word&bit == 0:
			*word |= bit
			c.fits[k]++
		case !fits && *word&bit != 0: // the sample that had this place fitted it
			*word &^= bit
			c.fits[k]--
		}
	}
	c.count++
}

func (c *Clock) known() []sample { return c.samples[:min(c.count, keeps)] }

// Tick returns the time between two ticks of the client's application, which is the unit of its
// clock. With that tick, most samples are their times at the tap rounded up. Of several ticks that
// fit, Tick returns the longest. It returns 0 where none fits enough samples.
func (c *Clock) Tick() time.Duration {
	if c.searched != c.count {
		c.tick, c.searched = c.search(), c.count
	}
	return c.tick
}

func (c *Clock) search() (best time.Duration) {
	known := min(c.count, keeps)
	if known < least {
		return 0
	}
	most := uint8(known*4/5 - 1)
	for k := tickCount - 1; k >= 0; k-- {
		if c.fits[k] > most {
			best, most = tickOf(k), c.fits[k]
		}
	}
	return best
}

func tickOf(k int) time.Duration { return tickLeast + time.Duration(k)*tickStep }

func ceil(d, tick time.Duration) time.Duration { return d + tick - 1 - (d+tick-1)%tick }

// RTT returns the RTT in ms that the client's clock measures for an answer, from the answer's time
// at the tap.
func (c *Clock) RTT(atTap time.Duration) int {
	if tick := c.Tick(); tick > 0 {
		return int(ceil(atTap, tick) / time.Millisecond)
	}
	slack, known := UsualSlack, c.known()
	if len(known) > 0 {
		slack = 0
		for _, s := range known {
			slack += s.reported - s.atTap
		}
		slack /= time.Duration(len(known))
	}
	return int((atTap + slack).Round(time.Millisecond) / time.Millisecond)
}
