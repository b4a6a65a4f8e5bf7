package vantage

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Verdict is where the tap is, and why.
type Verdict struct {
	Vantage machine.Vantage
	Reason  string
	Sure    bool // more messages could hardly change it
}

const (
	// quick is the longest answer time of a side with no network in between.
	// Source: measured, TestMarginsRiptide
	quick = 1500 * time.Microsecond
	// tick is how much one tick of an application can add to an answer.
	// Source: measured, TestMarginsRiptide
	tick = 12 * time.Millisecond
	// restShare decides whether the tap stands at one end of the connection. At the client, pings
	// spend at most this share of the client's RTT before the tap. At the server, they spend at most
	// this share beyond it.
	// Source: measured, TestMarginsRiptide
	restShare = 0.3
	// plainRest is the share, like restShare, below which more messages could hardly change the
	// result. A share that is wrong by half is still below restShare.
	plainRest = restShare / 1.5
	// enoughAnswers is how many answers make a side's least answer time reliable.
	// Source: measured, TestMarginsRiptide
	enoughAnswers = 8
	// Overruled is how many contradictions take the tap away from a side, whatever the times show. One
	// or two can be packets that the capture lost.
	// Source: measured, TestMarginsRiptide
	Overruled = 3
)

// Verdict returns where the tap is, by everything that was weighed.
//
// Two measures show that a side is away:
//
//   - Its least time to an answer holds a round trip.
//   - The RTT that a client reports exceeds the time of its pings at the tap by a round trip.
//
// Both also hold the application's ticks. These are usually alike on both sides, so the figures of
// the sides are compared.
func (e *Evidence) Verdict() Verdict { return e.overrule(e.times()) }

// at returns the vantage at a side.
func at(x machine.Side) machine.Vantage { return machine.VantageA + machine.Vantage(x) }

// times returns where the tap is by the times alone.
func (e *Evidence) times() Verdict {
	a, b := &e.of[machine.A].waits, &e.of[machine.B].waits
	switch {
	case a.Count() == 0 && b.Count() == 0:
		return Verdict{machine.VantageUnknown, "unknown: neither side answers the other", false}
	case e.stream && min(a.Count(), b.Count()) >= enoughAnswers:
		// An RTT over TCP is mostly waiting for lost segments.
		return e.byAnswers()
	}
	for i := range e.of {
		if v, ok := e.byRTT(machine.Side(i)); ok {
			return v
		}
	}
	switch {
	case b.Count() == 0:
		return e.byUnanswered(oneAnswers(a, machine.A), machine.A)
	case a.Count() == 0:
		return e.byUnanswered(oneAnswers(b, machine.B), machine.B)
	}
	return e.byAnswers()
}

// byRTT decides by the share of a client's RTT that its pings spend beyond the tap. All of it means
// that the tap is at the client. ok is false where the figures do not decide.
func (e *Evidence) byRTT(side machine.Side) (v Verdict, ok bool) {
	client, server := &e.of[side], &e.of[side.Other()]
	pings := client.rtts.pings
	if pings < 2 {
		return v, false
	}
	own, beyond := client.rtts.means()
	switch share := float64(beyond) / float64(own); {
	case own-beyond > max(2*tick, client.pace.wait()+tick/2) && beyond > max(2*tick, server.pace.wait()+tick/2):
		return Verdict{
			machine.VantageBetween,
			fmt.Sprintf("between: of %v that %v gives as its RTT, its pings take %v beyond the place of "+
				"capture", machine.Rounded(own), side,
				machine.Rounded(beyond)), pings > 8,
		}, true
	case share > 1-restShare && own > tick:
		return Verdict{at(side), fmt.Sprintf("at %v: of %v that it gives as its RTT, its pings take %v beyond the place "+
			"of capture", side,
			machine.Rounded(own), machine.Rounded(beyond)), pings > 4 && share > 1-plainRest}, true
	case share < restShare && own > tick:
		return Verdict{
			at(side.Other()),
			fmt.Sprintf("at %v: of %v that %v gives as its RTT, its pings take %v beyond the place of capture", side.Other(),
				machine.Rounded(own), side, machine.Rounded(beyond)), pings > 4 && share < plainRest,
		}, true
	}
	return v, false
}

// oneAnswers decides by the answers of one side, where the other answers nothing.
func oneAnswers(w *waits, side machine.Side) Verdict {
	least := machine.Rounded(w.Least())
	switch {
	case w.Least() < quick:
		return Verdict{at(side), fmt.Sprintf("at %v: it answers within %v", side, least), false}
	case w.Least() > tick || w.Count() >= enoughAnswers && w.Least() > machine.NearProof:
		return Verdict{
			at(side.Other()), fmt.Sprintf("at %v: %v answers after %v at the least", side.Other(), side, least),
			false,
		}
	}
	return Verdict{machine.VantageUnknown, fmt.Sprintf("unknown: only %v answers, after %v", side, least), false}
}

// byUnanswered places the tap by what was lost, where only one side answers and its times do not decide. A
// receiver acks every copy. So copies that stay without an Ack were lost behind the tap, or their Acks were.
// If the other side's ids pass without one gap too, the tap stands at the other side.
func (e *Evidence) byUnanswered(v Verdict, answers machine.Side) Verdict {
	own, peer := &e.of[answers].against, &e.of[answers.Other()].against
	if n := own.owed.least(); v.Vantage == machine.VantageUnknown && n >= Overruled && peer.skips == 0 {
		v.Vantage = at(answers.Other())
		v.Reason = fmt.Sprintf("at %v: its ids were captured without a gap, and %v leaves %d copies without an "+
			"Ack", answers.Other(),
			answers, n)
	}
	return v
}

// byAnswers decides by how soon each side answers the other.
func (e *Evidence) byAnswers() Verdict {
	a, b := &e.of[machine.A].waits, &e.of[machine.B].waits
	near, ta, tb := machine.A, a.Least(), b.Least()
	if tb < ta {
		near = machine.B
		ta, tb = tb, ta
	}
	enough := min(a.Count(), b.Count()) >= enoughAnswers
	away := e.of[near.Other()].waits.Count()
	says := fmt.Sprintf("%v answers within %v, %v after %v", near, machine.Rounded(ta), near.Other(), machine.Rounded(tb))
	switch {
	case tb < quick:
		return Verdict{machine.VantageBoth, "at both: " + says, enough}
	case enough && ta > max(3*tick, e.of[near].pace.wait()+tick):
		return Verdict{machine.VantageBetween, "between: " + says, true}
	case tb < tick && (away < 16 || tb < 3*ta):
		// A few waits for a tick can be this long, so no round trip shows.
		return Verdict{machine.VantageBoth, "at both, or so near that it makes no difference: " + says, false}
	}
	return Verdict{at(near), fmt.Sprintf("at %v: %s", near, says), enough && ta < quick && ta*4 < tb}
}

// close reports whether both sides answer equally soon, within a frame.
func (e *Evidence) close() bool {
	a, b := &e.of[machine.A], &e.of[machine.B]
	return a.waits.Count() == 0 || b.waits.Count() == 0 ||
		(a.waits.Least()-b.waits.Least()).Abs() < max(a.pace.wait(), b.pace.wait(), tick)+machine.NearProof
}

// overrule weighs the contradictions against the times. Where both sides answer within a frame of
// each other, the times show little, and the side with contradictions is the one away. Where one
// side is clearly nearer, its contradictions can be faults of its own. The tracker weighs those
// with all else that it knows.
func (e *Evidence) overrule(v Verdict) Verdict {
	a, b := e.of[machine.A].against.count(), e.of[machine.B].against.count()
	from, less := machine.A, machine.B
	if b > a {
		from, less = less, from
	}
	most, least := max(a, b), min(a, b)
	says := fmt.Sprintf("between the place of capture and %v, %d messages were lost, doubled or overtaken", from, most)
	switch {
	case most == 0:
	case v.Vantage == machine.VantageBoth && least >= Overruled:
		v.Vantage, v.Reason = machine.VantageBetween, "between rather than both: "+
			says+fmt.Sprintf(", and %d of %v", least, less)
	case v.Vantage == machine.VantageBoth && most > least:
		v.Vantage, v.Reason = at(less), fmt.Sprintf("at %v rather than both: %s", less, says)
	case v.Vantage == at(from) && least == 0 && e.close():
		v.Vantage, v.Reason = at(less), fmt.Sprintf("at %v rather than %v: %s", less, from, says)
	}
	return v
}
