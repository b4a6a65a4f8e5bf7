package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// judgedSends is the reliable messages that a side sends.
//
//	next is set from the connection's beginning, or once met is set
//	sender is set once sending is
type judgedSends struct {
	next    uint16 // the sequence of the next new message
	first   uint16 // of a side that is met in the middle: the sequence of its first message
	met     bool
	form    wire.Form
	ref     machine.Ref // the frame of the last new message
	sender  riptide.Sender
	sending bool
	ring    []pending // by sequence; its length is 0 or a power of two up to pendingMost
	merged  []pending // messages with OR-ed ids, so that several can share one

	rtt       rttRange
	due       dueQueue
	timing    punctuality
	overLimit int // the most sendings of a message beyond the limit, which the application may have lifted
}

// pending is one message that was sent.
type pending struct {
	hash        uint64
	head        uint64 // digest of its first bytes, without its type
	body        uint64 // digest of what stands behind its sequence
	first, last machine.Ref
	lastAt      machine.Instant
	clearedAt   machine.Instant // when the Ack passed that clears it; 0 for none
	clearedBy   machine.Ref
	place       int64         // the place of that Ack among what passed the tap towards the side
	low, high   time.Duration // after its last sending it is due no sooner, and no later
	half        time.Duration // if an Ack asks for it, it is due no sooner
	asked       bool
	live        bool
	forgotten   bool // the library's timer does not look again
	late        bool // it was due, and others were sent instead
	id          uint16
	attempts    int
}

const (
	// pendingFirst and pendingMost are how many unacked messages of a side the judge has room for, at
	// first and at most.
	// Source: bound, the messages that are not acked
	pendingFirst, pendingMost = 16, 4096
	// joinedSpan is how many ids below the first captured one the judge accepts. Such messages were
	// first sent before the capture.
	// Source: measured, TestMarginsRiptide
	joinedSpan = 1024
	// joinedTime is how long into the capture a message from before it may be sent again. 15 copies of
	// a message take no longer.
	// Source: measured, TestMarginsRiptide
	joinedTime = 10 * time.Second
	// pendingKept is how long the judge keeps an acked message. It then can tell the message from
	// another one with the same id.
	// Source: measured, TestMarginsRiptide
	pendingKept = 2 * time.Second
	// likeSpan is how many ids before a message the judge looks for its possible original.
	// Source: unmeasured, a divergence that it decides is likely at most
	likeSpan uint16 = 64
	// likeTime is how long before a message its possible original can have been sent.
	// Source: unmeasured, a divergence that it decides is likely at most
	likeTime = 2 * time.Second
	// mergedMost is how many messages to several clients the judge keeps. Their ids do not count up.
	// Source: bound, the messages to several clients that are kept
	mergedMost = 256
)

func (n *judgedSends) begin(b *riptide.Behaviour, form wire.Form) {
	n.form, n.sender, n.next, n.rtt = form, riptide.NewSender(b), b.First, rttRange{low: -1, high: -1}
}

// at returns a message; nil where it is not kept.
func (n *judgedSends) at(id uint16) *pending {
	if len(n.ring) == 0 {
		return nil
	}
	if e := &n.ring[int(id)&(len(n.ring)-1)]; e.live && e.id == id {
		return e
	}
	return nil
}

// enter makes room for a message that is sent at a time.
func (n *judgedSends) enter(id uint16, at machine.Instant) *pending {
	if len(n.ring) == 0 {
		n.ring = make([]pending, pendingFirst)
	}
	for {
		e := &n.ring[int(id)&(len(n.ring)-1)]
		if !e.live || e.clearedAt != 0 && at.Sub(e.lastAt) > pendingKept || len(n.ring) >= pendingMost {
			*e = pending{id: id, live: true}
			return e
		}
		old := n.ring
		n.ring = make([]pending, 2*len(old))
		for _, o := range old {
			if o.live {
				n.ring[int(o.id)&(len(n.ring)-1)] = o
			}
		}
	}
}

// sendsReliable judges a reliable message of s.
func (s *judged) sendsReliable(j *Judge, p *observed) *machine.Divergence {
	n, m, b := &s.sends, p.m, s.behaviour
	if b.OneSequence {
		// Pytide 2.0.0: all have the same sequence, and none is sent again.
		if s.ordered && m.Sequence != 1 {
			return s.diverge(p, difference{
				Sequence, machine.RestsOnOwn, "riptide.sequence", 1, m.Sequence,
				"every reliable message of this port has id 1",
			}, n.ref)
		}
		n.met, n.ref = true, p.ref
		return nil
	}
	n.joins(j)
	hash := machine.Digest(0, p.bytes)
	if e := n.find(m.Sequence, hash); e != nil {
		return s.resends(p, e)
	}
	if !s.ordered {
		return s.farReliable(p, hash)
	}
	due := n.next
	if !n.met && !j.connection.begun {
		due = m.Sequence
		s.joined, n.first = true, m.Sequence
	}
	if s.stream && !s.near && (s.hole || riptide.GapOf(m.Sequence, due) > 0) {
		// TCP loses nothing, so the capture lacks it, or it comes later in the capture.
		s.hole = true
		s.opinion.Undecided++
		return nil
	}
	merged := false
	if m.Sequence != due {
		l := &j.connection
		if l.begun && !l.asked && due == b.First+1 && riptide.GapOf(m.Sequence, due) > 0 {
			// The Welcomes with which the capture begins are copies: the connection had begun before.
			l.begun, s.joined = false, true
		}
		before := riptide.GapOf(m.Sequence, n.first)
		if s.joined && before < 0 && before > -joinedSpan && p.at.Sub(j.connection.first) < n.waited() &&
			n.at(m.Sequence) == nil && !n.has(m.Sequence) {
			// It was first sent before the capture.
			s.opinion.Undecided++
			n.note(n.enter(m.Sequence, p.at), p, hash, b)
			return nil
		}
		if ahead := riptide.GapOf(m.Sequence, due); s.joined && ahead > 0 && ahead < joinedSpan &&
			p.at.Sub(j.connection.first) < n.waited() {
			// What passed first was from before the capture, and so were those between: they were acked.
			s.opinion.Undecided++
			n.first, n.next, n.ref = m.Sequence, m.Sequence+1, p.ref
			e := n.enter(m.Sequence, p.at)
			n.note(e, p, hash, b)
			if b.MergedSequences && m.Sequence&due == due && !s.client(j) {
				n.merged = machine.KeepNewest(n.merged, *e, mergedMost) // or its ids are OR-ed
			}
			return nil
		}
		if e := n.at(m.Sequence); s.joined && e != nil && b.MergedSequences && !s.client(j) &&
			(m.Sequence == n.first || p.at.Sub(j.connection.first) < n.waited()) {
			// One of the two had the OR-ed ids of several clients, and was first sent before the capture.
			s.opinion.Undecided++
			n.merged = machine.KeepNewest(n.merged, *e, mergedMost)
			*e = pending{id: m.Sequence, live: true}
			n.next, n.ref = m.Sequence+1, p.ref
			n.note(e, p, hash, b)
			return nil
		}
		merged = b.MergedSequences && m.Sequence&due == due && m.Type != wire.Welcome && !s.client(j)
		if e := n.at(m.Sequence); s.near && e != nil && !merged && m.Sequence == due-1 && e.attempts == 1 {
			if x := n.like(e); x != nil {
				return s.renumbered(p, x, e, machine.RestsOnOwn)
			}
		}
		if e := n.at(m.Sequence); e != nil && !merged && riptide.GapOf(m.Sequence, due) < 0 {
			return s.diverge(p, difference{
				SequenceReuse, machine.RestsOnOwn, "riptide.sequence", due, m.Sequence,
				fmt.Sprintf("message %d was sent before with other content", m.Sequence),
			}, e.first)
		}
		if v := s.unsentAs(j.config.Senders[s.side].Codec, p, due); s.near && !merged && m.Sequence == due+1 && v != nil {
			return v
		}
		if !merged {
			return s.diverge(p, difference{
				Sequence, machine.RestsOnAbsence, "riptide.sequence", due, m.Sequence,
				"the sequence of reliable messages steps by one from message to message",
			}, n.ref)
		}
	}
	n.met, n.next, n.ref = true, due+1, p.ref
	if merged {
		n.merged = machine.KeepNewest(n.merged, pending{id: m.Sequence, live: true}, mergedMost)
		n.note(&n.merged[len(n.merged)-1], p, hash, b)
		return nil
	}
	n.note(n.enter(m.Sequence, p.at), p, hash, b)
	return nil
}

// accept records a message that the reference would not have sent, and goes on from it.
func (n *judgedSends) accept(p *observed, b *riptide.Behaviour) {
	id, hash := p.m.Sequence, machine.Digest(0, p.bytes)
	e := n.find(id, hash)
	if e == nil {
		if riptide.GapOf(id, n.next) >= 0 {
			n.met, n.next, n.ref = true, id+1, p.ref
		}
		e = n.enter(id, p.at)
	}
	n.note(e, p, hash, b)
}

// waited returns for how long a message may have been sent again and again.
func (n *judgedSends) waited() time.Duration {
	if n.rtt.high < 0 {
		return joinedTime
	}
	return min(joinedTime, settlingTime+15*riptide.ResendAfter(n.rtt.high))
}

// has reports whether a message of that id was merged.
func (n *judgedSends) has(id uint16) bool {
	for i := range n.merged {
		if n.merged[i].id == id {
			return true
		}
	}
	return false
}

// like returns the one message shortly before another of which that one could be a copy, but
// for its sequence. It returns nil for none, and where there are several.
func (n *judgedSends) like(e *pending) (one *pending) {
	for k := uint16(1); k <= likeSpan; k++ {
		x := n.at(e.id - k)
		switch {
		case x == nil || x.body != e.body || e.lastAt.Sub(x.lastAt) >= likeTime:
		case one != nil:
			return nil
		default:
			one = x
		}
	}
	return one
}

// find returns the message of which a datagram is another copy; nil for none.
func (n *judgedSends) find(id uint16, hash uint64) *pending {
	if e := n.at(id); e != nil && e.hash == hash {
		return e
	}
	for i := range n.merged {
		if e := &n.merged[i]; e.id == id && e.hash == hash {
			return e
		}
	}
	return nil
}

// note records a sending.
func (n *judgedSends) note(e *pending, p *observed, hash uint64, b *riptide.Behaviour) {
	if e.attempts == 0 {
		e.first, e.hash, e.head, e.body = p.ref, hash, headOf(p.bytes, len(p.bytes)), bodyOf(n.form, p.bytes)
	}
	e.attempts++
	e.last, e.lastAt, e.asked, e.late = p.ref, p.at, false, false
	n.rtt.schedule(e)
	if b.Limit > 0 {
		n.due.put(dueAt{e.id, p.at})
	}
}

// resends judges another copy of a message.
func (s *judged) resends(p *observed, e *pending) *machine.Divergence {
	n, b := &s.sends, s.behaviour
	if !s.near {
		n.note(e, p, e.hash, b)
		s.opinion.Undecided++
		return nil
	}
	merged := len(n.merged) > 0
	switch {
	case b.Port:
		// Pytide sends again, at any time, what it thinks is asked for.
	case e.clearedAt != 0 && (s.readTo > e.place && !e.asked || s.left(p).Sub(e.clearedAt) > clearSlack) && !merged:
		// The library sends what an Ack asks for while it handles that Ack. What lay behind
		// the Ack in the socket was read and answered before, but not handled.
		return s.diverge(p, difference{
			ResendAfterAck, machine.RestsOnBoth, "riptide.sequence", "no resend", e.id,
			fmt.Sprintf("the Ack that clears message %d came %.0f ms before it was sent again", e.id,
				machine.Milliseconds(p.at.Sub(e.clearedAt))),
		}, e.last, e.clearedBy)
	case b.Limit > 0 && e.attempts >= b.Limit && !merged && !b.DropsConnection:
		return s.diverge(p, difference{
			Attempts, machine.RestsOnOwn, "riptide.sequence", fmt.Sprintf("at most %d sendings", b.Limit),
			fmt.Sprintf("sending %d", e.attempts+1),
			fmt.Sprintf("message %d is given up after %d sendings", e.id, b.Limit),
		}, e.first, e.last)
	case b.Limit > 0 && e.attempts >= b.Limit:
		// The application can lift the limit: MaxSendAttempts.
		if n.overLimit == 0 {
			s.opinion.Undecided++
		}
		n.overLimit = max(n.overLimit, e.attempts+1)
	}
	if v := s.early(p, e); v != nil {
		return v
	}
	n.note(e, p, e.hash, b)
	return nil
}

// farReliable judges a new message of a far side.
func (s *judged) farReliable(p *observed, hash uint64) *machine.Divergence {
	n := &s.sends
	s.opinion.Undecided++
	if e := n.at(p.m.Sequence); e != nil && !s.behaviour.MergedSequences && !s.behaviour.Port {
		return s.diverge(p, difference{
			SequenceReuse, machine.RestsOnOwn, "riptide.sequence", "another sequence", p.m.Sequence,
			fmt.Sprintf("message %d was sent before with other content", p.m.Sequence),
		}, e.first)
	}
	n.met, n.ref = true, p.ref
	e := n.enter(p.m.Sequence, p.at)
	n.note(e, p, hash, s.behaviour)
	n.due.clear()
	return nil
}

// cleared records an Ack that reaches s, as the library of s does.
func (s *judged) cleared(j *Judge, p *observed) {
	n, m := &s.sends, p.m
	judge := func(id uint16, v riptide.Verdict) {
		e := n.at(id)
		switch {
		case e == nil || e.clearedAt != 0:
		case v == riptide.Again:
			e.asked = true
		default:
			e.clearedAt, e.clearedBy, e.place = p.at, p.ref, s.places
		}
	}
	if !n.sending && !j.connection.begun {
		n.sending = true
		n.sender.Join(m.Last, m.AckBits, m.Cause, judge)
		return
	}
	n.sending = true
	n.sender.Received(s.acks.receiver.Last)
	n.sender.Acked(m.Last, m.AckBits, m.Cause, judge)
}

// joins records that the smoothed RTT is not known, for a connection that is met in the
// middle. Samples narrow it down step by step.
func (n *judgedSends) joins(j *Judge) {
	if n.rtt.low < 0 && !j.connection.begun {
		n.rtt.low, n.rtt.high = 0, int(riptide.Timeout/time.Millisecond)
	}
}

// sampled records a round trip time that passed at a time on its way to the side.
func (n *judgedSends) sampled(at machine.Instant, low, high int) {
	if !n.rtt.sampled(at, low, high) {
		return
	}
	// Where the RTT grows, the timer of the library finds that a message was sent within half
	// of it, and does not look again.
	for _, o := range n.due.open() {
		if e := n.at(o.id); e != nil && e.lastAt == o.at && n.rtt.within(e) {
			e.forgotten = true
		}
	}
}
