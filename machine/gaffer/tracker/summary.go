package tracker

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Learned returns what a second run over the same flow can start with.
func (t *Tracker) Learned() machine.Facts {
	if t.deferred {
		return t.caughtUp().Learned()
	}
	f := *t.facts
	if t.Sides == nil {
		return f
	}
	for i := range t.Sides {
		s := &t.Sides[i]
		f.Liar[i] = f.Liar[i] || s.headers.lies > 0
		f.Suspect[i] = f.Suspect[i] || s.headers.suspect
		f.Refuses[i] = s.application.refuses
		f.Takes[i] = s.application.takesAll()
		f.Tick[i] = time.Duration(s.estimate.clock.tick)
		f.Overtaken[i] = max(f.Overtaken[i], s.sent.overtaken)
		if f.Newest[i] = f.Earlier[i][0]; s.Met {
			f.Newest[i] = machine.Number{Known: true, Value: s.sent.top}
			f.Earlier[i] = s.earlier.newest
		}
		f.Scrambled[i] = f.Scrambled[i] || s.scrambled(&t.Sides[1-i])
		if n := s.reads.restored; !f.Marked && n > 8 && n > s.reads.count/50 {
			// They looked refused and were named later: these packets were still on their way.
			f.Vantage, f.Supposed[i] = machine.VantageBetween, false
			if t.Sides[1-i].Near && t.Sides[1-i].reads.restored == 0 {
				f.Vantage = machine.VantageA + machine.Vantage(1-i)
			}
			f.VantageReason = fmt.Sprintf("%v: %d captured packets reached %v later than newer ones", f.Vantage, n,
				machine.Side(i))
		}
	}
	return f
}

// scrambled reports whether a network must lie between the tap and the side. Its packets came out
// of order, or again. Or packets were lost both on the way to it and on the way from it. A side
// that is wrong shows one of the two.
func (s *side) scrambled(peer *side) bool {
	untaken := peer.losses.beyond.Lost + s.reads.refused
	return s.sent.disorder > 1+s.sent.distinct/100 ||
		s.Met && s.sent.missing() > 1 && untaken > 1
}

// Summary returns the figures of a side.
func (t *Tracker) Summary(x machine.Side) machine.Summary {
	if t.deferred {
		return t.caughtUp().Summary(x)
	}
	if t.Sides == nil {
		return t.summaryHeld(x)
	}
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	m := machine.Summary{
		Packets: s.sent.distinct, Bytes: s.sent.bytes, Acked: s.acks.count,
		Received: s.reads.count, Duplicates: s.reads.duplicates, Stale: s.reads.stale,
		NeverAcked: -1, RTT: -1, WireRTT: -1,
	}
	if s.sent.distinct > 0 {
		m.NeverAcked = float64(s.acks.lost) / float64(s.sent.distinct)
	}
	if s.acks.wireCount > 0 {
		m.WireRTT = time.Duration(s.acks.wireRTT / int64(s.acks.wireCount))
	}
	if peer.Met {
		m.Missing = peer.sent.missing()
	}
	m.Path, m.PathKnown = t.path(x)
	m.Bounds = t.lossBounds(x)
	if s.trips != nil {
		m.Trips = *s.trips
	}
	m.Loss, m.LossKnown = t.loss(x)
	m.RTT, m.RTTKnown = t.rtt(x)
	return m
}

// path returns the loss of a side's packets on the way to its peer. With the tap at the
// sender, headers of the peer show it, though the peer may have refused packets
// instead. With the tap at the receiver, gaps in the numbers show it, unless the
// capture itself lacks packets.
func (t *Tracker) path(x machine.Side) (machine.PathLoss, machine.Certainty) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	sure := machine.Likely
	switch {
	case s.Near && peer.Near:
		return machine.PathLoss{Settled: s.sent.distinct}, machine.Certain // there is no path
	case s.Near && t.heldBack(s, peer):
		return machine.PathLoss{}, machine.Unknown // what no header names may have come later
	case s.Near:
		return s.losses.beyond, t.grade(sure)
	case peer.Near && s.losses.unseen == 0:
		sure = machine.Certain
	case t.facts.Vantage == machine.VantageUnknown:
		return s.losses.beyond, machine.Possible // packets that did not pass may be missing in the capture only
	}
	if peer.Near {
		return s.losses.before, t.grade(sure)
	}
	return s.losses.before.After(s.losses.beyond), t.grade(sure)
}

// RTT returns the smoothed RTT of Summary.
func (t *Tracker) RTT(x machine.Side) time.Duration {
	switch {
	case t.deferred && t.Held.before.packets[x] > 1: // a side learns nothing before its second packet
		return t.caughtUp().RTT(x)
	case t.Sides == nil:
		return -1
	}
	d, _ := t.rtt(x)
	return d
}

// Loss returns the loss of Summary.
func (t *Tracker) Loss(x machine.Side) float64 {
	if t.deferred {
		return t.caughtUp().Loss(x)
	}
	if t.Sides == nil {
		return -1
	}
	loss, _ := t.loss(x)
	return loss
}

// Sent returns the count of packets of Summary.
func (t *Tracker) Sent(x machine.Side) uint64 {
	if t.deferred {
		return t.caughtUp().Sent(x)
	}
	if t.Sides == nil {
		return t.summaryHeld(x).Packets
	}
	return t.Sides[x].sent.distinct
}

// summaryHeld returns what is known while the vantage is open: what was sent.
func (t *Tracker) summaryHeld(x machine.Side) machine.Summary {
	m := machine.Summary{NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
	t.Held.each(func(p *sighting) {
		if p.from == x {
			m.Packets++
			m.Bytes += uint64(p.length)
		}
	})
	return m
}

// Clone returns an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	c := *t
	c.receipts = t.receipts.clone()
	c.room, c.Held = nil, t.Held.clone()
	if t.Sides == nil {
		return &c
	}
	c.copySides(t)
	for i := range c.Sides {
		c.Sides[i].State = t.Sides[i].State.Clone()
		c.Sides[i].queue = t.Sides[i].queue.clone()
		c.Sides[i].trips = t.Sides[i].trips.Clone()
		c.Sides[i].estimate.transit = append([]float32(nil), t.Sides[i].estimate.transit...)
		c.Sides[i].estimate.early = append([]farSample(nil), t.Sides[i].estimate.early...)
		c.Sides[i].headers.claimed = append([]earlyClaim(nil), t.Sides[i].headers.claimed...)
		c.Sides[i].headers.unseen = append([]unseenClaim(nil), t.Sides[i].headers.unseen...)
		c.Sides[i].headers.ahead = append([]aheadHeader(nil), t.Sides[i].headers.ahead...)
	}
	return &c
}

// Approximate sizes of the types in memory; TestSizes checks them.
const (
	// trackerBytes is the approximate size of a Tracker, in bytes.
	// Source: bound, the size of a tracker
	trackerBytes = 200
	// factsBytes is the approximate size of a tracker's own facts, in bytes.
	// Source: bound, the size of a tracker's facts
	factsBytes = 176
	// sideBytes is the approximate size of a side, in bytes.
	// Source: bound, the size of a side
	sideBytes = 992
	// candidateBytes is the approximate size of a candidate in a side's queue, in bytes.
	// Source: bound, the size of a candidate
	candidateBytes = 48
)

// Size returns the approximate size of a clone, in bytes.
func (t *Tracker) Size() int {
	n := trackerBytes + cap(t.Held.packed)
	if t.Sides == nil {
		return n
	}
	n += factsBytes + 2*sideBytes
	for i := range t.Sides {
		n += t.Sides[i].State.Size() + cap(t.Sides[i].queue.ring)*candidateBytes
	}
	return n
}
