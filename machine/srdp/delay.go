package srdp

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// DelayOptions sets how an endpoint chooses the time between copies. It applies
// to packets that were submitted with a timeout of 0.
type DelayOptions struct {
	Start time.Duration // before the first observation; 0 means 500 ms
	Least time.Duration // the shortest timeout; 0 means 20 ms
	Most  time.Duration // the longest timeout; 0 means 10 s
}

// WithDefaults returns the options with the default in place of each zero.
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

// Delay is what an endpoint has observed of one address. It keeps the longest
// time between a packet and its acknowledgement, as the document's section on
// optimisation asks.
//
// When a packet had more than one copy, the acknowledgement may answer any of
// them. It then shows no delay (Karn's rule). A path that became slower than
// the timeout would therefore never be measured again. But there, each copy
// causes an acknowledgement, and all but the first find the packet gone from
// the queue (see Departed). Such an acknowledgement doubles the timeout of
// later packets: at most once per timeout, and until one of them is measured.
// Loss alone causes none of these, so loss does not slow the endpoint down.
type Delay struct {
	Longest   time.Duration   // 0 before the first observation
	doubledAt machine.Instant // the last time, while doubled is not 0
	doubled   uint8
}

// Timeout returns the time between copies: one and a half times the longest
// delay. It avoids a copy while the acknowledgement may still be coming.
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

// AckedAgain takes a further acknowledgement of a packet that left the queue.
func (d *Delay) AckedAgain(now machine.Instant, o *DelayOptions) {
	t := d.Timeout(o)
	if t < o.Most && (d.doubled == 0 || now.Sub(d.doubledAt) >= t) {
		d.doubled, d.doubledAt = d.doubled+1, now
	}
}

// departures is how many packets are remembered after they are acknowledged.
// Source: bound, the packets that are remembered after they are acknowledged
const departures = 256
