package tracker

import (
	"math"

	"github.com/ackscope/ackscope/machine"
)

// lossBounds bounds how many of a side's datagrams were lost on the way to its peer. Resent copies
// count as datagrams of their own.
//
//	tap at the sender     Most is what neither an Ack nor a header proves to have arrived. Acks,
//	                      answers to pings and unreliable messages are never answered: they were
//	                      lost as often as the others seem to be, at most.
//	tap at the receiver   Least is what is missing among the numbers. Datagrams without numbers were
//	                      lost as often as notify messages and pings were, at most. After an outage
//	                      the most is open: reliable messages may have been sent again and again.
//	between               both in turn
func (t *follower) lossBounds(x machine.Side) (b machine.LossBounds) {
	s, peer := &t.sides[x], &t.sides[x.Other()]
	b.Sent = s.figures.packets
	switch {
	case b.Sent == 0:
		return b
	case t.config.Stream, s.tap.near && peer.tap.near:
		b.Certainty = machine.Certain // TCP repairs what is lost; or there is no path
		return b
	}
	before, beyond := s.path.Least(s.out.missing)
	if s.behaviour.OneSequence {
		before, beyond = 0, 0 // it numbers nothing
	}
	beyondMost := s.figures.unproven()
	if !s.tap.near {
		most, open := lostAtMost(s.figures.packets, s.path.ToTapMost())
		b.Least, b.Most = before, max(before, most)
		b.Sent += b.Most
		if open || s.activity.outage(s.figures.packets) {
			b.Most = b.Sent
		}
	}
	if !peer.tap.near {
		b.Least += beyond
		b.Most = min(b.Most+beyondMost, b.Sent)
	}
	b.Least = min(b.Least, b.Most)
	switch {
	case b.Least == 0 && b.Most == b.Sent:
	case t.facts.Vantage == machine.VantageUnknown:
		b.Certainty = machine.Possible
	default:
		b.Certainty = machine.Likely
	}
	return b
}

// unproven returns how many of the packets that passed the tap were lost behind it, at most.
func (f *figures) unproven() uint64 {
	asked := machine.PathLoss{Settled: f.arrived.asked}
	asked.Lost = asked.Settled - min(asked.Settled, f.arrived.least())
	others := f.packets - min(f.packets, asked.Settled)
	return asked.Lost + uint64(math.Ceil(float64(others)*asked.AtMost()))
}

// lostAtMost returns how many datagrams were lost besides those that passed, if that happens to a
// share of all at most. It returns true if the share bounds nothing.
func lostAtMost(passed uint64, share float64) (lost uint64, open bool) {
	if share >= 1 {
		return 0, true
	}
	return uint64(math.Ceil(float64(passed) * share / (1 - share))), false
}
