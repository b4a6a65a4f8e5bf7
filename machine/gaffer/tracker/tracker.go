package tracker

import (
	"slices"
	"sync/atomic"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Tracker rebuilds from a capture what both endpoints of a flow knew.
//
// A header is a witness of its sender's reads: it names what its sender had accepted
// when it sent. How much that proves depends on where the tap is:
//
//	near (witness.go)    the tap is at the side. What passed the tap lies in its
//	                     socket, in order. The newest packet that a header newly
//	                     names proves that all before it were read too. The State
//	                     predicts the fate of each (settle.go). Exact.
//	far (evidence.go)    the side is known by what its headers name, from the
//	                     frame on that brings such a header. The rest is unknown.
//
// The first datagrams decide which of the two a side is (vantage.go). They are held
// back until then. Facts can give a known vantage instead.
type Tracker struct {
	profile   *wire.Profile
	rules     *gaffer.Rules
	facts     *machine.Facts // shared and never changed while the vantage is open; in room from then on
	Sides     *[2]side       // nil while the vantage is open
	room      *room          // the memory of Sides; nil if they have memory of their own
	Held      heldLog        // while the vantage is open
	numbered  bool           // the profile's packets carry sequence numbers
	canonical bool           // its headers have a canonical form
	fixed     bool           // its headers show what bit 0 of ack_bits means
	doubtful  bool           // bit 0 may mean something else, so acks prove less
	last      machine.Instant
	receipts  *receipts       // nil unless WantReceipts was called
	numbers   [2]firstNumbers // for Identity
	began     [2]bool         // the side's first header said that it had received nothing
	deferred  bool            // the vantage is known, and Held has the datagrams all the same: see NewDeferred
}

// New returns the tracker of a flow that uses a profile. Facts are what an earlier run
// over the same flow learned, or the zero value.
func New(profile *wire.Profile, facts machine.Facts) machine.Tracker {
	return NewByRules(profile, rulesOf(profile), facts)
}

// lastRules are the rules of the newest tracker. Most flows of a capture share a profile.
var lastRules atomic.Pointer[gaffer.Rules]

// rulesOf returns gaffer.RulesOf(profile), as one copy for trackers that follow each other.
func rulesOf(profile *wire.Profile) *gaffer.Rules {
	r := gaffer.StatedRules(profile)
	if last := lastRules.Load(); last != nil && *last == r {
		return last
	}
	own := r // a copy, so that r stays off the heap where the rules are shared
	lastRules.Store(&own)
	return &own
}

// noFacts are shared by all trackers that start without facts. They never change.
var noFacts machine.Facts

// NewByRules returns a tracker whose sides follow r instead of the profile's rules.
func NewByRules(profile *wire.Profile, r *gaffer.Rules, facts machine.Facts) *Tracker {
	t := &Tracker{profile: profile, rules: r, facts: &noFacts, numbered: profile != nil && profile.SequenceBits() > 0}
	t.canonical = profile != nil && profile.Form == wire.FormReliable
	t.fixed = profile != nil && profile.Form == wire.FormFixed
	t.doubtful = facts.Doubtful || facts.Readings.Doubts(r.Reading())
	facts.Readings = machine.Readings{} // this run counts for itself
	if facts.Settings != nil || facts != noFacts {
		given := facts // a copy, so that facts stays off the heap where there are none
		t.facts = &given
	}
	if facts.Vantage != machine.VantageUnknown {
		t.setVantage(facts.Vantage, facts.VantageReason)
	}
	return t
}

func (t *Tracker) setVantage(v machine.Vantage, reason string) {
	t.takeRoom()
	t.facts.Vantage, t.facts.VantageReason = v, reason
	for i := range t.Sides {
		s := &t.Sides[i]
		s.side, s.Near = machine.Side(i), v.Near(machine.Side(i))
		s.application.refuses = t.facts.Refuses[i]
		if t.facts.Takes[i] {
			s.application.taken = takenEnough
		}
	}
}

// Observe takes the next datagram of the flow.
func (t *Tracker) Observe(d *machine.Datagram, out *machine.Effects) {
	var p sighting
	if t.parse(d, &p, out) {
		t.take(&p, out)
	}
}

func (t *Tracker) take(p *sighting, out *machine.Effects) {
	if t.Sides != nil {
		if t.step(p, out); !out.NewSession {
			t.identify(p)
		}
		return
	}
	if t.deferred {
		t.putOff(p, out)
		return
	}
	if t.heldOpensSession(p) {
		out.NewSession = true
		return
	}
	t.identify(p)
	t.Held.add(p)
	if n := t.Held.len(); n >= holdLeast && n&(n-1) == 0 {
		place := t.placeTap()
		if place.sure || n >= holdMost {
			t.release(&place, out)
		}
	}
}

// release decides the vantage and processes the datagrams that were held back.
func (t *Tracker) release(place *placement, out *machine.Effects) {
	t.setVantage(place.vantage, place.reason)
	t.facts.Prompt = place.prompt
	for i := range t.facts.Supposed {
		t.facts.Supposed[i] = place.supposed && place.vantage.Near(machine.Side(i))
	}
	held := t.Held
	t.Held = heldLog{}
	held.each(func(p *sighting) {
		if t.step(p, out); out.NewSession {
			// Only the vantage shows this new session. The flow can no longer be split, so its
			// sides restart.
			out.NewSession = false
			t.drainAll(out)
			t.setVantage(place.vantage, place.reason)
			t.step(p, out)
		}
	})
}

// Finish settles what is still open when the capture ends.
func (t *Tracker) Finish(out *machine.Effects) {
	if t.deferred {
		t.catchUp(out)
	}
	if t.Sides == nil {
		place := t.placeTap()
		t.release(&place, out)
	}
	t.drainAll(out)
}

func (t *Tracker) drainAll(out *machine.Effects) {
	for i := range t.Sides {
		t.settleHeaders(&t.Sides[i], &t.Sides[1-i], out)
		if t.Sides[i].Near {
			t.drain(machine.Side(i), out)
		}
		t.reportBurst(&t.Sides[i], out)
		t.reportTotals(machine.Side(i), out)
	}
}

// step processes one datagram:
//
//  1. what its header says about the sender's reads;
//  2. that it was sent;
//  3. that it is on its way to the peer.
func (t *Tracker) step(p *sighting, out *machine.Effects) {
	s, peer := &t.Sides[p.from&1], &t.Sides[p.from&1^1]
	s.ExpectSent(p.sequence)
	ahead := 1 // distance to the newest of its side; 1 for the first one
	if s.Met {
		ahead = t.rules.Distance(p.sequence, s.sent.top)
		if ahead >= strayAhead && s.earlier.Stray(p.sequence, s.sent.top, p.at) || t.leftBefore(s, peer, p, ahead) {
			return
		}
		if t.opensSession(s, p, ahead) {
			out.NewSession = true
			return
		}
	} else {
		t.meet(s, p)
	}
	t.last = p.at
	if ahead > 0 {
		s.estimate.clock.sent(s.sent.top64+int64(ahead), p.at)
	}
	if p.header {
		c := t.rules.Claims(p.ack, p.ackBits)
		if ahead > 0 {
			t.weighReadings(s, peer, p, c)
		}
		t.takeHeader(s, peer, p, c, s.sent.top64+int64(ahead), out)
		if ahead > 0 {
			t.checkStanding(s, peer, p, c, out)
		}
	}
	e := t.enter(s, peer, p, ahead, out)
	if peer.Near {
		peer.queue.push(e, p, peer.SentNext, ahead > 0)
		if peer.queue.full() {
			t.settle(peer.side, &settling{at: p.at, silent: true}, out)
		}
	}
}

// enter records that p was sent, and returns its entry in the sent buffer. It returns
// nil if p is too old for the buffer.
func (t *Tracker) enter(s, peer *side, p *sighting, ahead int, out *machine.Effects) *gaffer.Sent {
	number := s.sent.top64 + int64(ahead)
	var e *gaffer.Sent
	if ahead > 0 {
		if ahead == 1 && s.mayStepOver() {
			s.sent.stepsOne = true
		}
		if ahead > 1 || p.at-s.sent.topAt >= machine.Instant(stallLeast) || len(peer.headers.claimed) > 0 {
			t.advance(s, peer, p, ahead, out)
		}
		s.sent.top, s.sent.top64, s.sent.topAt, s.sent.starts = p.sequence, number, p.at, false
		if s.burst.open && number > s.burst.last+burstWait {
			t.reportBurst(s, out)
		}
		if !s.Near {
			s.losses.before.Settle(false)
		}
		s.sent.heardFrom = peer.sent.distinct
		if s.SentSpan > 0 {
			e = s.EnterAhead(p.sequence, ahead)
		} else {
			e = s.EnterSent(p.sequence)
		}
	} else if e = s.Sent(p.sequence); e != nil {
		s.sent.late(ahead)
		if p.header && e.Flags&gaffer.SentHeader == 0 {
			e.Ack, e.AckBits = p.ack, p.ackBits
			e.Flags |= gaffer.SentHeader
		}
		if p.count > 0 {
			e.Bytes += p.payload
		}
		s.sent.bytes += uint64(p.length)
		t.repeated(p, e, out)
		return e
	} else {
		s.sent.late(ahead)
		s.sent.first64 = min(s.sent.first64, number)
		s.estimate.clock.sent(number, p.at)
		s.losses.before.Found()
		if b := &s.burst; b.open && number >= b.first && number <= b.last {
			b.lost--
		}
		s.sent.disorder++
		out.At(p.at, p.ref).Report(gaffer.OutOfOrder, p.from, machine.Certain, 0, float64(-ahead))
		e = s.EnterSent(p.sequence)
	}
	s.sent.distinct++
	if number <= s.sent.floor64 {
		s.sent.below++
	}
	s.sent.bytes += uint64(p.length)
	if e != nil {
		// Written field by field, and not read: the slot may not have come yet (ExpectSent).
		flags := gaffer.SentLive
		if p.header {
			flags |= gaffer.SentHeader
		}
		if p.count > 0 {
			flags |= gaffer.SentFragmented
			s.sent.parts = true
		}
		e.At, e.Ref, e.Bytes, e.Ack, e.AckBits, e.Flags = p.at, p.ref, p.payload, p.ack, p.ackBits, flags
	}
	if !out.NoEvents {
		v := emit(out, machine.EventSent, p.from, machine.Certain, p.at, p.ref)
		v.Sequence, v.Sequence64, v.About = p.sequence, number, p.ref
	}
	return e
}

// emit appends an event and returns it for the caller to complete. It returns nil if
// the caller wants no events.
func emit(out *machine.Effects, kind machine.EventKind, x machine.Side, sure machine.Certainty, at machine.Instant,
	ref machine.Ref,
) *machine.Event {
	if out.NoEvents {
		return nil
	}
	n := len(out.Events)
	if n == cap(out.Events) {
		out.Events = slices.Grow(out.Events, 1)
	}
	out.Events = out.Events[:n+1]
	v := &out.Events[n]
	// Field by field: a literal would be built elsewhere and copied.
	*v = machine.Event{}
	v.Kind, v.Side, v.Certainty, v.At, v.Ref, v.RTT = kind, x, sure, at, ref, -1
	return v
}

// gradeJump is grade for packets that a far side named while its window jumped. Lies
// show in such jumps. If the flow may have lies, each of these packets may be one.
func (t *Tracker) gradeJump(c machine.Certainty, jumped bool) machine.Certainty {
	if jumped && (t.facts.Suspect[machine.A] || t.facts.Suspect[machine.B]) {
		c = min(c, machine.Likely)
	}
	return t.grade(c)
}

// grade lowers a certainty if an endpoint of the flow is known to ack packets that it
// never received: then an ack proves nothing. It also lowers it as restOnBase does.
func (t *Tracker) grade(c machine.Certainty) machine.Certainty {
	c = t.restOnBase(c)
	if t.lied() {
		return min(c, machine.Likely)
	}
	return c
}

// lied reports whether an endpoint of the flow is known to ack packets that it never received. In a
// first run its first such header shows that.
func (t *Tracker) lied() bool {
	return t.facts.Liar[machine.A] || t.facts.Liar[machine.B] ||
		t.Sides != nil && t.Sides[machine.A].headers.lies+t.Sides[machine.B].headers.lies > 0
}

// weighReadings weighs what a new header shows of the meaning of ack_bits. In a fixed
// header that is what bit 0 names. In reliable's it is whether some bits are zeroed.
func (t *Tracker) weighReadings(s, peer *side, p *sighting, c gaffer.Claims) {
	r, e, last := t.rules, &t.facts.Readings, &s.headers.last
	switch {
	case t.canonical:
		if r.WeighZeroed(e, p.from, last, c, wire.RelyZeroedBits) && t.facts.End == 0 {
			t.doubtful = t.facts.Doubtful || e.Doubts(r.Reading()) // an earlier run would know more
		}
		return
	case !t.fixed:
		return
	}
	first := p.ack + 2 // newer than all that the header names
	if peer.Met {
		first = uint32(peer.sent.first64) & r.Mask()
	}
	if r.WeighAckBase(e, p.from, last, p.ack, p.ackBits, first) && t.facts.End == 0 {
		t.doubtful = t.facts.Doubtful || e.Doubts(r.Reading()) // an earlier run would know more
	}
	e.Differ = e.Differ || r.AckBasesDiffer(last, p.ack, p.ackBits, first)
}

// restOnBase lowers the certainty of a fact that rests on which packets a header names. It
// does so where it is not certain what the bits of ack_bits mean.
func (t *Tracker) restOnBase(c machine.Certainty) machine.Certainty {
	return machine.AmongOpen(c, !t.doubtful)
}
