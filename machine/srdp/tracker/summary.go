package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Summary returns the figures of side x so far. RTT is what the document's
// library keeps of an address: the longest delay of packets that were sent once
// (Karn's rule). RTT is unknown for a side away from the tap.
func (t *Tracker) Summary(x machine.Side) machine.Summary {
	s, peer := &t.parties[x], &t.parties[x.Other()]
	sum := machine.Summary{
		Packets: s.seen.packets, Bytes: s.seen.bytes, Acked: s.data.acked, NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1,
		Received: s.arrivals.handed, Duplicates: s.arrivals.dropped, Missing: peer.seen.missing, Resends: s.data.resends,
		Messages: s.data.ids, Repeated: s.data.repeated,
	}
	if s.data.settled > 0 {
		sum.NeverAcked = float64(s.data.unacked) / float64(s.data.settled)
	}
	if s.delays.count > 0 {
		sum.WireRTT = s.delays.sum / time.Duration(s.delays.count)
	}
	sum.Path, sum.PathKnown, sum.PathBoth = t.path(x)
	sum.Bounds = t.lossBounds(x)
	if s.delays.trips != nil {
		sum.Trips = *s.delays.trips
	}
	sum.RTT, sum.RTTKnown = t.rtt(x)
	return sum
}

// rtt returns the RTT that a side's library keeps, and its certainty. It is
// likely at most: the library may have seen a longer delay before the capture.
func (t *Tracker) rtt(x machine.Side) (time.Duration, machine.Certainty) {
	s := &t.parties[x]
	if s.delays.count == 0 {
		return -1, machine.Unknown
	}
	near := s.near
	if !t.given && !t.config.Stream {
		near = placeTap(&t.parties).vantage.Near(x)
	}
	if !near {
		return -1, machine.Unknown
	}
	return s.delays.longest, machine.Likely
}

// RTT returns the RTT of Summary.
func (t *Tracker) RTT(x machine.Side) time.Duration {
	d, _ := t.rtt(x)
	return d
}

// Loss returns -1: the library keeps no estimate of loss.
func (t *Tracker) Loss(machine.Side) float64 { return -1 }

// Sent returns the packets of Summary.
func (t *Tracker) Sent(x machine.Side) uint64 { return t.parties[x].seen.packets }
