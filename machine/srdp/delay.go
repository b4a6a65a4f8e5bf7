package srdp

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// DelayOptions say how an endpoint chooses the time between copies of packets
// that were submitted with a timeout of 0.
type DelayOptions struct {
	Start time.Duration // before the first observation; 0 is 500 ms
	Least time.Duration // never less; 0 is 20 ms
	Most  time.Duration // never more; 0 is 10 s
}

func (o DelayOptions) withDefaults() DelayOptions {
	if o.Start <= 0 {
		o.Start = 500 * time.Millisecond
	}
	if o.Least <= 0 {
		o.Least = 20 * time.Millisecond
	}
	if o.Most <= 0 {
		o.Most = 10 * time.Second
	}
	return o
}

// delay is what an endpoint has observed of one address: by the document's
// section on optimisation, the longest time between a packet and its
// acknowledgement. Where there was more than one copy, the acknowledgement may
// answer any of them, and tells nothing (Karn's rule). But then a path that has
// become slower than the timeout would never be measured again: so each such
// acknowledgement, and each packet that was given up, doubles the timeout of the
// packets to come, until one of them is measured.
type delay struct {
	longest time.Duration // 0 before the first observation
	doubled uint8
}

// timeout gives the time between copies: one and a half times the longest delay,
// so that a packet is not sent again while its acknowledgement may be coming.
func (d *delay) timeout(o *DelayOptions) time.Duration {
	t := o.Start
	if d.longest > 0 {
		t = d.longest + d.longest/2
	}
	return min(max(t<<d.doubled, o.Least), o.Most)
}

// acked takes the acknowledgement of a packet, read at now.
func (d *delay) acked(s *Sent, now machine.Instant, o *DelayOptions) {
	sample := s.Sample(now)
	if sample.Ambiguous {
		d.unclear(s, o)
		return
	}
	d.longest, d.doubled = max(d.longest, sample.FromLast, 1), 0
}

// unclear takes the end of a packet that tells nothing. Of the many that may
// have been sent with one timeout, only the first doubles it.
func (d *delay) unclear(s *Sent, o *DelayOptions) {
	if now := d.timeout(o); s.Adapts && s.Timeout >= now && now < o.Most {
		d.doubled++
	}
}
