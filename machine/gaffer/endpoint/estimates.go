package endpoint

import (
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// EstimateOptions are the constants of an endpoint's own estimates. The zero value is
// that of reliable 1.4.0.
type EstimateOptions struct {
	RTTSmoothing       float64 // weight of a new sample; 0 means 0.0025
	LossSmoothing      float64 // per update; 0 means 0.1
	BandwidthSmoothing float64 // per update; 0 means 0.1
	Overhead           int     // bytes of IP and UDP headers a packet; 0 means 28
	// LossByAge selects the article's loss: the unacked share of the packets in the sent
	// buffer that are older than the round trip time. Otherwise the loss is the library's:
	// the unacked share of the older half of the sent buffer.
	LossByAge bool
}

func (o *EstimateOptions) defaults() {
	for _, d := range []struct {
		field *float64
		value float64
	}{{&o.RTTSmoothing, 0.0025}, {&o.LossSmoothing, 0.1}, {&o.BandwidthSmoothing, 0.1}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Overhead == 0 {
		o.Overhead = 28
	}
}

// rttHistory is the number of samples for minimum, maximum, average and jitter.
const rttHistory = 512

// Estimates are an endpoint's estimates of its connection, computed as reliable 1.4.0
// does. Round trip times are in milliseconds, loss is a share, bandwidths are in
// kbit/s.
type Estimates struct {
	options EstimateOptions

	rtt     float64 // smoothed
	loss    float64
	history []float64 // samples by sequence mod rttHistory; negative if there is none
	spread  Spread
	arrived []arrival // by sequence mod the received buffer's size

	sent, acked, received float64
}

// arrival is a packet in the received buffer, for the bandwidth.
type arrival struct {
	sequence uint32
	bytes    uint32 // 0 for none: every packet has a header
	at       machine.Instant
}

func newEstimates(o EstimateOptions, r *gaffer.Rules) Estimates {
	o.defaults()
	e := Estimates{options: o, history: make([]float64, rttHistory), arrived: make([]arrival, r.Received)}
	for i := range e.history {
		e.history[i] = -1
	}
	return e
}

func (e *Estimates) clone() Estimates {
	c := *e
	c.history, c.arrived = slices.Clone(e.history), slices.Clone(e.arrived)
	return c
}

// RTT returns the smoothed round trip time. It is 0 before the first sample.
func (e *Estimates) RTT() time.Duration { return time.Duration(e.rtt * float64(time.Millisecond)) }

// Loss returns the smoothed loss, 0 to 1.
func (e *Estimates) Loss() float64 { return e.loss }

// Bandwidth returns the smoothed rates in kbit/s: of what was sent, of the acked part
// of it, and of what was received.
func (e *Estimates) Bandwidth() (sent, acked, received float64) { return e.sent, e.acked, e.received }

// Spread describes the samples of the history, as they were at the latest update. All
// values are in milliseconds, and 0 without samples.
type Spread struct {
	Least, Most, Mean float64
	JitterMean        float64 // mean distance from the least sample
	JitterMost        float64 // largest distance from it
	JitterDeviation   float64 // standard deviation around the mean
}

// Spread returns the spread of the samples.
func (e *Estimates) Spread() Spread { return e.spread }

func (e *Estimates) updateSpread() {
	n := 0.0
	s := Spread{Least: math.Inf(1)}
	for _, x := range e.history {
		if x >= 0 {
			n++
			s.Least, s.Most, s.Mean = min(s.Least, x), max(s.Most, x), s.Mean+x
		}
	}
	if n == 0 {
		e.spread = Spread{}
		return
	}
	s.Mean /= n
	for _, x := range e.history {
		if x >= 0 {
			s.JitterMean += x - s.Least
			s.JitterDeviation += (x - s.Mean) * (x - s.Mean)
		}
	}
	s.JitterMean /= n
	s.JitterMost = s.Most - s.Least
	s.JitterDeviation = math.Sqrt(s.JitterDeviation / n)
	e.spread = s
}

// sample adds the round trip time of a packet that has just been acked.
func (e *Estimates) sample(sequence uint32, sample time.Duration) {
	ms := machine.Milliseconds(sample)
	e.history[sequence%rttHistory] = ms
	if e.rtt == 0 && ms > 0 {
		e.rtt = ms
		return
	}
	e.rtt = smooth(e.rtt, ms, e.options.RTTSmoothing)
}

// arrive adds a packet that was accepted. bytes is its size with its header.
func (e *Estimates) arrive(sequence uint32, bytes int, now machine.Instant) {
	e.arrived[int(sequence)%len(e.arrived)] = arrival{sequence, uint32(bytes), now}
}

// smooth moves value towards x by a share of the difference.
func smooth(value, x, share float64) float64 {
	if math.Abs(value-x) < 1e-5 {
		return x
	}
	return value + (x-value)*share
}

// update does what the library does once a frame.
func (e *Estimates) update(s *gaffer.State, now machine.Instant) {
	e.updateSpread()
	r := s.Rules
	o := &e.options
	if o.LossByAge {
		e.loss = e.lossByAge(s, now)
	} else {
		count, lost := 0, 0
		var sent, acked rate
		for i := range r.Sent / 2 {
			p := s.Sent((s.SentNext - uint32(r.Sent) + uint32(i)) & r.Mask())
			if p == nil {
				continue
			}
			count++
			bytes := o.Overhead + int(p.Bytes)
			sent.add(bytes, p.At)
			if p.Flags&gaffer.SentAcked == 0 {
				lost++
			} else {
				acked.add(bytes, p.At)
			}
		}
		if count == 0 {
			e.loss = 0
		} else {
			e.loss = smooth(e.loss*100, float64(lost)/float64(count)*100, o.LossSmoothing) / 100
		}
		e.sent = sent.into(e.sent, o.BandwidthSmoothing)
		e.acked = acked.into(e.acked, o.BandwidthSmoothing)
	}
	var received rate
	for i := range r.Received / 2 {
		q := (s.ReceivedNext - uint32(r.Received) + uint32(i)) & r.Mask()
		if a := &e.arrived[int(q)%len(e.arrived)]; a.bytes > 0 && a.sequence == q && s.Has(q) {
			received.add(o.Overhead+int(a.bytes), a.at)
		}
	}
	e.received = received.into(e.received, o.BandwidthSmoothing)
}

// lossByAge returns the article's loss: packets older than the round trip time should
// have been acked by now.
func (e *Estimates) lossByAge(s *gaffer.State, now machine.Instant) float64 {
	if e.rtt == 0 {
		return 0
	}
	r := s.Rules
	count, lost := 0, 0
	for i := range r.Sent {
		p := s.Sent((s.SentNext - 1 - uint32(i)) & r.Mask())
		if p == nil || now.Sub(p.At) <= e.RTT() {
			continue
		}
		count++
		if p.Flags&gaffer.SentAcked == 0 {
			lost++
		}
	}
	if count == 0 {
		return 0
	}
	return float64(lost) / float64(count)
}

// rate sums bytes, and the time in which they were sent.
type rate struct {
	bytes       int
	first, last machine.Instant
	any         bool
}

func (r *rate) add(bytes int, at machine.Instant) {
	r.bytes += bytes
	if !r.any || at < r.first {
		r.first = at
	}
	if !r.any || at > r.last {
		r.last = at
	}
	r.any = true
}

// into smooths the rate into a value in kbit/s. It returns the value unchanged if the
// packets span no time.
func (r *rate) into(value, share float64) float64 {
	span := r.last.Sub(r.first).Seconds()
	if span <= 0 {
		return value
	}
	return smooth(value, float64(r.bytes)*8/1000/span, share)
}
