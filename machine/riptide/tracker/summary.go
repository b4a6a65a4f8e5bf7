package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// summary gives the figures of side x so far.
func (t *follower) summary(x machine.Side) machine.Summary {
	s := &t.sides[x]
	sum := machine.Summary{
		Packets: s.packets, Bytes: s.bytes, Acked: s.acked, NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1,
		Received: s.taken, Duplicates: s.duplicates, Missing: t.sides[x.Other()].missing, Resends: s.resends,
	}
	sum.Path, sum.PathKnown, sum.PathBoth = t.path(x)
	if _, smoothed, sure := t.rtt(x); smoothed >= 0 {
		sum.RTT, sum.RTTKnown = time.Duration(smoothed)*time.Millisecond, sure
	}
	if s.wireCount > 0 {
		sum.WireRTT = s.wireRTT / time.Duration(s.wireCount)
	}
	return sum
}

// RTT gives what Summary does.
func (t *Tracker) RTT(x machine.Side) time.Duration {
	if t.f == nil {
		return t.Summary(x).RTT
	}
	if _, smoothed, _ := t.f.rtt(x); smoothed >= 0 {
		return time.Duration(smoothed) * time.Millisecond
	}
	return -1
}

// Loss is not known: the library keeps no estimate.
func (t *Tracker) Loss(machine.Side) float64 { return -1 }

// Sent gives what Summary does of packets.
func (t *Tracker) Sent(x machine.Side) uint64 {
	if t.f == nil {
		return t.Summary(x).Packets
	}
	return t.f.sides[x].packets
}
