package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// ack takes an acknowledgement that s sent for data of its peer.
func (t *Tracker) ack(s, peer *party, p *sighting, out *machine.Effects) {
	pk := &t.pk
	l := peer.lanes.of(srdp.Pair{Source: pk.Destination, Destination: pk.Source}, t.proxied(), false)
	var e *life
	if l != nil {
		e = l.lives.find(pk.ID)
	}
	if e == nil {
		t.answersNothing(s, peer, l, p, out)
		return
	}
	l.touched(p.at)
	s.counted(p)
	if t.config.Profile.Contradicts(pk) {
		out.At(p.at, p.ref).Report(srdp.CommandByte, s.side, machine.Certain, 0, float64(pk.Command))
	}
	if e.doubtful {
		t.confirm(peer, l, e, p, out)
	}
	l.sure, l.begun = true, true
	e.tally.acks++
	e.ack.last = p.at
	peer.data.answers++
	if e.tally.acks == 1 {
		e.ack.at, e.ack.ref = p.at, p.ref
		t.confirmed(peer, l, e)
	}
	if e.tally.acks == 1 || e.tally.acks <= e.tally.attempts() && peer.reach.disordered+s.reach.disordered == 0 {
		peer.losses.arrived++ // each copy has an acknowledgement of its own, unless the network doubles it
	}
	t.receiverHas(s, l, e, p, out)
	t.senderLearns(s, peer, l, e, p, out)
}

// confirmed learns from an acknowledged packet what is usual in the flow.
func (t *Tracker) confirmed(s *party, l *lane, e *life) {
	t.seen.flags |= t.config.Profile.UnknownFlags(e.flags)
	t.seen.odd = t.seen.odd || e.odd
	if e.number > l.lives.kept() {
		if before := l.lives.at(e.number - 1); before.tally.acks > 0 {
			step := e.id64 - before.id64
			s.data.jump = max(s.data.jump, step, -step)
			t.seen.jump[s.side] = s.data.jump
		}
	}
}

// confirm accepts a doubtful packet that was acknowledged. Ids far from it that
// no acknowledgement confirmed belonged to foreign datagrams.
func (t *Tracker) confirm(s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	if !l.sure {
		l.top = e.id64
	}
	t.believe(s, l, e, p, out)
}

// receiverHas takes what an acknowledgement proves of its sender, the receiver
// s.
func (t *Tracker) receiverHas(s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	if e.tally.copies == 1 && e.tally.acks == 1 && !t.config.Stream {
		s.reach.answers.Add(p.at.Sub(e.at))
		s.reach.slowest = max(s.reach.slowest, p.at.Sub(e.at))
		if l.answered > e.number {
			s.reach.misordered++
		}
		l.answered = max(l.answered, e.number)
	}
	grade := e.handed()
	if e.tally.acks > 1 && !e.recalled {
		grade = machine.Certain
	}
	if t.across(s.side, e.at, p.at) && e.flags != 0 {
		grade = machine.Likely // the receiver may have forgotten it
	}
	if e.tally.acks > 1 && !s.sure || e.tally.acks > e.tally.copies {
		grade = machine.Likely // the network may have made the second acknowledgement
	}
	prof := &t.config.Profile
	asks := srdp.Promise{Once: e.flags&prof.DontDuplicate != 0, Ordered: e.flags&prof.Order != 0}
	about := e.nth(e.tally.acks)
	if !s.near {
		about = e.newest()
	}
	came := e.at
	if e.tally.acks > 1 {
		came = p.at
	}
	if asks.Ordered && e.tally.acks == 1 {
		t.inTurn(s, l, e, p, out)
	}
	fate := l.received.Arrive(&t.config.Rules, e.id, asks, e.sum, came)
	if l.pair != (srdp.Pair{}) && (asks.Once || asks.Ordered) &&
		s.heard.arrive(&t.config.Rules, l.pair.Source, e.id, asks, e.sum, came) != fate {
		grade = machine.Likely // it depends on which list the receiver consulted
	}
	again := e.tally.acks > 1 && asks.Once && fate == srdp.Delivered
	if again || fate == srdp.Late {
		// It depends on how long the receiver's list is, and on whether it hands
		// over a copy of an ordered packet behind a later one.
		grade = machine.Likely
	}
	if fate != srdp.Delivered {
		s.arrivals.dropped++
		t.event(out, e, p, fact{kind: machine.EventDuplicate, of: s.side, sure: grade, about: about})
		return
	}
	s.arrivals.handed++
	if !again {
		e.tally.arrived++
	} else {
		out.At(p.at, p.ref).Report(srdp.PromiseForgotten, s.side, machine.Possible, e.frame, 1, float64(e.id),
			machine.Milliseconds(p.at.Sub(e.at)))
	}
	t.event(out, e, p, fact{kind: machine.EventReceived, of: s.side, sure: grade, about: about})
}

// inTurn checks the first arrival of an ordered packet against the order of
// ids.
func (t *Tracker) inTurn(s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	if !l.inOrder || e.id64 > l.arrived {
		l.inOrder, l.arrived = true, e.id64
		return
	}
	grade := machine.Certain
	if !s.sure {
		grade = machine.Possible // the acknowledgements may have overtaken each other
	}
	out.At(p.at, p.ref).Report(srdp.OutOfTurn, s.side, grade, e.frame, float64(l.arrived-e.id64), float64(e.id))
}

// senderLearns takes what an acknowledgement shows of the sender that it goes
// to.
func (t *Tracker) senderLearns(r, s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	if e.tally.acks > 1 {
		grade := s.reads(p.at)
		if t.across(s.side, e.at, p.at) {
			grade = machine.Likely
		}
		t.event(out, e, p, fact{kind: srdp.EventAckedAgain, of: s.side, sure: grade, about: e.frame, by: p.ref})
		if q := l.queue.Find(e.id); q != nil && q.ID64 == e.id64 {
			l.queue.Remove(q)
		}
		return
	}
	s.ackedAt = p.at
	sample := srdp.Sample{FromLast: p.at.Sub(e.lastAt), FromFirst: p.at.Sub(e.at), Ambiguous: e.tally.copies > 1}
	rtt := int64(-1)
	if sample.Ambiguous {
		s.delays.ambiguous++
		// It came sooner after the newest copy than any answer can. So it
		// answers an earlier copy, and crossed the newest one on the way.
		if r.reach.answers.Count() > 0 && sample.FromLast < r.reach.answers.Least()*9/10 {
			e.tally.crossed++
		}
	} else {
		rtt = int64(sample.FromLast)
		s.delays.take(sample.FromLast)
		s.delays.earlier = s.delays.earlier || e.earlier
	}
	s.data.acked++
	grade := s.reads(p.at)
	lies := t.slowest(s) // how long it can lie in the socket
	if !t.config.Stream && !s.timing.waits(sample.FromLast+lies+lies/8, t.known.least[s.side]) {
		grade = min(grade, machine.Likely) // it may have given the packet up before
	}
	if e.earlier || t.across(s.side, e.at, p.at) {
		grade = min(grade, machine.Likely) // it may have read another one before
	}
	t.event(out, e, p, fact{kind: machine.EventAcked, of: s.side, sure: grade, about: e.frame, by: p.ref, rtt: rtt})
	if sample.Ambiguous {
		for _, k := range [...]struct {
			kind machine.EventKind
			rtt  time.Duration
		}{{srdp.EventRTTFromLast, sample.FromLast}, {srdp.EventRTTFromFirst, sample.FromFirst}} {
			t.event(out, e, p,
				fact{kind: k.kind, of: s.side, sure: machine.Possible, about: e.frame, by: p.ref, rtt: max(1, int64(k.rtt))})
		}
	}
	if q := l.queue.Find(e.id); q != nil && q.ID64 == e.id64 {
		l.queue.Remove(q)
	}
}
