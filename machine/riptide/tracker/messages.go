package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// unwrap gives the sequence nearest to the newest that s has sent.
func (s *side) unwrap(id uint16) int64 {
	if !s.met {
		return int64(id)
	}
	return s.top + int64(int16(id-uint16(s.top)))
}

// reliable takes a copy of a reliable message of s.
func (t *follower) reliable(s, peer *side, p *sighting, m *wire.Message, out *machine.Effects) {
	id, hash := s.unwrap(m.Sequence), machine.Digest(0, p.bytes)
	e := s.sent.lookup(id, hash)
	if e == nil || s.behaviour.OneSequence {
		e = t.begins(s, &s.sent, id, hash, p, m, out)
		e.Mode = machine.ModeReliable
		if !m.Type.User() {
			e.Mode, e.client = machine.ModeInternal, m.ClientID
		}
		t.event(out, machine.EventSent, s.side, machine.Certain, e, 0, 0, p)
		t.suspected(s, id, out)
		// Its own ids have no gaps where the tap is at it: a jump then is ids of
		// several peers OR-ed, or the capture missed some.
		if e.merged = s.near && s.met && id > s.top+1 && t.merges(s); e.merged {
			s.suspect = e.number + 1
		}
		for o := s.sent.older(e); o != nil && !s.behaviour.OneSequence; o = s.sent.older(o) {
			o.clash, e.clash = true, true
			peer.finished.bits = 0
		}
		if !s.met && t.begun {
			s.met, s.top = true, int64(s.behaviour.First)-1
		}
		switch {
		case !s.met:
			s.top, s.topAt, s.met = id, p.at, true
		case id > s.top:
			if s.near && !s.stream && id > s.top+1 && !t.merges(s) {
				s.doubts.lacks++
			}
			if !s.near && !s.stream && !t.merges(s) {
				s.toTap.JudgeLost(uint64(id - s.top - 1))
				s.toTap.Judge(false)
			}
			s.missing += uint64(id - s.top - 1)
			s.skip(id, p)
			s.top, s.topAt = id, p.at
		case s.missing > 0:
			s.missing--
			if i, is := s.absence(id); is && p.at.Sub(s.absent[i].at) < s.roundTrip()/2 {
				s.toTap.Found() // a copy that was sent again would take longer: this one was overtaken
			}
			s.came(id)
		}
		peer.before(e)
	} else {
		switch {
		case e.merged && e.held() && p.at.Sub(e.more.heldAt) > riptide.TickSlack:
			e.waits = true
		case e.held() && e.Acked == machine.Yes && p.at.Sub(e.AckedAt) > riptide.TickSlack:
			// Its sender waits for another id after all.
			e.waits = true
			e.merged, e.Acked, e.AckedAt, e.AckedBy = true, machine.Unanswered, 0, 0
		}
		t.sentAgain(s, e)
		t.copied(e, p)
		s.resends++
		t.event(out, machine.EventResent, s.side, machine.Certain, e, e.frame, 0, p)
	}
	if !peer.ordered || p.behind || peer.toldLeft != 0 && p.at > peer.toldLeft || peer.left != 0 {
		return
	}
	a := arrival{e.number, p.at, p.ref, m.Sequence}
	if peer.behaviour.Receive == riptide.ReceiveEverything {
		t.hand(peer, s, &a, p, out) // it says nothing, and refuses nothing
		return
	}
	if peer.queue.put(a) {
		peer.doubts.blurred = true // which copies its Acks are for is not known any more
	}
}

// merges reports whether s can put ids of several peers into one message: a
// client has one peer.
func (t *follower) merges(s *side) bool {
	return s.behaviour.MergedSequences && (!t.roles || t.client != s.side)
}

// suspected settles whether the newest message that jumped ahead had ids of several
// peers OR-ed: its sender goes on with its own ids then, which are not beyond it.
func (t *follower) suspected(s *side, next int64, out *machine.Effects) {
	n := s.suspect - 1
	if s.suspect = 0; n < s.sent.first {
		return
	}
	if e := s.sent.at(n); next > e.Sequence64 {
		e.merged = false
		if e.held() && e.Acked == machine.Unanswered && !e.forgot {
			t.clear(s, e, &sighting{at: e.more.heldAt, ref: e.more.heldRef, from: s.side.Other()}, out)
		}
	}
}

// begins opens a message's life with its first copy.
func (t *follower) begins(s *side, l *lives, sequence int64, hash uint64, p *sighting, m *wire.Message, out *machine.Effects) *life {
	if l.full() {
		t.end(s, l, out)
		t.settled = 0
	}
	e := l.begin(sequence, hash)
	e.From, e.Type, e.Bits = s.side, m.Type, int32(m.BodyBits)
	e.At, e.lastAt, e.Attempts, e.frame = p.at, p.at, 1, p.ref
	e.smoothed = int32(s.smoothed)
	if m.Type == wire.Unreliable || m.Type == wire.Reliable || m.Bare {
		e.ID, e.IDBits = m.MessageID, 16
	}
	t.valueFaults(s, p, m, out)
	if c, ok := content(s, p, m); ok {
		out.Contents = append(out.Contents, c)
	}
	if at := m.BodyBit / 8; !out.NoEvents && m.BodyBits > 0 && at < len(p.bytes) {
		x := t.moreOf(e)
		x.body, e.BodyBit = append(x.body, p.bytes[at:]...), uint8(m.BodyBit%8)
	}
	return e
}

// copied takes another copy of a message.
func (t *follower) copied(e *life, p *sighting) {
	m := t.moreOf(e)
	if i := int(e.Attempts) - 1; i < len(m.frames) {
		m.frames[i] = p.ref
	}
	e.Attempts++
	m.wait = p.at.Sub(e.lastAt)
	e.lastAt = p.at
}

// moreOf gives the rarer part of a life.
func (t *follower) moreOf(e *life) *more {
	if e.more != nil {
		return e.more
	}
	if n := len(t.free); n > 0 {
		e.more, t.free = t.free[n-1], t.free[:n-1]
		*e.more = more{body: e.more.body[:0]}
	} else {
		e.more = &more{}
	}
	t.mores++
	return e.more
}

// event tells a fact about a message, that p shows.
func (t *follower) event(out *machine.Effects, kind machine.EventKind, of machine.Side, sure machine.Certainty, e *life, about, by machine.Ref, p *sighting) {
	if out.NoEvents {
		return
	}
	channel := uint8(0)
	if e.Mode == machine.ModeNotify { // counted in a row of its own
		channel = riptide.ChannelNotify
	}
	t.tell(out, machine.Event{Kind: kind, Side: of, Certainty: sure, Sequence: e.Sequence, Sequence64: e.Sequence64, About: about, By: by, Channel: channel}, p)
}

// tell tells a fact that p shows.
func (t *follower) tell(out *machine.Effects, e machine.Event, p *sighting) {
	if out.NoEvents {
		return
	}
	e.At, e.Ref = p.at, p.ref
	if e.RTT == 0 {
		e.RTT = -1
	}
	if e.Certainty == machine.Unknown {
		e.Certainty = machine.Possible
	}
	out.Events = append(out.Events, e)
}

// taken tells that s accepted the peer's message.
func (t *follower) taken(s *side, e *life, p *sighting, out *machine.Effects) {
	s.taken++
	t.event(out, machine.EventReceived, s.side, s.grade(), e, e.frame, 0, p)
}

// named tells that an ack of a message has passed, where what its sender made of
// it is not known.
func (t *follower) named(s *side, e *life, p *sighting, out *machine.Effects) {
	if !s.ordered {
		s.acked++
		t.event(out, machine.EventAcked, s.side, machine.Likely, e, e.frame, p.ref, p)
	}
}

// unreliable takes a message of s that has no identity.
func (t *follower) unreliable(s *side, p *sighting, m *wire.Message, out *machine.Effects) {
	e := t.begins(s, &s.loose, s.looseCount, 0, p, m, out)
	s.looseCount++
	e.behind = p.behind
	e.Mode, e.Sequence, e.Sequence64 = machine.ModeUnreliable, 0, s.looseCount-1
	if m.Type == wire.Notify {
		e.Mode, e.Sequence64 = machine.ModeNotify, 0
	}
}

// settle ends the lives to which nothing more can happen.
func (t *follower) settle(now machine.Instant, out *machine.Effects) {
	if now <= t.settled {
		return
	}
	// What begins from now on cannot end before this.
	t.settled = now.Add(lifeOnce)
	for i := range t.sides {
		s := &t.sides[i]
		t.settleLives(s, &s.sent, lifeReliable, now, out)
		t.ageAbsent(s, now, false, out)
		if len(s.absent) > 0 {
			t.settled = now
		}
		t.settleLives(s, &s.notes, lifeReliable, now, out)
		t.settleLives(s, &s.loose, lifeOnce, now, out)
	}
}

func (t *follower) settleLives(s *side, l *lives, after time.Duration, now machine.Instant, out *machine.Effects) {
	for now > l.due {
		e := l.oldest()
		if e == nil {
			return
		}
		if l.due = e.lastAt.Add(after); now > l.due {
			t.end(s, l, out)
		}
	}
	t.settled = min(t.settled, l.due)
}

// end tells the oldest life, with its final grades.
func (t *follower) end(s *side, l *lives, out *machine.Effects) {
	e := l.oldest()
	if l == &s.sent && s.suspect == e.number+1 {
		t.suspected(s, e.Sequence64+1, out) // nothing has shown it
	}
	l.first++
	l.due = 0
	peer := &t.sides[s.side.Other()]
	switch {
	case l == &s.loose && e.behind:
	case l == &s.loose && peer.ordered:
		if e.Certainty = peer.reads(e.At, e.frame); e.Certainty != machine.Unknown {
			e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Deliveries = machine.Yes, e.At, e.frame, 1
			peer.taken++
		}
	case peer.ordered && e.Delivered == machine.Yes:
		read := peer.reads(e.DeliveredAt, e.DeliveredBy)
		if read == machine.Unknown {
			e.Delivered, e.Deliveries = machine.Unanswered, 0
		}
		e.Certainty = min(e.Certainty, read)
		if e.attested && read != machine.Unknown && !peer.doubts.blurred {
			e.Certainty = machine.Certain
		}
		if e.Certainty == machine.Certain && peer.mayTakeAgain(e) {
			e.Certainty = machine.Likely
		}
	}
	if s.ordered && l != &s.loose {
		switch {
		case e.Acked == machine.Yes:
			read := s.reads(e.AckedAt, e.AckedBy)
			if read == machine.Unknown {
				e.Acked = machine.No
			}
			e.Certainty = min(e.Certainty, read)
		case e.Acked == machine.Unanswered:
			e.Acked = machine.No
		}
	}
	if b := s.behaviour; b.DropsConnection && int(e.Attempts) >= b.Limit && e.Acked == machine.No && s.ordered {
		if due := e.lastAt.Add(riptide.ResendAfter(s.smoothed)); due > s.limitAt {
			s.limitAt, s.limitOf = due, riptide.DroppedAttempts
		}
	}
	if e.clash || e.merged {
		e.Certainty = min(e.Certainty, machine.Likely)
	}
	if e.Deliveries == 0 && e.Delivered == machine.Yes {
		e.Deliveries = 1
	}
	if e.refused && peer.near && e.Delivered == machine.No {
		t.refusedForGood(s, e, out)
	}
	t.lifeFindings(s, e, out)
	if !out.NoEvents {
		out.Messages = append(out.Messages, e.message())
	}
	if e.more != nil {
		t.lent = append(t.lent, e.more)
		t.mores--
		e.more = nil
	}
}
