package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// unwrap returns the sequence nearest to the newest that has passed.
func (o *outbound) unwrap(id uint16) int64 {
	if !o.met {
		return int64(id)
	}
	return o.top + int64(int16(id-uint16(o.top)))
}

// reliable records a copy of a reliable message.
func (t *follower) reliable(p *step) {
	s, peer := p.own, p.peer
	s.figures.arrived.asked++
	id, hash := s.out.unwrap(p.m.Sequence), t.hashOf(p)
	e := s.out.lives.copied(id, hash)
	if e == nil || s.behaviour.OneSequence {
		e = t.reliableBegins(p, id, hash)
	} else {
		t.reliableAgain(p, e)
	}
	if !peer.tap.ordered || p.behind || peer.end.endedBefore(p.at) || peer.end.left != 0 {
		return
	}
	a := arrival{e.number, p.at, p.ref, p.m.Sequence}
	if peer.behaviour.Receive == riptide.ReceiveEverything {
		t.deliver(p, peer, &a) // its receiver acks nothing and refuses nothing
		return
	}
	if peer.in.queue.put(a) {
		peer.tap.overflowed = true // Acks can no longer be matched to copies
	}
}

// hashOf returns a hash of a message that is the same for all its copies. It is 0 where a hole in
// the stream took some of its bytes.
func (t *follower) hashOf(p *step) uint64 {
	if t.config.Stream && p.length > len(p.bytes) {
		return 0
	}
	return machine.Digest(0, p.bytes)
}

// reliableBegins records the first copy of a reliable message.
func (t *follower) reliableBegins(p *step, id int64, hash uint64) *life {
	s, peer, m := p.own, p.peer, p.m
	later := t.missesFirst(s, id, p.at)
	e := t.begins(p, &s.out.lives, id, hash)
	e.later = later
	s.figures.reliable++
	e.mode = machine.ModeReliable
	if !m.Type.User() {
		e.mode, e.client = machine.ModeInternal, m.ClientID
	}
	t.messageEvent(p, e, fact{kind: machine.EventSent, of: s.side, sure: machine.Certain})
	t.suspected(s, id, p.out)
	// Its own ids have no gaps where the tap is at it. So at a jump, either ids of several peers were
	// OR-ed, or the capture missed some.
	e.sender.merged = s.tap.near && s.out.met && id > s.out.top+1 && t.merges(s) && !p.gaps &&
		!peer.acks.foretold(id, m.Sequence)
	if e.sender.merged {
		s.out.suspect = e.number + 1
	}
	for o := s.out.lives.older(e); o != nil && !s.behaviour.OneSequence; o = s.out.lives.older(o) {
		o.clash, e.clash = true, true
		peer.acks.finished.bits = 0
	}
	if !s.out.met && t.begun {
		s.out.met, s.out.top = true, int64(s.behaviour.First)-1
	}
	switch {
	case !s.out.met:
		s.out.top, s.out.topAt, s.out.met, s.out.metAt = id, p.at, true, p.at
	case id > s.out.top:
		gap := uint64(id - s.out.top - 1)
		if !s.tap.stream && !t.merges(s) {
			switch {
			case !s.tap.near:
				s.path.Stepped(gap)
			case gap > 0:
				s.tap.lacks++
			}
		}
		s.out.missing += gap
		s.out.skip(id, p)
		s.out.top, s.out.topAt = id, p.at
	case s.out.missing > 0:
		s.out.missing--
		if i, is := s.out.absence(id); is && p.at.Sub(s.out.absent[i].at) < s.roundTrip()/2 {
			s.path.Overtaken() // a resent copy would take longer, so the network overtook this one
		}
		s.out.came(id)
	}
	peer.in.before(e)
	return e
}

// reliableAgain records another copy of a reliable message.
func (t *follower) reliableAgain(p *step, e *life) {
	switch {
	case e.sender.merged && e.held() && p.at.Sub(e.details.heldAt) > riptide.TickSlack:
		e.sender.waits = true
	case e.held() && e.sender.acked == machine.Yes && p.at.Sub(e.sender.at) > riptide.TickSlack:
		// Its sender waits for another id after all.
		e.sender.waits = true
		e.sender.merged, e.sender.acked, e.sender.at, e.sender.by = true, machine.Unanswered, 0, 0
	}
	if e.copies.count == 1 {
		p.own.figures.repeated++
	}
	t.sentAgain(p.own, e)
	t.copied(p, e)
	p.own.figures.resends++
	t.messageEvent(p, e, fact{kind: machine.EventResent, of: p.own.side, sure: machine.Certain, about: e.copies.frame})
}

// merges reports whether s can OR the ids of several peers into one message. A client cannot: it
// has one peer.
func (t *follower) merges(s *side) bool {
	return s.behaviour.MergedSequences && (!t.roles || t.client != s.side)
}

// suspected decides whether the newest message that jumped ahead had OR-ed ids. If it had, its
// sender goes on with its own ids, which are not beyond it.
func (t *follower) suspected(s *side, next int64, out *machine.Effects) {
	n := s.out.suspect - 1
	if s.out.suspect = 0; n < s.out.lives.first {
		return
	}
	if e := s.out.lives.at(n); next > e.sequence64 {
		e.sender.merged = false
		if e.held() && e.sender.acked == machine.Unanswered && !e.sender.forgot {
			t.clear(pastStep(e.details.heldAt, e.details.heldRef, out), s, e)
		}
	}
}

// begins opens a message's life with its first copy.
func (t *follower) begins(p *step, l *lives, sequence int64, hash uint64) *life {
	s, m := p.own, p.m
	if l.full() {
		t.end(s, l, p.out)
		t.settled = 0
	}
	t.settled = min(t.settled, p.at.Add(lifeOnce)) // the times of a capture can go back
	e := l.begin(sequence, hash)
	e.kind, e.bits = m.Type, int32(m.BodyBits)
	if s.tap.stream { // it was sent after all that passed before
		e.bounds.sent = s.read.shown.at
	}
	e.copies = copies{first: p.at, last: p.at, frame: p.ref, count: 1, smoothed: int32(s.smoothed)}
	if m.Type == wire.Unreliable || m.Type == wire.Reliable || m.Bare {
		e.id, e.idBits = m.MessageID, 16
	}
	t.valueFaults(p)
	if !p.out.NoContents {
		if c, ok := content(p); ok {
			p.out.Contents = append(p.out.Contents, c)
		}
	}
	if at := m.BodyBit / 8; !p.out.NoMessages && m.BodyBits > 0 && at < len(p.bytes) {
		x := t.detailsOf(e)
		x.body, e.bodyBit = append(x.body, p.bytes[at:]...), uint8(m.BodyBit%8)
	}
	return e
}

// relayBits is the least size at which two equal messages count as the same message, in bits.
// Source: measured, TestMarginsRiptide
const relayBits = 24

// content returns a hash that identifies a user message wherever it is relayed: its id, its mode
// and its values. The first hashed byte can also hold bits of the id.
func content(p *step) (c machine.Content, ok bool) {
	s, m := p.own, p.m
	if m.Type != wire.Unreliable && m.Type != wire.Reliable || m.BodyBits < relayBits || p.length > len(p.bytes) {
		return c, false
	}
	hash := machine.Digest(0, p.bytes[m.BodyBit/8:]) ^ (uint64(m.MessageID)<<8|uint64(m.Type))*0x9E3779B97F4A7C15
	return machine.Content{
		From: s.side, At: p.at, Ref: p.ref, Hash: hash, Number: uint32(m.MessageID),
		Rule: riptide.Relayed,
	}, true
}

// copied records another copy of a message.
func (t *follower) copied(p *step, e *life) {
	m := t.detailsOf(e)
	if i := int(e.copies.count) - 1; i < len(m.frames) {
		m.frames[i] = p.ref
	}
	e.copies.count++
	m.wait = p.at.Sub(e.copies.last)
	e.copies.last = p.at
}

// fact is what became of a message: at which side, how surely, and which frames show it.
type fact struct {
	kind  machine.EventKind
	of    machine.Side
	sure  machine.Certainty
	about machine.Ref // the frame of the copy that it is about; 0 for the current one
	by    machine.Ref // of an ack: the frame that carried it; else 0
}

// messageEvent emits a fact about a message, shown by p.
func (t *follower) messageEvent(p *step, e *life, f fact) {
	if p.out.NoEvents {
		return
	}
	p.out.Events = append(p.out.Events, machine.Event{}) // it is filled in where it is read: copies take time
	x := &p.out.Events[len(p.out.Events)-1]
	x.Kind, x.Side, x.Certainty = f.kind, f.of, max(f.sure, machine.Possible)
	x.Sequence, x.Sequence64, x.About, x.By = e.sequence, e.sequence64, f.about, f.by
	if e.mode == machine.ModeNotify { // it has a sequence of its own
		x.Channel = riptide.ChannelNotify
	}
	x.At, x.Ref, x.RTT = p.at, p.ref, -1
}

// emit emits an event that p shows.
func (t *follower) emit(p *step, e machine.Event) {
	if p.out.NoEvents {
		return
	}
	e.At, e.Ref, e.RTT, e.Certainty = p.at, p.ref, -1, max(e.Certainty, machine.Possible)
	p.out.Events = append(p.out.Events, e)
}

// taken emits that s accepted the peer's message.
func (t *follower) taken(p *step, s *side, e *life) {
	s.figures.taken++
	sure := s.tap.grade()
	if s.rivals.disputed {
		sure = min(sure, machine.Likely)
	}
	t.messageEvent(p, e, fact{kind: machine.EventReceived, of: s.side, sure: sure, about: e.copies.frame})
}

// named emits that an ack of a message has passed, where its sender is far and its conclusion
// unknown.
func (t *follower) named(p *step, e *life) {
	s := p.peer
	if !s.tap.ordered {
		s.figures.acked++
		t.messageEvent(p, e, fact{
			kind: machine.EventAcked, of: s.side, sure: machine.Likely, about: e.copies.frame,
			by: p.ref,
		})
	}
}

// unreliable records a message without an identity.
func (t *follower) unreliable(p *step) {
	e := t.begins(p, &p.own.unreliable, p.own.unreliable.next, 0)
	e.behind = p.behind
	e.mode, e.sequence = machine.ModeUnreliable, 0
	if p.m.Type == wire.Notify {
		e.mode, e.sequence64 = machine.ModeNotify, 0
	}
}

// settle ends the lives that nothing can change any more.
func (t *follower) settle(now machine.Instant, out *machine.Effects) {
	if now <= t.settled {
		return
	}
	// A message that begins from now on cannot end before this.
	t.settled = now.Add(lifeOnce)
	for i := range t.sides {
		s := &t.sides[i]
		t.settleLives(s, &s.out.lives, lifeReliable, now, out)
		if len(s.out.absent) > 0 {
			if now.Sub(s.out.absent[0].at) > lifeReliable {
				t.settleAbsent(s, now, false, out)
			}
			if len(s.out.absent) > 0 {
				t.settled = min(t.settled, s.out.absent[0].at.Add(lifeReliable))
			}
		}
		t.settleLives(s, &s.notifyOut.lives, lifeReliable, now, out)
		t.settleLives(s, &s.unreliable, lifeOnce, now, out)
	}
}

func (t *follower) settleLives(s *side, l *lives, after time.Duration, now machine.Instant, out *machine.Effects) {
	for l.first < l.next {
		if now <= l.due {
			t.settled = min(t.settled, l.due)
			return
		}
		e := l.at(l.first)
		if l.due = e.copies.last.Add(after); now > l.due {
			t.end(s, l, out)
		}
	}
}

// end reports the oldest life, with its final grades.
func (t *follower) end(s *side, l *lives, out *machine.Effects) {
	e := l.oldest()
	if l == &s.out.lives && s.out.suspect == e.number+1 {
		t.suspected(s, e.sequence64+1, out) // nothing has shown it
	}
	l.first++
	l.due = 0
	peer := &t.sides[s.side.Other()]
	anonymous := l == &s.unreliable
	received := e.certainty
	if peer.tap.ordered && !(anonymous && e.behind) {
		peer.gradeReceived(e, anonymous)
		received = e.certainty
	}
	if s.tap.ordered && !anonymous {
		s.gradeAcked(e)
	}
	if b := s.behaviour; b.DropsConnection && int(e.copies.count) >= b.Limit && e.sender.acked == machine.No &&
		s.tap.ordered {
		if due := e.copies.last.Add(riptide.ResendAfter(s.smoothed)); due > s.end.limit {
			s.end.reached(riptide.DroppedAttempts, due)
		}
	}
	if e.clash || e.sender.merged {
		e.certainty = min(e.certainty, machine.Likely)
	}
	if e.receiver.times == 0 && e.receiver.delivered == machine.Yes {
		e.receiver.times = 1
	}
	if e.receiver.refused && peer.tap.near && e.receiver.delivered == machine.No {
		t.refusedForGood(s, e, out)
	}
	t.messageFindings(s, e, out)
	if !out.NoMessages {
		out.Messages = append(out.Messages, e.message(s.side))
		t.times(s, e, received, &out.Messages[len(out.Messages)-1])
	}
	if e.details != nil {
		t.lent = append(t.lent, e.details)
		t.detailCount--
		e.details = nil
	}
}

// gradeReceived sets the final grade of what s did with a message of its peer. s has read in order
// what passed the tap.
func (s *side) gradeReceived(e *life, anonymous bool) {
	switch {
	case anonymous:
		if e.certainty = s.reads(e.copies.first, e.copies.frame); e.certainty != machine.Unknown {
			e.receiver.took(e.copies.first, e.copies.frame)
			s.figures.taken++
		}
	case e.receiver.delivered == machine.Yes:
		read := s.reads(e.receiver.at, e.receiver.by)
		if read == machine.Unknown {
			e.receiver.delivered, e.receiver.times = machine.Unanswered, 0
		}
		e.certainty = min(e.certainty, read)
		if e.receiver.attested && read != machine.Unknown && !s.tap.overflowed {
			e.certainty = machine.Certain
		}
		if e.certainty == machine.Certain && s.in.mayTakeAgain(e, s.rivals.receiver) {
			e.certainty = machine.Likely
		}
	}
}

// gradeAcked sets the final grade of what s concluded from the Acks of its own message. s has read
// in order what passed the tap.
func (s *side) gradeAcked(e *life) {
	switch {
	case e.sender.acked == machine.Yes:
		read := s.reads(e.sender.at, e.sender.by)
		if read == machine.Unknown {
			e.sender.acked = machine.No
		}
		e.certainty = min(e.certainty, read)
	case e.sender.acked == machine.Unanswered:
		e.sender.acked = machine.No
	}
	// Every version counts a message as acked when an Ack answers it. On bits, Pytide and the library differ.
	if e.sender.disputed && s.repair == repairOpen || s.maybePort && !e.sender.byCause {
		e.certainty = min(e.certainty, machine.Likely)
	}
}
