package tracker

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// The library's own estimate of the RTT, by the source of reliable 1.4.0. A sample
// runs from the frame time at which the side sends a packet to that at which it reads
// the first ack of it. The first positive sample is the estimate. Each
// later sample changes the estimate by a part of the difference.
const (
	// rttSmoothing is the part of its difference by which a sample changes the smoothed
	// RTT.
	// Source: library, reliable 1.4.0: rtt_smoothing_factor
	rttSmoothing = 0.0025
	// rttSame is how close to the smoothed RTT a sample must be to replace it unchanged,
	// in ns.
	// Source: library, reliable 1.4.0: samples within 0.00001 ms are the same
	rttSame = 10
)

// estimate rebuilds one side's view of the network.
//
// Near: the side's own sends show its frames, so a sample is a plain difference of
// times.
//
// Far: the network lies between the tap and the frames. The side sends one packet a
// frame, so its sequence numbers count its frames. A sample is a number of frames, and
// so is the smoothed figure. It is multiplied by the frame time that the whole capture
// shows.
type estimate struct {
	rtt       float64 // smoothed, in ns (near) or frames (far)
	variation float64 // smoothed deviation of samples from it; near only
	samples   uint64
	clock     frameClock

	// Far only. transit holds times in ns, as seen at the tap. Each runs from a packet of
	// the peer passing the tap to the far frame that read it. It holds the latest cases in
	// which no header is missing; transits counts all such cases.
	transit  []float32
	transits int
	// early holds samples until the transits are known: the first sample weighs more than
	// all others of a short capture.
	early []farSample
}

// farSample is a far side's reading of the first ack of its packet number. The packet
// that carried the ack passed the tap at instant at. The side read it after the frame
// of packet before, whose header did not name it. It read it no later than in the frame
// of packet first, whose header did.
//
// For example, the peer's packet 40 acks packet 7 of the side. The header of packet 11
// does not name 40, that of 13 does, and 12 was lost. So the side read the ack in frame
// 12 or 13: number is 7, before is 11, first is 13.
type farSample struct {
	number, before, first int64
	at                    machine.Instant
}

const (
	// earlyMost is how many early samples can wait for the transits to be known.
	// Source: bound, the samples that wait
	earlyMost = 64
	// transitsLeast is how many exact samples must come before the transits count as
	// known.
	// Source: measured, TestMarginsGaffer
	transitsLeast = 12
	// transitsKept is how many transits an estimate keeps. It is a power of two.
	// Source: bound, the transits that are kept
	transitsKept = 64
)

// sample adds one RTT sample. The library adopts a sample unchanged if it differs from
// the smoothed RTT by less than same.
func (e *estimate) sample(s, same float64) {
	if e.samples++; e.samples > 1 {
		e.variation += (math.Abs(s-e.rtt) - e.variation) / 16
	}
	switch {
	case e.rtt == 0 && s > 0, math.Abs(e.rtt-s) < same:
		e.rtt = s
	default:
		e.rtt += (s - e.rtt) * rttSmoothing
	}
}

// read adds a far side's sample.
func (e *estimate) read(f *farSample) {
	if len(e.early) == 0 && e.transits >= transitsLeast {
		e.settle(f)
		return
	}
	e.early = append(e.early, *f)
	if f.exact() {
		e.transits++
	}
	if e.transits >= transitsLeast || len(e.early) >= earlyMost {
		e.flush()
	}
}

// flush computes the transits of the early samples, then adds these samples.
func (e *estimate) flush() {
	early := e.early
	e.early, e.transits = e.early[:0], 0
	if e.transit = e.transit[:0]; cap(e.transit) < transitsKept {
		e.transit = make([]float32, 0, transitsKept)
	}
	for i := range early {
		e.noteTransit(&early[i])
	}
	for i := range early {
		e.sample(e.framesTo(&early[i]), 0)
	}
	e.transits = max(e.transits, transitsLeast)
}

func (e *estimate) settle(f *farSample) {
	e.noteTransit(f)
	e.sample(e.framesTo(f), 0)
}

// framesTo returns the sample in frames.
func (e *estimate) framesTo(f *farSample) float64 {
	return e.readFrame(f) - float64(f.number) + e.clock.halt(f.number, f.first)
}

// exact reports whether the frame in which the ack was read is known.
func (f *farSample) exact() bool { return f.first <= f.before+1 }

func (e *estimate) noteTransit(f *farSample) {
	if !f.exact() {
		return
	}
	wait := float32(e.clock.at(f.first) - e.clock.since(f.at))
	if len(e.transit) < transitsKept {
		e.transit = append(e.transit, wait)
	} else {
		e.transit[e.transits&(transitsKept-1)] = wait
	}
	e.transits++
}

// readFrame returns the frame of a far side in which it read the packet that carried an
// ack. If several frames are possible it returns their mean, weighted by the transits
// of cases in which the frame is known. The mean may be fractional: smoothing needs no
// whole number.
func (e *estimate) readFrame(f *farSample) float64 {
	tick := e.clock.tick
	if f.exact() || tick <= 0 || len(e.transit) == 0 {
		return float64(f.first)
	}
	// A packet waits half a frame, on average, between its arrival and its reading. With a
	// transit of at most least, the frame of packet before would have read it. With one of
	// more than most, only a frame after that of packet first would have.
	least := e.clock.at(f.before) - e.clock.since(f.at) + tick/2
	most := least + tick*float64(f.first-f.before)
	sum, n, below := 0.0, 0, 0
	for _, wait := range e.transit {
		switch wait := float64(wait); {
		case wait <= least:
			below++
		case wait <= most:
			sum += math.Ceil((wait - least) / tick)
			n++
		}
	}
	switch {
	case n > 0:
		return float64(f.before) + sum/float64(n)
	case 2*below > len(e.transit):
		return float64(f.before + 1)
	}
	return float64(f.first)
}

// rtt returns the smoothed RTT that the side's library has.
func (t *Tracker) rtt(x machine.Side) (time.Duration, machine.Certainty) {
	s := &t.Sides[x]
	e := &s.estimate
	if len(e.early) > 0 {
		settled := *e // a copy: open samples stay open
		settled.transit = nil
		if t.room != nil {
			settled.transit = t.room.settled[:0]
		}
		settled.flush()
		e = &settled
	}
	if e.samples == 0 {
		return -1, machine.Unknown
	}
	if s.Near {
		sure := machine.Certain
		if !s.headers.fresh {
			sure = machine.Likely // what it had smoothed before the capture is unknown
		}
		return time.Duration(e.rtt), t.grade(sure)
	}
	if e.clock.tick <= 0 {
		return -1, machine.Unknown
	}
	return time.Duration(e.rtt * e.clock.tick), machine.Likely
}

// loss returns the packet loss that the side's library reports once its smoothing has
// settled. That is the unacked share of the older half of its sent buffer.
func (t *Tracker) loss(x machine.Side) (float64, machine.Certainty) {
	s := &t.Sides[x]
	if !s.Met || s.Rules.SentUnknown {
		return -1, machine.Unknown
	}
	size := s.Rules.Sent
	sent, missing := 0, 0
	for n := int(min(int64(size), s.sent.extent())); n > size/2; n-- { // SentNext follows the newest that passed
		switch e := s.Sent((s.SentNext - uint32(n)) & s.Rules.Mask()); {
		case e != nil:
			sent++
			if e.Flags&gaffer.SentAcked == 0 {
				missing++
			}
		case !s.Near:
			sent++ // lost before the tap
			missing++
		}
	}
	sure := machine.Likely
	if s.Near && s.headers.fresh {
		sure = t.grade(machine.Certain)
	}
	if sent == 0 {
		return 0, sure
	}
	return float64(missing) / float64(sent), sure
}
