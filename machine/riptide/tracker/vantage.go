package tracker

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// reach measures how far a side is from the tap: the least time from a message
// passing the tap towards it to its answer. A side at the tap answers in the tick
// of the application that reads; a side that is away answers after a round trip
// and its tick, never sooner.
type reach struct {
	answers machine.Fastest
	once    int           // of answers, those to messages that are sent once
	soonest time.Duration // the least of these
	asked   [2][]asking   // rings, by sequence: as long as what is open needs, reachSize at most
	newest  [2]uint16     // that was asked, by slot
	met     [2]bool

	// Of a client: from its pings to their answers as they pass the tap, and the
	// RTT that it tells. The two are alike where the tap is at the client.
	pings      int
	atTap, own time.Duration    // sums
	odd        [2]time.Duration // of them, the sample in which the RTT is the most beyond the tap's
	lastPing   time.Duration    // the newest sample at the tap; 0 none
	told       int16            // the RTT that it told last
	ping       uint8            // and by which ping
	// nearest is the least that a new RTT of it exceeds what its ping took beyond
	// the tap: the way from the tap to it and back, and its tick.
	nearest time.Duration
	news    int // RTTs that were new

	against contradictions
	sends   machine.Instant // when it last sent
	frame   time.Duration   // the least time between its sends that are apart; 0 unknown
}

// asking is a message that is to be answered: a reliable one (slot 0), or a
// heartbeat or a notify message (1).
type asking struct {
	at       machine.Instant
	sequence uint16
	kind     wire.Type
	live     bool
}

const reachSize, reachLeast = 128, 4

// ask takes a message that the side is to answer. One that is not newer than all
// before may be a copy of one that is not in the capture.
func (r *reach) ask(kind wire.Type, sequence uint16, at machine.Instant) {
	slot := slotOf(kind)
	newer := r.met[slot] && riptide.GapOf(sequence, r.newest[slot]) > 0
	if newer || !r.met[slot] {
		first := !r.met[slot]
		r.newest[slot], r.met[slot] = sequence, true
		if first && sequence > 2 {
			return
		}
	} else if kind != wire.Heartbeat {
		return
	}
	r.enter(slot, asking{at, sequence, kind, true})
}

// enter puts a message into its ring. One that is open still is overwritten by the
// one that comes reachSize ids after it; for any other the ring grows.
func (r *reach) enter(slot int, a asking) {
	ring := r.asked[slot]
	for {
		if n := len(ring); n > 0 {
			place := &ring[int(a.sequence)&(n-1)]
			if !place.live || n == reachSize || place.sequence == a.sequence {
				*place = a
				return
			}
		}
		ring = make([]asking, max(reachLeast, 2*len(ring)))
		for _, open := range r.asked[slot] {
			if open.live {
				ring[int(open.sequence)&(len(ring)-1)] = open
			}
		}
		r.asked[slot] = ring
	}
}

func (r *reach) answer(kind wire.Type, sequence uint16, at machine.Instant) (wait time.Duration, ok bool) {
	ring := r.asked[slotOf(kind)]
	if len(ring) == 0 {
		return 0, false
	}
	a := &ring[int(sequence)&(len(ring)-1)]
	if !a.live || a.sequence != sequence || a.kind != kind {
		return 0, false
	}
	a.live = false
	wait = at.Sub(a.at)
	if kind != wire.Reliable {
		if r.once++; r.once == 1 || wait < r.soonest {
			r.soonest = wait
		}
	}
	r.answers.Add(wait)
	return wait, true
}

// least gives the least time to an answer.
func (r *reach) least() time.Duration { return r.answers.Least() }

// nearProof is how soon a side must answer what passes the tap, at the soonest,
// to be shown to stand at the tap, or so close that nothing tells the difference.
const nearProof = 4 * time.Millisecond

// relayLeast is the least time to an answer that shows a side which has the address
// of the other to be a relay: a way, not a tick.
const relayLeast = 36 * time.Millisecond

// measured takes by how much a client's RTT exceeds what its ping took beyond the tap.
func (r *reach) measured(here time.Duration) {
	if r.news++; r.news == 1 || here < r.nearest {
		r.nearest = here
	}
}

// spoke takes the time of a message of the side. Those of one frame go out together.
func (r *reach) spoke(at machine.Instant) {
	if gap := at.Sub(r.sends); r.sends != 0 && gap > nearProof && (r.frame == 0 || gap < r.frame) {
		r.frame = gap
	}
	r.sends = at
}

// wait gives how long the side can take to answer what is there: what it sends comes
// once a frame.
func (r *reach) wait() time.Duration {
	return min(max(r.frame, riptide.UsualTick/2), slowFrame)
}

// slowFrame bounds what is taken for a frame: a side that says little shows none.
const slowFrame = 100 * time.Millisecond

// shows reports whether the side is shown to stand at the tap. Of its answers to
// reliable messages the very least does not count: it can be to a copy of which
// the capture missed the first. An RTT is told in whole milliseconds.
func (r *reach) shows() bool {
	return r.answers.Count() > 1 && r.answers.Second() < nearProof ||
		r.once > 0 && r.soonest < nearProof || r.news > 0 && r.nearest < nearProof-time.Millisecond
}

func slotOf(kind wire.Type) int {
	if kind == wire.Reliable {
		return 0
	}
	return 1
}

// reaches are the figures of both sides, and who of them asks.
type reaches struct {
	of     [2]reach
	roles  riptide.BeatRoles
	opened bool
	opener machine.Side // who sent the first message
	begun  bool         // and it was the client, with a Connect
	stream bool         // over TCP
}

// weigh takes a message of a speaker into both sides' figures. Over a stream nothing
// is lost between the tap and a side.
func (r *reaches) weigh(p *sighting, speaker *riptide.Speaker, stream bool, m *wire.Message) {
	own, peer := &r.of[p.from], &r.of[p.from.Other()]
	d := speaker.Codec.Dialect
	is := r.roles.Take(p.from, d, m)
	own.spoke(p.at)
	if r.stream = stream; !stream {
		r.contradict(p, riptide.BehaviourOf(d, speaker.Builds), is, m)
	}
	switch {
	case m.Type.Reliable():
		peer.ask(wire.Reliable, m.Sequence, p.at)
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		own.answer(wire.Reliable, m.Cause, p.at)
	case is == riptide.BeatPing:
		if told := time.Duration(m.RTT) * time.Millisecond; m.RTT > 0 && own.lastPing > 0 && told > own.lastPing-2*time.Millisecond {
			own.pings++
			own.atTap += own.lastPing
			own.own += told
			if told-own.lastPing > own.odd[1]-own.odd[0] {
				own.odd = [2]time.Duration{own.lastPing, told}
			}
			if m.RTT != own.told && m.Ping == own.ping+1 {
				// It is of the ping before: one that is the same may stem from an older one.
				own.measured(time.Duration(m.RTT)*time.Millisecond - own.lastPing)
			}
		}
		own.lastPing, own.told, own.ping = 0, m.RTT, m.Ping
		peer.ask(wire.Heartbeat, uint16(m.Ping), p.at)
	case is == riptide.BeatAnswer:
		if wait, ok := own.answer(wire.Heartbeat, uint16(m.Ping), p.at); ok {
			peer.lastPing = wait
		}
	case m.Type == wire.Notify && !m.Bare:
		own.answer(wire.Notify, m.Last, p.at)
		peer.ask(wire.Notify, m.Sequence, p.at)
	}
}

// judge tells where the tap stands, and whether more datagrams could
// hardly change that.
//
// Two things tell a side that is away: its least time to an answer holds a round
// trip, and so does the difference between the RTT that a client tells and what
// its pings take as they pass the tap. Both also hold the application's ticks,
// which are alike on both sides as a rule, so the figures are compared.
func (r *reaches) judge() (v machine.Vantage, reason string, sure bool) {
	v, reason, sure = r.times()
	v, reason = r.overrule(v, reason)
	return v, reason, sure
}

const (
	quick = 1500 * time.Microsecond // an answer of a machine that is there
	tick  = 12 * time.Millisecond
)

// times tells where the tap stands by the times alone.
func (r *reaches) times() (v machine.Vantage, reason string, sure bool) {
	a, b := &r.of[machine.A], &r.of[machine.B]
	at := func(s machine.Side) machine.Vantage { return machine.VantageA + machine.Vantage(s) }
	if a.answers.Count() == 0 && b.answers.Count() == 0 {
		return machine.VantageUnknown, "unknown: neither side answers the other", false
	}
	// What of a client's RTT its pings take beyond the tap: all of it where the
	// tap is at the client.
	for i := range r.of {
		client, side := &r.of[i], machine.Side(i)
		if client.pings < 2 || r.stream && min(a.answers.Count(), b.answers.Count()) >= 8 {
			continue // an RTT over TCP is mostly what the stream waits for lost segments
		}
		own, beyond := client.own, client.atTap
		n := time.Duration(client.pings)
		if rest := own - client.odd[1] - (beyond - client.odd[0]); n > 2 && client.odd[1]-client.odd[0] > 3*rest/(n-1)+2*tick {
			own, beyond, n = own-client.odd[1], beyond-client.odd[0], n-1 // one RTT alone does not decide
		}
		own, beyond = own/n, beyond/n
		switch share := float64(beyond) / float64(own); {
		case own-beyond > max(2*tick, client.wait()+tick/2) && beyond > max(2*tick, r.of[side.Other()].wait()+tick/2):
			return machine.VantageBetween, fmt.Sprintf("between: of %v that %v gives as its RTT, its pings take %v beyond the tap", machine.Rounded(own), side, machine.Rounded(beyond)), client.pings > 8
		case share > 0.7 && own > tick:
			return at(side), fmt.Sprintf("at %v: of %v that it gives as its RTT, its pings take %v beyond the tap", side, machine.Rounded(own), machine.Rounded(beyond)), client.pings > 4 && share > 0.8
		case share < 0.3 && own > tick:
			return at(side.Other()), fmt.Sprintf("at %v: of %v that %v gives as its RTT, its pings take %v beyond the tap", side.Other(), machine.Rounded(own), side, machine.Rounded(beyond)), client.pings > 4 && share < 0.2
		}
	}
	if a.answers.Count() == 0 || b.answers.Count() == 0 {
		only, side := a, machine.A
		if a.answers.Count() == 0 {
			only, side = b, machine.B
		}
		switch {
		case only.least() < quick:
			return at(side), fmt.Sprintf("at %v: it answers within %v", side, machine.Rounded(only.least())), false
		case only.least() > tick || only.answers.Count() >= 8 && only.least() > nearProof:
			return at(side.Other()), fmt.Sprintf("at %v: %v answers after %v at the least", side.Other(), side, machine.Rounded(only.least())), false
		}
		return machine.VantageUnknown, fmt.Sprintf("unknown: only %v answers, after %v", side, machine.Rounded(only.least())), false
	}
	near, ta, tb := machine.A, a.least(), b.least()
	if tb < ta {
		near = machine.B
		ta, tb = tb, ta
	}
	enough := min(a.answers.Count(), b.answers.Count()) >= 8
	away := r.of[near.Other()].answers.Count()
	says := fmt.Sprintf("%v answers within %v, %v after %v", near, machine.Rounded(ta), near.Other(), machine.Rounded(tb))
	switch {
	case tb < quick:
		return machine.VantageBoth, "at both: " + says, enough
	case enough && ta > max(3*tick, r.of[near].wait()+tick):
		return machine.VantageBetween, "between: " + says, true
	case tb < tick && (away < 16 || tb < 3*ta):
		// A few waits for a tick can be so long: no round trip shows.
		return machine.VantageBoth, "at both, or so near that it makes no difference: " + says, false
	}
	return at(near), fmt.Sprintf("at %v: %s", near, says), enough && ta < quick && ta*4 < tb
}

// close reports whether both sides answer as soon as each other, but for a frame.
func (r *reaches) close() bool {
	a, b := &r.of[machine.A], &r.of[machine.B]
	return a.answers.Count() == 0 || b.answers.Count() == 0 || (a.least()-b.least()).Abs() < max(a.wait(), b.wait(), tick)+nearProof
}
