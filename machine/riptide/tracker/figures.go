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
	reliable       uint64 // its reliable messages; repeated counts those sent more than once
	repeated       uint64
	acked          uint64 // of its own messages
	taken          uint64 // of the peer's
	duplicates     uint64 // of the peer's, refused
	wireRTT        time.Duration
	wireCount      uint64
	quickest       trips          // those that answers show
	trips          *machine.Trips // nil before the first one
	arrived        arrived
}

// arrived counts the copies of a side that something of its peer proves to have arrived.
//
//   - once ≤ copies ≤ asked
type arrived struct {
	asked   uint64 // copies that the peer answers
	copies  uint64 // by the Acks: the peer answers each copy
	once    uint64 // the same, one for each message
	doubled bool   // more Acks came than copies were sent: the network doubles packets
}

// least returns how many copies are proven to have arrived. Where the network doubles packets, two
// Acks may answer one copy.
func (a *arrived) least() uint64 {
	if a.doubled {
		return a.once
	}
	return a.copies
}

// one counts a packet that was sent once.
func (a *arrived) one() {
	a.copies++
	a.once++
}

// answered counts an Ack of a message, after answers.take.
func (a *arrived) answered(e *life) {
	switch {
	case e.answers.count > e.copies.count:
		a.doubled = true
	case e.answers.count > 1:
		a.copies++
	case !e.answers.proven:
		e.answers.proven = true
		a.one()
	}
}

// named counts a message that only the Ack of another one names.
func (a *arrived) named(e *life) {
	if !e.answers.proven {
		e.answers.proven = true
		a.one()
	}
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
	f.quickest.add(took)
}

// trip counts the time at the tap from a packet that was sent once to the answer that it got at
// once. The header of a notify message is no such answer: it waits until its sender has something
// to say.
func (f *figures) trip(took time.Duration) {
	if f.trips == nil {
		f.trips = new(machine.Trips)
	}
	f.trips.Add(took)
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
		Resends: s.figures.resends, Messages: s.figures.reliable, Repeated: s.figures.repeated,
	}
	sum.Path, sum.PathKnown, sum.PathBoth = t.path(x)
	sum.Bounds = t.lossBounds(x)
	if s.figures.trips != nil {
		sum.Trips = *s.figures.trips
	}
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
