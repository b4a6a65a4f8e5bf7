package tracker

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
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
	variation float64 // smoothed deviation of samples from it; near only
	samples   uint64
	clock     frameClock

	// Far only. transit holds the times from a packet of the peer passing the tap
	// to the far frame that read it, as seen at the tap in ns, of the latest cases
	// in which no header is missing. transits counts all of them.
	transit  []float32
	transits int
	// early are samples that wait for transits to be known: the first one weighs
	// more than all others of a short capture.
	early []farSample
}

// farSample is a far side's reading of the first ack of its packet number: after
// the frame of packet `before`, whose header did not name the carrier of the
// ack, and no later than that of packet `first`, whose header did. The carrier
// passed the tap at.
type farSample struct {
	number, before, first int64
	at                    machine.Instant
}

const (
	earlyMost     = 64
	transitsLeast = 12
	transitsKept  = 64 // a power of two
)

// sample takes one RTT sample; same is the difference that the library neglects.
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

// read takes a far side's sample.
func (e *estimate) read(f *farSample) {
	if e.early == nil && e.transits >= transitsLeast {
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

// flush settles the early samples with the transits that they show.
func (e *estimate) flush() {
	early := e.early
	e.early, e.transits = nil, 0
	e.transit = make([]float32, 0, transitsKept)
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

// exact reports whether the frame of the reading is known.
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

// readFrame tells in which of a far side's frames the carrier of an ack was
// read: of several that are possible the mean, by how often each was the one
// where it is known. That is no whole number; the smoothed figure wants none.
func (e *estimate) readFrame(f *farSample) float64 {
	tick := e.clock.tick
	if f.exact() || tick <= 0 || len(e.transit) == 0 {
		return float64(f.first)
	}
	// A packet waits half a frame, on average, from its coming to its reading.
	// A transit up to least would have it read by the frame of `before`, one beyond
	// most only after the frame of `first`.
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

// rtt returns the side's smoothed RTT as its library has it.
func (t *Tracker) rtt(x machine.Side) (time.Duration, machine.Certainty) {
	s := &t.Sides[x]
	e := &s.estimate
	if len(e.early) > 0 {
		settled := *e // a copy: what is open stays open
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

// loss returns the side's packet loss as its library has it, smoothing settled: of
// the older half of its sent buffer, the share that was not acked.
func (t *Tracker) loss(x machine.Side) (float64, machine.Certainty) {
	s := &t.Sides[x]
	if !s.Met {
		return -1, machine.Unknown
	}
	size := s.Rules.Sent
	sent, missing := 0, 0
	for n := size; n > size/2; n-- {
		q := (s.SentNext - uint32(n)) & s.Rules.Mask()
		if s.unwrap(q) < s.sent.first64 {
			continue
		}
		switch e := s.Sent(q); {
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
