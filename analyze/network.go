package analyze

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Network is what a flow shows of the network from one side to its peer, and of what the
// side did about it. The overview, the rules about steady trouble, `compare` and --fail-if
// read their figures from it. Unknown figures are negative.
type Network struct {
	Loss    machine.LossBounds // of the side's packets on the way to its peer
	Share   float64            // the best single figure of that loss, 0..1
	Certain machine.Certainty  // of Share
	Round   bool               // Share covers the way there and back
	Tells   bool               // the tap tells the loss: Share is the loss of this direction, and no estimate

	RTT     time.Duration // mean round trip of the side's packets: see Flow.RoundTrip
	RTT95   time.Duration // its 95th percentile
	Jitter  time.Duration // mean difference of successive round trips
	Stall   time.Duration // the longest silence of a side that usually sends; 0 if it made no pause
	StallAt machine.Ref   // the frame that ended it

	Resends uint64  // reliable messages that were sent more than once
	Sent    uint64  // of so many
	Mean    float64 // payload bytes a second, over the flow
	Peak    float64 // payload bytes in its busiest second, by the capture's clock
}

// Network returns the figures of the direction that side s sends in. It returns false if no
// protocol explains the flow.
func (f *Flow) Network(s machine.Side) (Network, bool) {
	sides, v, ok := f.results()
	if !ok {
		return Network{Share: -1, RTT: -1, RTT95: -1, Jitter: -1, Stall: -1, Mean: -1, Peak: -1}, false
	}
	return f.network(sides, v, s), true
}

// network returns Network, of the summaries of both sides and the place of the tap.
func (f *Flow) network(sides *[2]machine.Summary, v machine.Vantage, s machine.Side) Network {
	sum := &sides[s]
	trip := tripOf(sides, v, s)
	n := Network{
		Share: -1, Stall: -1, Mean: f.mean(s), Peak: -1, Loss: sum.Bounds, Resends: sum.Repeated, Sent: sum.Messages,
		RTT: trip.Mean, RTT95: trip.P95, Jitter: trip.Jitter,
	}
	n.estimate(sum)
	if f.pace != nil {
		p := &f.pace[s]
		n.Peak = float64(p.peak)
		n.Stall, n.StallAt = p.stall()
	}
	return n
}

// mean returns Network.Mean.
func (f *Flow) mean(s machine.Side) float64 {
	span := f.Last.Sub(f.First)
	if span <= 0 {
		return -1
	}
	return float64(f.Bytes[s]) / span.Seconds()
}

// toldWithin is how far apart the bounds of a loss are at most where the tap tells it.
// Source: definition, steady-loss: a tap tells a loss to one point
const toldWithin = 0.01

// estimate sets the best single figure of the loss: what the evidence of packets with a
// known fate shows, within the bounds.
func (n *Network) estimate(sum *machine.Summary) {
	if sum.PathKnown != machine.Unknown {
		n.Share, n.Certain, n.Round = sum.Path.Share(), sum.PathKnown, sum.PathBoth
	}
	if n.Share < 0 {
		n.Certain, n.Round = machine.Unknown, false
	}
	least, most := n.Loss.Share()
	n.Tells = n.Loss.Known() && n.Loss.Certainty >= machine.Likely && most-least <= toldWithin
	switch {
	case n.Tells && (n.Share < 0 || n.Round):
		n.Share, n.Certain, n.Round = (least+most)/2, n.Loss.Certainty, false
	case n.Tells:
		n.Certain = n.Loss.Certainty
		fallthrough
	case n.Loss.Known() && n.Share >= 0 && !n.Round:
		n.Share = min(max(n.Share, least), most)
	}
	if n.Loss.Known() && !n.Tells {
		n.Certain = min(n.Certain, machine.Likely) // the bounds leave it open
	}
}
