package judge

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A capture can begin in the middle of a flow, and a side can begin anew on the
// same port. Both are no fault, and both look like one at first:
//
//	ids of a side:  5 9 6           a packet from before the capture was sent again
//	                300 301 1 2     the side began anew
//	                300 301 1 302   the side used a wrong id
//
// So an id is held against a side only if it is newer than the capture. And the
// side's next id must show that the side goes on as before.
const (
	// joinSlack is how long after the capture's beginning a packet from before it
	// may still be sent again for the first time. A longer time between two copies
	// of the side counts instead.
	// Source: unmeasured, TestPartial of internal/srdpcheck exercises it
	joinSlack = 1500 * time.Millisecond
	// beginLeast is the least time in which a process ends and another begins on
	// its port.
	// Source: unmeasured, the time to start a process
	beginLeast = 20 * time.Millisecond
	// shortSession is how many steps of its ids a side must have made for one id to
	// tell that it goes on as before.
	// Source: unmeasured, TestRestart of internal/srdpcheck exercises it
	shortSession uint16 = 8
	// patience is the least time that an acknowledgement from before the capture
	// may take.
	// Source: unmeasured, TestPartial of internal/srdpcheck exercises it
	patience = 250 * time.Millisecond
	// overtakes is how long after a side began anew its older packets may pass a
	// tap away from it.
	// Source: unmeasured, TestRestart of internal/srdpcheck exercises it
	overtakes = time.Second
)

// suspicion is a divergence that counts unless the side began anew with the
// packet. It was found when high was the side's newest id.
type suspicion struct {
	v    *machine.Divergence
	id   uint16
	high uint16
	at   machine.Instant
}

// ahead returns how far id a is ahead of b, or 0 where it is not.
func ahead(a, b uint16) uint16 {
	if !newer(a, b) {
		return 0
	}
	return (a - b) & 0x7fff
}

// suspects keeps a divergence of a packet until the side's next id.
func (s *judged) suspects(j *Judge, l *judgedLane, d *machine.Datagram, v *machine.Divergence) {
	if l.suspect == nil {
		s.draw(j, d, v)
		l.suspect = &suspicion{v, j.pk.ID, l.high, d.At}
		if s.first == nil && !s.near {
			s.first = v
		}
	}
}

// concludes takes the end of the flow. Away from the side, overtaken packets hide whether it
// began anew or used a wrong id. So its first suspicion counts as likely, unless an earlier
// packet diverges, or another rule is broken.
func (s *judged) concludes() {
	v, first := s.opinion.Divergence, s.first
	if first == nil || v != nil && (v.Rule != first.Rule || v.Ref <= first.Ref) {
		return
	}
	first.Assumed = true
	s.opinion.Divergence = first
}

// goesOn takes the first copy of a packet. It shows whether the side goes on as
// before, or began anew. It returns the divergence that counts then.
func (s *judged) goesOn(l *judgedLane, id uint16, at machine.Instant) *machine.Divergence {
	if v := s.returns(l, id, at); v != nil {
		return v
	}
	x := l.suspect
	if x == nil {
		step := ahead(id, l.high)
		if !l.met || step == 0 {
			l.back = at
			return nil
		}
		usual := 2 * max(1, l.step)
		if l.step = max(l.step, step); step > usual {
			return nil
		}
		if x := s.owed; x != nil && l.back > x.at {
			return nil // the side may have begun anew with the older id
		}
		return s.alive(0)
	}
	old, anew := ahead(id, x.high), ahead(id, x.id)
	switch {
	case anew > 0 && (old == 0 || anew < old):
		s.beginsAnew(l, x, id, at)
	case old == 0, !s.near && at.Sub(x.at) < overtakes:
		// A packet that others overtook says nothing.
		if follows(id, x.high, x.id, l.usual()) {
			x.high = id
		}
	case ahead(x.high, l.begin) < shortSession*max(1, l.step):
		l.suspect = nil
		s.doubts(x.v)
		s.opinion.Undecided++
	default:
		l.suspect = nil
		return s.earliest(x.v)
	}
	return nil
}

// doubts keeps the first divergence that a side's beginning anew explains.
func (s *judged) doubts(v *machine.Divergence) {
	if s.doubted == nil {
		s.doubted = v
	}
}

// earliest takes a divergence that no beginning explains. It returns the first
// one by the same rule: the same fault explains that too.
func (s *judged) earliest(v *machine.Divergence) *machine.Divergence {
	if x := s.doubted; x != nil && x.Rule == v.Rule && x.Ref < v.Ref {
		return x
	}
	return v
}

// session is what the judge knew of a side's ids before the side seemed to begin
// anew with the packet of v.
type session struct {
	v                        *machine.Divergence
	first, begin, high, step uint16
	anew, usual, steps       uint16
	fresh                    bool
	round                    uint32
	at                       machine.Instant
	since                    uint16 // the newest of the ids that began anew
	ids                      uint16 // how many of them came in a row
}

// follows reports whether an id follows the newest id of before. It is also far from the newest
// one since. usual is how far the side goes on at once on average.
func follows(id, before, since, usual uint16) bool {
	old, anew := ahead(id, before), ahead(id, since)
	return old > 0 && anew/4 >= old && anew >= max(shortSession, 4*usual)
}

// usual returns how far a side goes on at once on average.
func (l *judgedLane) usual() uint16 { return ahead(l.high, l.begin)/max(1, l.steps) + 1 }

// returns takes the first copy of a packet after a side seemed to begin anew. An
// id that follows the ids of before, and is far from those since, shows that it
// did not. For example, a side has sent 300, changes its resends of 280 and 282,
// and goes on with 301. It returns the divergence that counts then.
func (s *judged) returns(l *judgedLane, id uint16, at machine.Instant) *machine.Divergence {
	x := l.left
	if x == nil {
		return nil
	}
	settled := s.near || at.Sub(x.at) >= overtakes // no packet from before is still on its way
	if follows(id, x.high, x.since, x.usual) {
		if x.high, x.ids = id, 0; !settled {
			return nil
		}
		l.left = nil
		l.suspect, l.round = nil, x.round
		l.steps = x.steps
		l.first, l.begin, l.high, l.step, l.anew, l.fresh = x.first, x.begin, x.high, x.step, x.anew, x.fresh
		l.plain, l.top = true, x.high
		return s.earliest(x.v)
	}
	if newer(id, x.since) {
		x.since = id
	}
	if x.ids++; x.ids >= shortSession && settled {
		l.left = nil // it did begin anew
		if s.doubted == x.v {
			s.doubted = nil
		}
	}
	return nil
}

// owed is a missing acknowledgement of what passed at a time, or later.
type owed struct {
	v  *machine.Divergence
	at machine.Instant
}

// alive takes a packet that shows that the side has not begun anew since an
// instant. It returns what the side then failed to acknowledge.
func (s *judged) alive(since machine.Instant) *machine.Divergence {
	x := s.owed
	if x == nil || since > x.at {
		return nil
	}
	s.owed = nil
	return x.v
}

// releases takes a side that has begun anew: what it had not acknowledged at a
// time may be lost.
func (s *judged) releases(at machine.Instant) {
	s.owed = nil
	for i := range s.asked {
		if a := &s.asked[i]; a.at <= at {
			a.may = true
		}
	}
}

// beginsAnew forgets what the side knew before it sent the suspected packet.
// What it sent before stays known: acknowledgements of that may be on their way.
// What it had not acknowledged may be lost.
func (s *judged) beginsAnew(l *judgedLane, x *suspicion, id uint16, now machine.Instant) {
	if l.left != nil {
		l.left.since, l.left.ids = id, 0 // nothing shows yet that the first of them was true
	} else {
		l.left = &session{
			v: x.v, first: l.first, begin: l.begin, high: x.high, step: l.step, anew: l.anew, fresh: l.fresh, at: x.at,
			since: id, round: l.round, usual: l.usual(), steps: l.steps,
		}
		l.steps = 0
	}
	s.doubts(x.v)
	l.round++
	if first := l.sent.find(x.id); first != nil {
		first.round = l.round
	}
	l.suspect = nil
	l.met, l.first, l.begin, l.high, l.step = true, x.id, x.id, x.id, 0
	l.plain, l.top, l.waits, l.fresh, l.anew = true, x.id, false, true, x.id
	s.releases(now) // what it acknowledged since may have been taken for an older copy
	s.opinion.Undecided++
}

// owes takes a missing acknowledgement. If the side was silent around it, it may
// have begun anew in between. Its next data shows whether it did.
func (s *judged) owes(j *Judge, a arrival, d *machine.Datagram, v *machine.Divergence) *machine.Divergence {
	spoke := max(s.spoke, j.began)
	if d.At.Sub(spoke) < beginLeast && spoke.Sub(max(a.spoke, j.began)) < beginLeast {
		return v
	}
	if s.owed == nil {
		s.draw(j, d, v)
		s.owed = &owed{v, a.since}
	}
	return nil
}

// joined is a divergence in the beginning of a capture, age after it began. A
// packet from before it may explain the divergence.
type joined struct {
	v   *machine.Divergence
	age time.Duration
}

// joins takes a divergence of an acknowledgement that no packet in the capture
// asks for. The packet may have passed before the capture, if its
// acknowledgement took as long as that.
func (s *judged) joins(j *Judge, peer *judged, d *machine.Datagram, v *machine.Divergence) *machine.Divergence {
	age := d.At.Sub(j.began)
	switch {
	case v == nil || age > joinSlack && age > peer.answerLimit():
		return v
	case age <= joinSlack && s.joined == nil:
		s.draw(j, d, v)
		s.joined = &joined{v, age}
	}
	s.opinion.Undecided++
	return nil
}

// answerLimit returns the longest time that an acknowledgement of a side's
// packet can take, by those that passed.
func (s *judged) answerLimit() time.Duration { return patience + 4*s.answered }

// settleJoined decides about a divergence in the capture's beginning, once it is
// known how long acknowledgements take.
func (s *judged) settleJoined(peer *judged) {
	x := s.joined
	if s.joined = nil; x == nil || peer.answered == 0 || x.age <= peer.answerLimit() {
		return
	}
	if v := s.opinion.Divergence; v == nil || v.Ref > x.v.Ref {
		s.opinion.Divergence = x.v
	}
}

// isNew takes an id that is newer than the capture.
func (l *judgedLane) isNew(id uint16) {
	if !l.fresh || newer(l.anew, id) {
		l.fresh, l.anew = true, id
	}
}
