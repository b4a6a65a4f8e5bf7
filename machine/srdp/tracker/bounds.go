package tracker

import (
	"math"

	"github.com/ackscope/ackscope/machine"
)

// lossBounds bounds how many of a side's packets were lost on the way to its peer. Copies and
// acknowledgements count as packets of their own. A copy without an acknowledgement may have arrived
// all the same. An acknowledgement is never answered: it was lost as often as a copy seems to be, at
// most. With the tap at the receiver, only what never came is known to be lost.
func (t *Tracker) lossBounds(x machine.Side) (b machine.LossBounds) {
	s, peer := &t.parties[x], &t.parties[x.Other()]
	b.Sent = s.seen.packets
	switch {
	case b.Sent == 0:
		return b
	case t.config.Stream, s.near && peer.near:
		b.Certainty = machine.Certain // TCP repairs what is lost; or there is no path
		return b
	}
	if !s.near {
		b.Least = s.seen.missing
		b.Sent += b.Least
	}
	b.Most = b.Sent
	if s.near {
		copies := machine.PathLoss{Settled: s.data.copies}
		copies.Lost = copies.Settled - min(copies.Settled, s.losses.arrived)
		others := b.Sent - min(b.Sent, copies.Settled)
		b.Most = min(b.Sent, copies.Lost+uint64(math.Ceil(float64(others)*copies.AtMost())))
	}
	if b.Least > 0 || b.Most < b.Sent {
		b.Certainty = machine.Likely
	}
	return b
}
