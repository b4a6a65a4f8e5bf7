package tracker

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// reach is how far a side is from the tap: the shortest time from data passing
// the tap towards it to its acknowledgement. A receiver acknowledges at once. A
// side at the tap therefore answers within a tick of its application, and a
// side away from the tap after a round trip.
type reach struct {
	answers machine.Fastest // from data to the side's acknowledgement
	// lateCopies counts copies that the side sent long after an acknowledgement
	// had passed the tap towards it. A sender at the tap would have read that.
	lateCopies int
	// disordered counts data that passed behind later ids of the side, or twice
	// within a moment. The network did that, so the side is not at the tap.
	disordered int
	// misordered counts acknowledgements of packets of one copy that came behind
	// those of later packets. A receiver acknowledges in order, so the network did
	// that.
	misordered int
	// amiss counts what a side at the tap does not do:
	//
	//   - it leaves a copy without an acknowledgement, while it goes on;
	//   - it acknowledges more copies than passed the tap;
	//   - it sends a copy after an acknowledgement that it should have read.
	//
	// A network between lost or doubled something then, or the side is wrong.
	amiss int
	// unmatched counts, of these, packets that the side acknowledged more or less
	// often than copies passed towards it.
	unmatched int
	// slowest is the longest time from data to the side's acknowledgement. At the
	// tap, it is how long a datagram lies in the side's socket.
	slowest time.Duration
	// tick is the shortest time between two of its packets from different
	// bursts. An application that reads its socket once a frame also sends once
	// a frame.
	tick time.Duration
}

// answersLate reports whether the side answers too late for its application to
// be the reason.
func (r *reach) answersLate() bool {
	return r.answers.Count() > 0 && r.answers.Least() > max(frame, r.tick+r.tick/8)
}

// scrambled reports whether a network must lie between the tap and a side. Its data came in
// disorder. Or what it sent speaks against the tap in two ways: a side that is wrong in one thing
// shows one of them.
func (r *reach) scrambled(p *party) bool {
	ways := 0
	for _, n := range [3]int{r.lateCopies, r.misordered, r.unmatched} {
		if n > 0 {
			ways++
		}
	}
	return ways > 1 || r.disordered > 1 && uint64(r.disordered)*100 >= p.data.copies
}

// Times by which the tap is placed.
const (
	// quick is the longest answer time of a machine at the tap.
	// Source: measured, TestMarginsSRDP
	quick = 1500 * time.Microsecond
	// tick is how much one tick of an application can add to an answer.
	// Source: measured, TestMarginsSRDP
	tick = 12 * time.Millisecond
	// frame is the frame time of a slow application. A side that always answers
	// later is away from the tap.
	// Source: measured, TestMarginsSRDP
	frame = 34 * time.Millisecond
	// unread is how long an acknowledgement can lie in its socket while a sender
	// at the tap runs its timers. It allows for a generous frame of the
	// application.
	// Source: measured, TestMarginsSRDP
	unread = 60 * time.Millisecond
	// burst is the longest time between packets that are sent together.
	// Source: measured, TestMarginsSRDP
	burst = 4 * time.Millisecond
)

// placement is where the tap seems to be, and the evidence for it.
type placement struct {
	vantage machine.Vantage
	by      evidence
	side    machine.Side // the side that the evidence is about
	times   [2]time.Duration
	sure    bool // more packets could hardly change it
	// proven is stronger than sure: a side answers so soon that it must be at
	// the tap. Without that, an application that reads its socket once a frame
	// may look as far away as a distant side.
	proven bool
}

type evidence uint8

const (
	byNothing    evidence = iota // no side acknowledges anything
	byQuickness                  // side acknowledges at once
	byDisorder                   // side acknowledges soon, and the other side is not at the tap
	byNeither                    // neither side is at the tap
	byDistance                   // side acknowledges late
	byOneAlone                   // only side acknowledges, and its times settle nothing
	byComparison                 // side acknowledges sooner than the other
	byDenial                     // side acknowledges sooner, but it is not at the tap
	byNearness                   // both acknowledge equally soon
)

// placeTap decides where the tap is.
func placeTap(parties *[2]party) (place placement) {
	a, b := &parties[machine.A].reach, &parties[machine.B].reach
	at := func(s machine.Side) machine.Vantage { return machine.VantageA + machine.Vantage(s) }
	// A side is away from the tap when it repeats acknowledged packets,
	// whatever its answers show. It is also away when its data comes in
	// disorder.
	away := func(s machine.Side) bool {
		p := &parties[s]
		return p.reach.lateCopies > 0 && uint64(p.reach.lateCopies)*200 >= p.data.acked || p.reach.disordered > 1 &&
			uint64(p.reach.disordered)*100 >= p.data.copies || p.reach.misordered > 1 &&
			uint64(p.reach.misordered)*100 >= parties[s.Other()].data.answers
	}
	// Sides that are both so near may still have a network between them.
	amiss := [2]bool{a.amiss+a.misordered > 0 || away(machine.A), b.amiss+b.misordered > 0 || away(machine.B)}
	if a.answers.Count() == 0 && b.answers.Count() == 0 {
		return place
	}
	if a.answers.Count() == 0 || b.answers.Count() == 0 {
		only := a
		if a.answers.Count() == 0 {
			only, place.side = b, machine.B
		}
		other := place.side.Other()
		place.times[place.side], place.sure = only.answers.Least(), only.answers.Count() >= 8
		switch {
		case only.answers.Least() < quick:
			place.vantage, place.by, place.proven = at(place.side), byQuickness,
				only.answers.Count() >= 4 && !amiss[place.side]
		case away(other) && !only.answersLate():
			place.vantage, place.by = at(place.side), byDisorder
		case away(other):
			place.vantage, place.by = machine.VantageBetween, byNeither
		case only.answersLate():
			place.vantage, place.by = at(other), byDistance
		default:
			place.by, place.sure = byOneAlone, false
		}
		return place
	}
	place.times = [2]time.Duration{a.answers.Least(), b.answers.Least()}
	if place.times[machine.B] < place.times[machine.A] {
		place.side = machine.B
	}
	soon, late := place.times[place.side], place.times[place.side.Other()]
	enough := min(a.answers.Count(), b.answers.Count()) >= 8
	place.vantage, place.by, place.sure = at(place.side), byComparison, enough
	switch {
	case away(machine.A) && away(machine.B), away(place.side) && late > quick,
		enough && parties[place.side].reach.answersLate():
		place.vantage, place.by = machine.VantageBetween, byNeither
	case away(place.side):
		place.vantage, place.by = at(place.side.Other()), byDenial
	case late < tick && amiss[machine.A] && amiss[machine.B], soon > quick && late < 2*soon && amiss[place.side]:
		place.vantage, place.by = machine.VantageBetween, byNeither
	case late < quick && amiss[place.side.Other()]:
		place.proven = enough
	case late < quick && amiss[place.side]:
		place.vantage, place.by, place.proven = at(place.side.Other()), byDenial, enough
	case late < quick:
		place.vantage, place.by, place.proven = machine.VantageBoth, byNearness, enough
	case late < tick && late < 3*soon:
		place.vantage, place.by, place.sure = machine.VantageBoth, byNearness, false
	default:
		place.proven = enough && soon < quick && (late >= tick || !amiss[place.side])
		place.sure = place.proven && soon*4 < late
	}
	return place
}

// String formats the placement, with its evidence, for the user.
func (place placement) String() string {
	other := place.side.Other()
	own, its := machine.Rounded(place.times[place.side]), machine.Rounded(place.times[other])
	where := "between"
	switch place.vantage {
	case machine.VantageUnknown:
		where = "unknown"
	case machine.VantageBoth:
		where = "at both, or so near that it makes no difference"
	case machine.VantageA, machine.VantageB:
		where = "at " + place.vantage.String()
	case machine.VantageBetween:
	}
	switch place.by {
	case byNothing:
		return where + ": nothing is acknowledged"
	case byQuickness:
		return fmt.Sprintf("%s: it acknowledges within %v", where, own)
	case byDisorder:
		return fmt.Sprintf("%s: it acknowledges within %v, and to %v it is further", where, own, other)
	case byDistance:
		return fmt.Sprintf("%s: %v acknowledges after %v at the least", where, place.side, own)
	case byOneAlone:
		return fmt.Sprintf("%s: only %v acknowledges, after %v", where, place.side, own)
	case byNeither:
		if its == 0 {
			return fmt.Sprintf("%s: %v acknowledges after %v at the least, and %v was not captured here either", where,
				place.side, own, other)
		}
	case byDenial:
		return fmt.Sprintf("%s: %v was not captured here, though it acknowledges within %v; %v does after "+
			"%v", where, place.side,
			own, other, its)
	case byComparison, byNearness:
	}
	return fmt.Sprintf("%s: %v acknowledges within %v, %v after %v", where, place.side, own, other, its)
}
