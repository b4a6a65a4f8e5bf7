package gaffer

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Learned gives what a second run over the same flow can start with.
func (t *Tracker) Learned() machine.Facts {
	f := t.facts
	if t.sides == nil {
		return f
	}
	for i := range t.sides {
		s := &t.sides[i]
		f.Liar[i] = f.Liar[i] || s.lies > 0
		f.Suspect[i] = f.Suspect[i] || s.suspect
		f.Refuses[i] = s.refuses
		f.Takes[i] = s.takesAll()
		f.Tick[i] = time.Duration(s.estimate.clock.tick)
		if n := s.restored; n > 8 && n > s.received/50 {
			// Taken for refused, named later: these packets were still on their way.
			f.Vantage = machine.VantageBetween
			if t.sides[1-i].near && t.sides[1-i].restored == 0 {
				f.Vantage = machine.VantageA + machine.Vantage(1-i)
			}
			f.VantageReason = fmt.Sprintf("%v: %d packets that passed the tap reached %v later than newer ones", f.Vantage, n, machine.Side(i))
		}
	}
	return f
}

// Summary gives the figures of a side.
func (t *Tracker) Summary(x machine.Side) machine.Summary {
	if t.sides == nil {
		return t.summaryHeld(x)
	}
	s, peer := &t.sides[x], &t.sides[x.Other()]
	m := machine.Summary{
		Packets: s.distinct, Bytes: s.bytes, Acked: s.acked,
		Received: s.received, Duplicates: s.duplicates, Stale: s.stale,
		NeverAcked: -1, RTT: -1, WireRTT: -1,
	}
	if s.distinct > 0 {
		m.NeverAcked = float64(s.lost) / float64(s.distinct)
	}
	if s.wireCount > 0 {
		m.WireRTT = time.Duration(s.wireRTT / int64(s.wireCount))
	}
	if peer.met {
		m.Missing = uint64(peer.top64-peer.first64+1) - min(peer.distinct, uint64(peer.top64-peer.first64+1))
	}
	m.Path, m.PathKnown = t.path(x)
	m.Loss, m.LossKnown = t.loss(x)
	m.RTT, m.RTTKnown = t.rtt(x)
	return m
}

// path gives what was lost of a side's packets on the way to its peer. At the
// sender headers of the peer tell, which may refuse packets instead; at the
// receiver the gaps in the numbers, unless the capture itself lacks packets.
func (t *Tracker) path(x machine.Side) (machine.PathLoss, machine.Certainty) {
	s, peer := &t.sides[x], &t.sides[x.Other()]
	sure := machine.Likely
	switch {
	case s.near && peer.near:
		return machine.PathLoss{Judged: s.distinct}, machine.Certain // there is no path
	case s.near:
		return s.beyond, t.grade(sure)
	case peer.near && s.unseen == 0:
		sure = machine.Certain
	case t.facts.Vantage == machine.VantageUnknown:
		return s.beyond, machine.Possible // what did not pass the tap may be the capture's loss
	}
	if peer.near {
		return s.before, t.grade(sure)
	}
	return s.before.After(s.beyond), t.grade(sure)
}

// RTT gives what Summary does.
func (t *Tracker) RTT(x machine.Side) time.Duration {
	if t.sides == nil {
		return -1
	}
	d, _ := t.rtt(x)
	return d
}

// Loss gives what Summary does.
func (t *Tracker) Loss(x machine.Side) float64 {
	if t.sides == nil {
		return -1
	}
	loss, _ := t.loss(x)
	return loss
}

// Sent gives what Summary does of packets.
func (t *Tracker) Sent(x machine.Side) uint64 {
	if t.sides == nil {
		return t.summaryHeld(x).Packets
	}
	return t.sides[x].distinct
}

// summaryHeld gives what can be said while the vantage is open: what was sent.
func (t *Tracker) summaryHeld(x machine.Side) machine.Summary {
	m := machine.Summary{NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
	for i := range t.held {
		if p := &t.held[i]; p.from == x {
			m.Packets++
			m.Bytes += uint64(p.length)
		}
	}
	return m
}

// Clone gives an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	c := *t
	c.held = append([]sighting(nil), t.held...)
	if t.sides == nil {
		return &c
	}
	c.sides = new([2]side)
	*c.sides = *t.sides
	for i := range c.sides {
		c.sides[i].State = t.sides[i].State.Clone()
		c.sides[i].queue = t.sides[i].queue.clone()
		c.sides[i].estimate.transit = append([]float32(nil), t.sides[i].estimate.transit...)
		c.sides[i].estimate.early = append([]farSample(nil), t.sides[i].estimate.early...)
		c.sides[i].claimed = append([]ahead(nil), t.sides[i].claimed...)
	}
	return &c
}

// What the types take in memory, about; held to the truth by a test.
const (
	trackerBytes   = 128
	sideBytes      = 760
	sightingBytes  = 48
	candidateBytes = 48
)

// Size gives the bytes that a clone takes, about.
func (t *Tracker) Size() int {
	n := trackerBytes + cap(t.held)*sightingBytes
	if t.sides == nil {
		return n
	}
	n += 2 * sideBytes
	for i := range t.sides {
		n += t.sides[i].State.Size() + cap(t.sides[i].queue.ring)*candidateBytes
	}
	return n
}
