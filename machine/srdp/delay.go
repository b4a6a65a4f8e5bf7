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

// WithDefaults returns the options with the usual value where one is zero.
func (o DelayOptions) WithDefaults() DelayOptions {
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

// Delay is what an endpoint has observed of one address: by the document's
// section on optimisation, the longest time between a packet and its
// acknowledgement. Where there was more than one copy, the acknowledgement may
// answer any of them, and tells nothing (Karn's rule). A path that has become
// slower than the timeout would then never be measured again; but there, each
// copy brings an acknowledgement of its own, and all but the first find the
// packet gone from the queue (see departed). Such a one doubles the timeout of
// the packets to come, once in the time of a timeout, until one of them is
// measured. Loss alone brings none, and so slows nothing down.
type Delay struct {
	Longest   time.Duration   // 0 before the first observation
	doubledAt machine.Instant // the last time, while doubled is not 0
	doubled   uint8
}

// Timeout returns the time between copies: one and a half times the longest delay,
// so that a packet is not sent again while its acknowledgement may be coming.
func (d *Delay) Timeout(o *DelayOptions) time.Duration {
	t := o.Start
	if d.Longest > 0 {
		t = d.Longest + d.Longest/2
	}
	return min(max(t<<d.doubled, o.Least), o.Most)
}

// Acked takes the acknowledgement of a packet, read at now.
func (d *Delay) Acked(s *Sent, now machine.Instant) {
	if sample := s.Sample(now); !sample.Ambiguous {
		d.Longest, d.doubled = max(d.Longest, sample.FromLast, 1), 0
	}
}

// AckedAgain takes a further acknowledgement of a packet.
func (d *Delay) AckedAgain(now machine.Instant, o *DelayOptions) {
	t := d.Timeout(o)
	if t < o.Most && (d.doubled == 0 || now.Sub(d.doubledAt) >= t) {
		d.doubled, d.doubledAt = d.doubled+1, now
	}
}

const departures = 256
