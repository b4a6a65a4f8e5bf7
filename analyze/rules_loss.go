package analyze

import (
	"fmt"
	"math"

	"github.com/ackscope/ackscope/machine"
)

// When a share is steady.
const (
	// steadyEvents is the least number of events, and of events expected at the limit, for
	// which an observed share is used as it is. At a limit of 3 %, five losses are expected
	// in 167 packets. Below five expected events the usual approximations do not hold
	// (W. G. Cochran, "Some methods for strengthening the common chi-squared tests",
	// Biometrics 10, 1954). Of fewer, the lower end of Wilson's interval must reach the limit.
	steadyEvents = 5
	// steadyZ is the two-sided 95 % quantile of the normal distribution.
	steadyZ = 1.96
)

// Where the tap stood: the third figure of a finding. The first two are the bounds of the
// loss in percent. They are equal where the tap tells it.
const (
	lossAtSender = iota
	lossAtReceiver
	lossBetween
	lossAnywhere
	lossOfKnown // no bounds: the share among packets whose fate is known
	lossThereAndBack
)

var lossWords = [...]string{
	lossAtSender:     "captured at the sender, so only the peer's acks show what arrived",
	lossAtReceiver:   "captured at the receiver, where not every loss shows",
	lossBetween:      "captured between the two sides, where not every loss shows",
	lossAnywhere:     "it is unknown where the capture was taken",
	lossOfKnown:      "the fate of the others is unknown",
	lossThereAndBack: "the packets were lost, or their answers",
}

// sayLoss formats the bounds of a loss, and what they rest on.
func sayLoss(_ uint64, worst [3]float64) string {
	least, most, how := worst[0], worst[1], int(worst[2])%len(lossWords)
	switch {
	case least != most:
		return fmt.Sprintf("between %.1f and %.1f%% of its packets were lost: %s", least, most, lossWords[how])
	case how >= lossOfKnown:
		return fmt.Sprintf("%.1f%% of its packets were lost: %s", least, lossWords[how])
	}
	return fmt.Sprintf("%.1f%% of its packets were lost", least)
}

var steadyLoss = &machine.Rule{
	ID: "steady-loss", Severity: machine.Warn, Absence: true, Toward: machine.TowardPeer,
	Summary: "the path loses many of the side's packets, all the time",
	Explain: `Of the side's packets whose fate is known, 3 % or more did not reach the peer (--set loss=5% sets another limit). The loss is spread over the flow: at least half of all stretches of 64 packets lost some. This finding leaves out loss that comes in a few outages only: see "loss-burst".

Which packets count depends on where the capture was taken:

At the receiver, a packet whose number is missing was lost on its way. That is certain, unless the capture itself lacks packets.

At the sender, a packet counts as lost where acks of the peer cover it and none names it. That is likely, since the peer may also refuse packets or receive them far too late. A packet that no ack covers does not count, so sparse acks are no loss.

The finding gives one figure where the capture shows the loss to within one point. Elsewhere it gives two: at least what is known to be lost, and at most what nothing shows to have arrived.

Where each copy is answered by itself, the way there and the way back count as one. Of a message that is sent again, the first copy counts.

The protocol repairs this loss, at the price of latency and copies. Look at the network first: wireless links, a full uplink or queue, a rate limit. "ackscope merge" of captures at both ends shows where packets are lost.`,
	Say: sayLoss,
}

// noteLoss reports the steady loss of a flow that ends.
func (s *Session) noteLoss(f *Flow) {
	sides, vantage, _ := f.results()
	for _, side := range []machine.Side{machine.A, machine.B} {
		sum := &sides[side]
		if sum.PathKnown == machine.Unknown || !steady(&sum.Path, s.thresholds.Loss) {
			continue
		}
		n := f.network(sides, vantage, side)
		least, most, how := n.lossFigures(vantage, side)
		s.note(f, &machine.Anomaly{
			Rule: steadyLoss, Side: side, Certainty: min(sum.PathKnown, n.Certain), At: f.Last, Ref: f.LastRef,
			Figures: [3]float64{100 * least, 100 * most, float64(how)},
		})
	}
}

// lossFigures returns the figures of a finding about the loss of the side's packets. They
// are the bounds and the place of the tap. The bounds are equal where the tap tells the loss.
func (n *Network) lossFigures(v machine.Vantage, side machine.Side) (least, most float64, how int) {
	if !n.Loss.Known() {
		if n.Round {
			return n.Share, n.Share, lossThereAndBack
		}
		return n.Share, n.Share, lossOfKnown
	}
	switch {
	case v.Near(side):
		how = lossAtSender
	case v.Near(side.Other()):
		how = lossAtReceiver
	case v == machine.VantageBetween:
		how = lossBetween
	default:
		how = lossAnywhere
	}
	if n.Tells {
		return n.Share, n.Share, how
	}
	least, most = n.Loss.Share()
	return least, most, how
}

// steady reports whether the loss reaches a limit and is spread over the flow.
func steady(p *machine.PathLoss, limit float64) bool {
	return reaches(p.Lost, p.Settled, limit) && 2*p.Lossy >= p.Blocks
}

// reaches reports whether a share of n events reaches a limit, and not by chance.
func reaches(events, n uint64, limit float64) bool {
	if events < steadyEvents {
		return false
	}
	share := float64(events) / float64(n)
	return share >= limit && (float64(n)*limit >= steadyEvents || wilson(share, float64(n)) >= limit)
}

// wilson returns the lower end of the score interval of a share of n. Source:
// E. B. Wilson, "Probable inference, the law of succession, and statistical
// inference", Journal of the American Statistical Association 22, 1927.
func wilson(share, n float64) float64 {
	const z2 = steadyZ * steadyZ
	return (share + z2/(2*n) - steadyZ*math.Sqrt((share*(1-share)+z2/(4*n))/n)) / (1 + z2/n)
}
