package tracker

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// deferMost is how many datagrams a deferred tracker holds back. Very many flows are shorter, and
// the memory of the sides is some twenty times that of so many datagrams.
// Source: bound, the datagrams that a deferred tracker holds back
const deferMost = 32

// NewDeferred is New for a caller that reads no effects before the end of the flow. The vantage
// may be known: the tracker then holds the first datagrams back all the same, while none of them
// can open another session. The caller must not change facts afterwards.
func NewDeferred(profile *wire.Profile, facts *machine.Facts) machine.Tracker {
	if facts.Vantage == machine.VantageUnknown {
		return New(profile, *facts)
	}
	t := NewByRules(profile, rulesOf(profile), machine.Facts{})
	t.doubtful = facts.Doubtful || facts.Readings.Doubts(t.rules.Reading())
	t.facts, t.deferred = facts, true
	return t
}

// Defers reports whether the tracker holds datagrams back although the vantage is known.
func (t *Tracker) Defers() bool { return t.deferred }

// putOff holds a datagram back, or ends the deferral and takes it.
func (t *Tracker) putOff(p *sighting, out *machine.Effects) {
	if out.NoEvents && t.Held.len() < deferMost && t.orderly(p) {
		t.identify(p)
		t.Held.add(p)
		return
	}
	t.catchUp(out)
	t.take(p, out)
}

// orderly reports whether a datagram follows those that are held back, as most do. Its number and its
// ack go on, and it acks nothing that has not passed. Such a datagram neither opens a session
// (opensSession) nor is one of a session before (leftBefore, Earlier.Stray). Its header is the newest
// that counts (takeHeader), so Identity needs no sides.
func (t *Tracker) orderly(p *sighting) bool {
	own, peer := &t.numbers[p.from&1], &t.numbers[p.from&1^1]
	before := &t.Held.before
	if own.met {
		ahead := t.rules.Distance(p.sequence, before.sequence[p.from&1])
		if ahead <= 0 || ahead >= strayAhead {
			return false
		}
	}
	if !p.header {
		return true
	}
	if t.rules.Claims(p.ack, p.ackBits).Nothing(t.rules) {
		return !own.named
	}
	return !(own.named && t.rules.Distance(p.ack, before.ack[p.from&1]) < 0) &&
		!(peer.met && t.rules.Distance(p.ack, before.sequence[p.from&1^1]) > 0)
}

// catchUp processes the datagrams that were put off. Their events are not wanted any more.
func (t *Tracker) catchUp(out *machine.Effects) {
	quiet := out.NoEvents
	out.NoEvents, t.deferred = true, false
	t.useFacts()
	held := t.Held
	t.Held = heldLog{}
	held.each(func(p *sighting) { t.step(p, out) })
	out.NoEvents = quiet
}

// useFacts makes the sides from the facts that were given.
func (t *Tracker) useFacts() {
	given := *t.facts
	given.Readings = machine.Readings{} // this run counts for itself
	t.facts = &given
	t.setVantage(given.Vantage, given.VantageReason)
}

// caughtUp returns a copy of a deferred tracker that has processed all of its datagrams. It serves
// those who read from the tracker before the end.
func (t *Tracker) caughtUp() *Tracker {
	c := *t
	c.catchUp(&machine.Effects{})
	return &c
}
