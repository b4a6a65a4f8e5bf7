package srdp

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Summary gives the figures of side x so far. RTT is what the document's library
// keeps of an address: the longest delay that it has observed, by Karn's rule of
// packets that were sent but once. Of a side away from the tap it is not known.
func (t *Tracker) Summary(x machine.Side) machine.Summary {
	s, peer := &t.parties[x], &t.parties[x.Other()]
	sum := machine.Summary{
		Packets: s.packets, Bytes: s.bytes, Acked: s.acked, NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1,
		Received: s.received, Duplicates: s.duplicates, Missing: peer.missing, Resends: s.resends,
	}
	if s.settled > 0 {
		sum.NeverAcked = float64(s.unacked) / float64(s.settled)
	}
	if s.samples > 0 {
		sum.WireRTT = s.sum / time.Duration(s.samples)
		near, sure := s.near, s.sure
		if !t.given && !t.config.Stream {
			j := judgeVantage(&t.parties)
			near = j.vantage.Near(x)
			sure = near && j.proven
		}
		if near {
			sum.RTT, sum.RTTKnown = s.longest, machine.Likely
		}
		if sure {
			sum.RTTKnown = machine.Certain
		}
	}
	return sum
}
