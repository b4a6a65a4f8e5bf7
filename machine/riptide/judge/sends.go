package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// judgedSends is the reliable messages that a side sends.
type judgedSends struct {
	next    uint16 // sequence of the next new one
	first   uint16 // of a side that is met in the middle: that of the first one
	met     bool
	form    wire.Form
	sender  riptide.Sender
	sending bool // sender is known
	ring    []pending
	merged  []pending // under ids that are OR-ed, so that several can share one
	order   []dueAt   // of what was sent, by time
	head    int
	ref     machine.Ref // the last new one

	// The smoothed RTT in whole ms, as low and as high as it can be; -1 unknown.
	low, high int
	fresh     freshSample // the last sample, while it may not have been read

	// A copy that comes too early can be due to a process that was held up between
	// looking at its clock and sending the copy before. That does not happen over
	// and over.
	early      *machine.Divergence // the first such copy
	earlyCount int
	earlyAt    machine.Instant // the last one that counted
	earlyTotal int
	againCount int
	late       *machine.Divergence // the first message that was not sent again in time
	lateCount  int
	overLimit  int // most sendings beyond the limit, which the application may have lifted
}

// pending is one message that was sent.
type pending struct {
	hash        uint64
	head        uint64 // of its first bytes, but for its type
	body        uint64 // of what stands behind its sequence
	first, last machine.Ref
	lastAt      machine.Instant
	clearedAt   machine.Instant // when the Ack passed that clears it; 0 for none
	clearedBy   machine.Ref
	place       int64         // of that Ack among what passed the tap towards the side
	low, high   time.Duration // after its last sending it is due no sooner, and no later
	half        time.Duration // and asked for by an Ack, no sooner than this
	asked       bool
	live        bool
	forgotten   bool // by the library's timer
	late        bool // it was due, and others were sent instead
	id          uint16
	attempts    int
}

// freshSample is what was known of the smoothed RTT before the last sample passed.
type freshSample struct {
	at        machine.Instant // when it passed; 0 for none
	low, high int
}

// dueAt is a sending that will be due again.
type dueAt struct {
	id uint16
	at machine.Instant
}

const (
	pendingFirst, pendingMost = 16, 4096
	// joinedReach and joinedTime bound what may have been sent first before the
	// capture: 15 copies of it take no longer.
	joinedReach = 1024
	joinedTime  = 10 * time.Second
	// pendingKept is how long a message that is acked is kept, to be told from
	// another one of its number.
	pendingKept = 2 * time.Second
	// likeReach and likeTime bound of which messages one may be a copy.
	likeReach = 64
	likeTime  = 2 * time.Second
	// mergedMost bounds the messages to several that are kept, whose ids are no count.
	mergedMost = 256
)

func (n *judgedSends) begin(b *riptide.Behaviour, form wire.Form) {
	n.form, n.sender, n.next, n.low, n.high = form, riptide.NewSender(b), b.First, -1, -1
}

// at gives a message, nil where it is not kept.
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

// sendsReliable takes a reliable message of s.
func (s *judged) sendsReliable(j *Judge, p *sight) *machine.Divergence {
	n, m, b := &s.sends, p.m, s.behaviour
	if b.OneSequence {
		// Pytide 2.0.0: all have the same sequence, and none is sent again.
		if s.ordered && m.Sequence != 1 {
			return s.diverge(p, "sequence", "riptide.sequence", 1, m.Sequence, "every reliable message of this port has id 1", n.ref)
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
	if !n.met && !j.life.begun {
		due = m.Sequence
		s.joined, n.first = true, m.Sequence
	}
	if s.stream && !s.near && (s.hole || riptide.GapOf(m.Sequence, due) > 0) {
		// The stream loses nothing: the capture has, and what it lacks may still come.
		s.hole = true
		s.opinion.Undecided++
		return nil
	}
	merged := false
	if m.Sequence != due {
		before := riptide.GapOf(m.Sequence, n.first)
		if s.joined && before < 0 && before > -joinedReach && p.at.Sub(j.life.first) < n.waited() && n.at(m.Sequence) == nil && !n.has(m.Sequence) {
			// First sent before the capture.
			s.opinion.Undecided++
			n.note(n.enter(m.Sequence, p.at), p, hash, b)
			return nil
		}
		merged = b.MergedSequences && m.Sequence&due == due && m.Type != wire.Welcome && !s.client(j)
		if e := n.at(m.Sequence); s.near && e != nil && !merged && m.Sequence == due-1 && e.attempts == 1 {
			if x := n.like(e); x != nil {
				return s.renumbered(p, x, e)
			}
		}
		if e := n.at(m.Sequence); e != nil && !merged && riptide.GapOf(m.Sequence, due) < 0 {
			return s.diverge(p, "sequence-reuse", "riptide.sequence", due, m.Sequence, fmt.Sprintf("message %d was sent before with other content", m.Sequence), e.first)
		}
		if v := s.unsentAs(j.config.Senders[s.side].Codec, p, due); s.near && !merged && m.Sequence == due+1 && v != nil {
			return v
		}
		if !merged {
			return s.diverge(p, "sequence", "riptide.sequence", due, m.Sequence, "the sequence of reliable messages steps by one from message to message", n.ref)
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

// waited gives for how long a message may have been sent again and again.
func (n *judgedSends) waited() time.Duration {
	if n.high < 0 {
		return joinedTime
	}
	return min(joinedTime, settlingTime+15*riptide.ResendAfter(n.high))
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

// like gives the one message that was sent shortly before another one and that it
// could be a copy of, but for its sequence; nil for none, or where there are several.
func (n *judgedSends) like(e *pending) (one *pending) {
	for k := uint16(1); k <= likeReach; k++ {
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

// find gives the message of which a datagram is another copy; nil for none.
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

// note takes a sending.
func (n *judgedSends) note(e *pending, p *sight, hash uint64, b *riptide.Behaviour) {
	if e.attempts == 0 {
		e.first, e.hash, e.head, e.body = p.ref, hash, headOf(p.bytes, len(p.bytes)), bodyOf(n.form, p.bytes)
	}
	e.attempts++
	e.last, e.lastAt, e.asked, e.late = p.ref, p.at, false, false
	e.low, e.high, e.half = riptide.ResendAfter(n.low), riptide.ResendAfter(n.high), riptide.ResendUnknown/2
	if n.low >= 0 {
		e.half = time.Duration(n.low/2) * time.Millisecond
	}
	if f := &n.fresh; f.at != 0 && p.at.Sub(f.at) < clearSlack {
		e.low, e.high = min(e.low, riptide.ResendAfter(f.low)), max(e.high, riptide.ResendAfter(f.high))
		e.half = min(e.half, e.low/2)
	}
	e.forgotten = n.within(e)
	if b.Limit == 0 {
		return
	}
	if n.head > 64 && n.head*2 > len(n.order) {
		k := copy(n.order, n.order[n.head:])
		n.order, n.head = n.order[:k], 0
	}
	if len(n.order)-n.head < pendingMost {
		n.order = append(n.order, dueAt{e.id, p.at})
	}
}

const (
	// earlySlack is by how much two sendings can show closer together than they
	// are by the library's clock: it is asked once a tick.
	earlySlack = 12 * time.Millisecond
	// clearSlack is how long an Ack may lie in the socket before it is read.
	clearSlack = 500 * time.Millisecond
	// earlyLeast copies that come too early are no accident.
	earlyLeast = 4
	earlyApart = 200 * time.Millisecond
	// lateSlack is how much later than due a message may be sent again: a tick of
	// the application, and a frame that was long.
	lateSlack = 400 * time.Millisecond
	// lateLeast messages that are late are no accident either, where most are: the
	// queue of timers of the later releases can hold one back (LooseTimers).
	lateLeast = 3
	// overdueReach bounds how many of those that wait are looked at for each packet.
	overdueReach = 256
)

// resends takes another copy of a message.
func (s *judged) resends(p *sight, e *pending) *machine.Divergence {
	n, b := &s.sends, s.behaviour
	if !s.near {
		n.note(e, p, e.hash, b)
		s.opinion.Undecided++
		return nil
	}
	again := p.at.Sub(e.lastAt)
	merged := len(n.merged) > 0
	switch {
	case b.Port:
		// Pytide sends again what it takes for asked for, at any time.
	case e.clearedAt != 0 && (s.readTo > e.place && !e.asked || s.left(p).Sub(e.clearedAt) > clearSlack) && !merged:
		// One that an Ack asked for goes out as that Ack is handled: what lay in the
		// socket behind it was read and answered before, but not handled.
		return s.diverge(p, "resend-after-ack", "riptide.sequence", "no resend", e.id, fmt.Sprintf("the Ack that clears message %d came %.0f ms before it was sent again", e.id, machine.Milliseconds(p.at.Sub(e.clearedAt))), e.last, e.clearedBy)
	case b.Limit > 0 && e.attempts >= b.Limit && !merged && !b.DropsConnection:
		return s.diverge(p, "attempts", "riptide.sequence", fmt.Sprintf("at most %d sendings", b.Limit), fmt.Sprintf("sending %d", e.attempts+1), fmt.Sprintf("message %d is given up after %d sendings", e.id, b.Limit), e.first, e.last)
	case b.Limit > 0 && e.attempts >= b.Limit:
		// The application can lift the limit: MaxSendAttempts.
		if n.overLimit == 0 {
			s.opinion.Undecided++
		}
		n.overLimit = max(n.overLimit, e.attempts+1)
	}
	if !e.late {
		n.againCount++
	}
	if !b.Port && !s.stream && again < e.least()-earlySlack {
		if n.early == nil || p.at.Sub(n.earlyAt) > earlyApart {
			n.earlyCount++ // those of one tick have one cause
			n.earlyAt = p.at
		}
		if n.early == nil {
			n.early = s.diverge(p, "resend-early", "riptide.sequence", fmt.Sprintf("after %.0f ms at the soonest", machine.Milliseconds(e.least())), fmt.Sprintf("after %.0f ms", machine.Milliseconds(again)), fmt.Sprintf("message %d was sent again before it was due, as are others", e.id), e.last)
		}
		if n.earlyTotal++; n.earlyCount >= earlyLeast && 2*n.earlyTotal > n.againCount {
			return n.early
		}
	}
	n.note(e, p, e.hash, b)
	return nil
}

// least gives after what time the message can be sent again.
func (e *pending) least() time.Duration {
	if e.asked {
		return min(e.half, e.low)
	}
	return e.low
}

// farReliable takes a new message of a far side.
func (s *judged) farReliable(p *sight, hash uint64) *machine.Divergence {
	n := &s.sends
	s.opinion.Undecided++
	if e := n.at(p.m.Sequence); e != nil && !s.behaviour.MergedSequences && !s.behaviour.Port {
		return s.diverge(p, "sequence-reuse", "riptide.sequence", "another sequence", p.m.Sequence, fmt.Sprintf("message %d was sent before with other content", p.m.Sequence), e.first)
	}
	n.met, n.ref = true, p.ref
	e := n.enter(p.m.Sequence, p.at)
	n.note(e, p, hash, s.behaviour)
	n.order, n.head = n.order[:0], 0
	return nil
}

// cleared takes an Ack that reaches s, as its library does.
func (s *judged) cleared(j *Judge, p *sight) {
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
	if !n.sending && !j.life.begun {
		n.sending = true
		n.sender.Join(m.Last, m.AckBits, m.Cause, judge)
		return
	}
	n.sending = true
	n.sender.Received(s.acks.receiver.Last)
	n.sender.Acked(m.Last, m.AckBits, m.Cause, judge)
}

// overdue looks for a message that s ought to have sent again. Where the RTT has
// fallen meanwhile, one that was sent after another is due before it.
func (s *judged) overdue(p *sight) *machine.Divergence {
	n := &s.sends
	if s.stream || len(n.merged) > 0 {
		return nil
	}
	for k := n.head; k < min(len(n.order), n.head+overdueReach); k++ {
		o := n.order[k]
		if p.at.Sub(o.at) < lateSlack {
			return nil
		}
		e := n.at(o.id)
		if e == nil || e.lastAt != o.at || e.clearedAt != 0 || e.attempts >= s.behaviour.Limit || s.joined && e.attempts == 1 || e.forgotten || e.late {
			if k == n.head {
				n.head++
			}
			continue
		}
		if p.at.Sub(o.at)-e.high < lateSlack || s.spoke.Sub(o.at)-e.high < lateSlack/2 {
			continue
		}
		if p.m.Type.Reliable() && p.m.Sequence == o.id {
			continue // here it comes
		}
		e.late = true
		if n.lateCount++; n.late == nil {
			n.late = s.diverge(p, "resend-late", "riptide.sequence", fmt.Sprintf("message %d again after %.0f ms", e.id, machine.Milliseconds(e.high)), fmt.Sprintf("not after %.0f ms", machine.Milliseconds(p.at.Sub(e.lastAt))), fmt.Sprintf("message %d was not acked, and not sent again", e.id), e.last)
		}
		if !s.behaviour.LooseTimers || n.lateCount >= lateLeast && n.lateCount > n.againCount {
			return n.late
		}
	}
	return nil
}

// joins says that of a connection that is met in the middle the smoothed RTT is not
// known: samples bring it in only by and by.
func (n *judgedSends) joins(j *Judge) {
	if n.low < 0 && !j.life.begun {
		n.low, n.high = 0, int(riptide.Timeout/time.Millisecond)
	}
}

// sampled takes a round trip time that passed at a time on its way to the side.
func (n *judgedSends) sampled(at machine.Instant, low, high int) {
	was := n.high
	n.fresh = freshSample{at, n.low, n.high}
	n.low, n.high = riptide.Smooth(n.low, max(low, 0)), riptide.Smooth(n.high, high)
	if n.high <= was {
		return
	}
	// Where the RTT grows, the library's timer finds that a message was sent within
	// half of it, and forgets to look again.
	for _, o := range n.order[n.head:] {
		if e := n.at(o.id); e != nil && e.lastAt == o.at && n.within(e) {
			e.forgotten = true
		}
	}
}

// within reports whether the timer of a message can run out within half the RTT.
func (n *judgedSends) within(e *pending) bool {
	return n.high >= 0 && time.Duration(n.high/2)*time.Millisecond >= e.low
}
