// Package clock infers how the clock of a Riptide client counts, from the RTTs that
// the client tells in its heartbeats.
//
// The library reads its clock once a tick of the application. So the RTT that it
// measures is the time that the answer took, rounded up to ticks.
//
// Example: an answer takes 33 ms as it passes a tap at the client, whose application
// ticks every 16.75 ms. The client measures two ticks, and tells 34 ms.
package clock

import "time"

// Clock holds the newest RTTs that a client told, each with the time that the same
// answer took at the tap. The zero value holds none.
//
//	0 ≤ count; the samples that count are the newest min(count, keeps)
type Clock struct {
	samples [keeps]sample // by count, round and round
	count   int
}

// sample is an RTT that the client has told, and what it was at the tap.
type sample struct {
	atTap    time.Duration
	reported time.Duration
}

const (
	// keeps is how many RTTs are kept: those of the last 16 s.
	keeps = 16
	// least is how many must be known before they show a tick.
	least = 4

	tickLeast, tickMost, tickStep = 4 * time.Millisecond, 40 * time.Millisecond, time.Millisecond / 4
	// UsualSlack is half a tick of an application that runs at 100 a second: what an
	// RTT is longer by than at the tap, where no sample tells.
	UsualSlack = 5 * time.Millisecond
)

// Add takes an RTT that the client told, in ms, and how long that answer took as it
// passed the tap.
func (c *Clock) Add(reported int, atTap time.Duration) {
	c.samples[c.count%keeps] = sample{atTap, time.Duration(reported) * time.Millisecond}
	c.count++
}

func (c *Clock) known() []sample { return c.samples[:min(c.count, keeps)] }

// Tick returns the time between two ticks of the client's application, which its clock
// counts in: that by which most samples are their times at the tap rounded up, the
// longest of several; 0 where it fits too few.
func (c *Clock) Tick() (best time.Duration) {
	known := c.known()
	if len(known) < least {
		return 0
	}
	most := len(known)*4/5 - 1
	for tick := tickMost; tick >= tickLeast; tick -= tickStep {
		fits := 0
		for _, s := range known {
			if off := s.reported - ceil(s.atTap, tick); off.Abs() <= 3*time.Millisecond/2 {
				fits++
			}
		}
		if fits > most {
			best, most = tick, fits
		}
	}
	return best
}

func ceil(d, tick time.Duration) time.Duration { return d + tick - 1 - (d+tick-1)%tick }

// RTT gives, in ms, the RTT that the client's clock measures for an answer that took a
// time as it passed the tap.
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
