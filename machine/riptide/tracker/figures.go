package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// figures count what a side sent and what became of it.
//
//   - acked, taken and duplicates count messages; resends and packets count copies.
//   - wireRTT is the sum of wireCount round trips, each 0 or more.
type figures struct {
	packets, bytes uint64
	resends        uint64
	acked          uint64 // of its own messages
	taken          uint64 // of the peer's
	duplicates     uint64 // of the peer's, refused
	wireRTT        time.Duration
	wireCount      uint64
	trips          trips
}

// packet counts a packet that the side sent. length is in bytes.
func (f *figures) packet(length int) {
	f.packets++
	f.bytes += uint64(length)
}

// roundTrip counts the time at the tap from a message to the Ack that names it.
func (f *figures) roundTrip(took time.Duration) {
	f.wireRTT += took
	f.wireCount++
	f.trips.add(took)
}

// usual returns the mean time at the tap from a message to its Ack, or 0 if unknown.
func (f *figures) usual() time.Duration {
	if f.wireCount < 4 {
		return 0
	}
	return f.wireRTT / time.Duration(f.wireCount)
}

// summary returns the figures of side x so far.
func (t *follower) summary(x machine.Side) machine.Summary {
	s := &t.sides[x]
	sum := machine.Summary{
		Packets: s.figures.packets, Bytes: s.figures.bytes, Acked: s.figures.acked, NeverAcked: -1, Loss: -1,
		RTT: -1, WireRTT: -1,
		Received: s.figures.taken, Duplicates: s.figures.duplicates, Missing: t.sides[x.Other()].out.missing,
		Resends: s.figures.resends,
	}
	sum.Path, sum.PathKnown, sum.PathBoth = t.path(x)
	if _, smoothed, sure := t.rtt(x); smoothed >= 0 {
		sum.RTT, sum.RTTKnown = time.Duration(smoothed)*time.Millisecond, sure
	}
	if s.figures.wireCount > 0 {
		sum.WireRTT = s.figures.wireRTT / time.Duration(s.figures.wireCount)
	}
	return sum
}

// RTT returns the RTT that Summary has.
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

// Sent returns the packets that Summary has.
func (t *Tracker) Sent(x machine.Side) uint64 {
	if t.f == nil {
		return t.Summary(x).Packets
	}
	return t.f.sides[x].figures.packets
}
