package netcode

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Finish reports how the flow ended.
func (n *Flow) Finish(out *machine.Effects) {
	if !n.known {
		return
	}
	if expired := n.settleToken(out); n.silent() && !expired {
		c := &n.Sides[n.client]
		out.At(c.last, c.LastRef).Report(NoAnswer, n.client, machine.Certain, c.request.ref,
			float64(c.Types[wire.NetcodeRequestType]), c.last.Sub(c.request.at).Seconds(), n.token.left())
	}
	for i := range n.Sides {
		gone, other := &n.Sides[i], &n.Sides[i^1]
		if n.gone(machine.Side(i)) {
			out.At(other.last, other.LastRef).Report(netcodeTimeout, machine.Side(i), machine.Likely, gone.LastRef,
				other.last.Sub(gone.last).Seconds())
		}
		if m := gone.Missing(); m > 0 {
			out.At(gone.last, gone.LastRef).Report(netcodeLoss, machine.Side(i), machine.Certain, 0, float64(m),
				100*float64(m)/float64(m+gone.counters.distinct+gone.counters.passed))
		}
	}
}

// gone reports whether a side fell silent without a disconnect, while the other one went on.
func (n *Flow) gone(x machine.Side) bool {
	gone, other := &n.Sides[x], &n.Sides[x.Other()]
	return !n.Ended && gone.counters.met && other.last.Sub(gone.last) >= netcodeSilence &&
		other.heardSincePeer >= netcodeHeardLeast
}

// ending returns how the connection ended, or the last attempt to make it.
func (n *Flow) ending() machine.Ending {
	_, expired := n.token.expired()
	switch {
	case n.Ended:
		return machine.EndingDisconnect
	case n.denied:
		return machine.EndingDenied
	case n.token.requests > 0 && !n.token.answered && expired == machine.Likely:
		return machine.EndingExpired
	case n.known && n.silent():
		return machine.EndingUnanswered
	case n.gone(machine.A) || n.gone(machine.B):
		return machine.EndingTimeout
	}
	return machine.EndingUnknown
}

// silent reports whether the client repeated its request and had no answer to any.
func (n *Flow) silent() bool {
	c, s := &n.Sides[n.client], &n.Sides[n.client.Other()]
	return c.Types[wire.NetcodeRequestType] > 1 && s.packets == 0 && !c.counters.met && c.counters.passed == 0
}
