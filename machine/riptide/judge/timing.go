package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// When a message is sent again follows from the smoothed RTT of its sender's library. The tap
// knows that RTT only between two bounds.

const (
	// earlySlack is how much closer together two sendings can pass the tap than they are by the
	// library's clock. The library reads that clock once a tick.
	// Source: measured, TestMarginsRiptide
	earlySlack = 12 * time.Millisecond
	// clearSlack is how long an Ack may lie in the socket before its side reads it.
	// Source: measured, TestMarginsRiptide
	clearSlack = 500 * time.Millisecond
	// earlyLeast is how many times copies must come too early before that is no accident.
	// Source: measured, TestMarginsRiptide
	earlyLeast = 4
	// earlyApart is how far apart two early copies must be to count twice. Copies of one tick have one
	// cause.
	// Source: measured, TestMarginsRiptide
	earlyApart = 200 * time.Millisecond
	// lateSlack is how much later than due a message may be sent again. It covers a tick of the
	// application and a long frame.
	// Source: measured, TestMarginsRiptide
	lateSlack = 400 * time.Millisecond
	// lateLeast is how many late messages are no accident where most are late. The timer queue of the
	// later releases can hold a message back (LooseTimers).
	// Source: measured, TestMarginsRiptide
	lateLeast = 3
	// overdueMost is how many waiting messages the judge checks for each packet.
	// Source: bound, the messages that are checked for each packet
	overdueMost = 256
)

// rttRange is the smoothed RTT in whole ms, as low and as high as it can be. Both are -1 while
// none is known, else 0 ≤ low ≤ high.
type rttRange struct {
	low, high int
	fresh     freshSample // the last sample, while it may not have been read
}

// freshSample is what was known of the smoothed RTT before the last sample passed.
type freshSample struct {
	at        machine.Instant // when it passed; 0 for none
	low, high int
}

// sampled records a round trip time that passed at a time on its way to the side. It reports
// whether the RTT can be higher than before.
func (r *rttRange) sampled(at machine.Instant, low, high int) (grows bool) {
	was := r.high
	r.fresh = freshSample{at, r.low, r.high}
	r.low, r.high = riptide.Smooth(r.low, max(low, 0)), riptide.Smooth(r.high, high)
	return r.high > was
}

// schedule sets when a message that was just sent is due again.
func (r *rttRange) schedule(e *pending) {
	e.low, e.high, e.half = riptide.ResendAfter(r.low), riptide.ResendAfter(r.high), riptide.ResendUnknown/2
	if r.low >= 0 {
		e.half = time.Duration(r.low/2) * time.Millisecond
	}
	if f := &r.fresh; f.at != 0 && e.lastAt.Sub(f.at) < clearSlack {
		e.low, e.high = min(e.low, riptide.ResendAfter(f.low)), max(e.high, riptide.ResendAfter(f.high))
		e.half = min(e.half, e.low/2)
	}
	e.forgotten = r.within(e)
}

// within reports whether the timer of a message can run out within half the RTT.
func (r *rttRange) within(e *pending) bool {
	return r.high >= 0 && time.Duration(r.high/2)*time.Millisecond >= e.low
}

// dueQueue is the sendings that will be due again, by time.
//
//	0 ≤ head ≤ len(order); len(order)-head ≤ pendingMost
type dueQueue struct {
	order []dueAt
	head  int // those of order before it are done
}

// dueAt is a sending that will be due again.
type dueAt struct {
	id uint16
	at machine.Instant
}

func (q *dueQueue) put(d dueAt) {
	if q.head > 64 && q.head*2 > len(q.order) {
		k := copy(q.order, q.order[q.head:])
		q.order, q.head = q.order[:k], 0
	}
	if len(q.order)-q.head < pendingMost {
		q.order = append(q.order, d)
	}
}

func (q *dueQueue) open() []dueAt { return q.order[q.head:] }

func (q *dueQueue) clear() { q.order, q.head = q.order[:0], 0 }

// punctuality is how often messages were sent again before they were due, and after. A process
// that was held up between reading its clock and sending can make one copy come too early.
// That does not happen over and over.
//
//	earlyCount ≤ earlyTotal; early is nil while earlyTotal is 0, late while lateCount is 0
type punctuality struct {
	early      *machine.Divergence // the first copy that came too early
	earlyCount int                 // copies of one tick count once
	earlyAt    machine.Instant     // the last one that counted
	earlyTotal int
	againCount int                 // copies, but for those of messages that were late
	late       *machine.Divergence // the first message that was not sent again in time
	lateCount  int
}

// least returns the shortest time after which the message can be sent again.
func (e *pending) least() time.Duration {
	if e.asked {
		return min(e.half, e.low)
	}
	return e.low
}

// early returns the first copy of s that came before it was due, once enough others did too.
func (s *judged) early(p *observed, e *pending) *machine.Divergence {
	t, again := &s.sends.timing, p.at.Sub(e.lastAt)
	if !e.late {
		t.againCount++
	}
	if s.behaviour.Port || s.stream || again >= e.least()-earlySlack {
		return nil
	}
	if t.early == nil || p.at.Sub(t.earlyAt) > earlyApart {
		t.earlyCount++ // copies of one tick have one cause
		t.earlyAt = p.at
	}
	if t.early == nil {
		t.early = s.diverge(p, difference{
			ResendEarly, machine.RestsOnBoth, "riptide.sequence",
			fmt.Sprintf("at least %.0f ms after the last copy", machine.Milliseconds(e.least())),
			fmt.Sprintf("after %.0f ms", machine.Milliseconds(again)),
			fmt.Sprintf("message %d was sent again before it was due, as others were", e.id),
		}, e.last)
	}
	if t.earlyTotal++; t.earlyCount >= earlyLeast && 2*t.earlyTotal > t.againCount {
		return t.early
	}
	return nil
}

// overdue looks for a message that s should have sent again. If the RTT has fallen meanwhile,
// a message that was sent after another can be due before it.
func (s *judged) overdue(p *observed) *machine.Divergence {
	n, q, t := &s.sends, &s.sends.due, &s.sends.timing
	if s.stream || len(n.merged) > 0 {
		return nil
	}
	for k := q.head; k < min(len(q.order), q.head+overdueMost); k++ {
		o := q.order[k]
		if p.at.Sub(o.at) < lateSlack {
			return nil
		}
		e := n.at(o.id)
		if e == nil || e.lastAt != o.at || e.clearedAt != 0 || e.attempts >= s.behaviour.Limit || s.joined &&
			e.attempts == 1 || e.forgotten || e.late {
			if k == q.head {
				q.head++
			}
			continue
		}
		if p.at.Sub(o.at)-e.high < lateSlack || s.spoke.Sub(o.at)-e.high < lateSlack/2 {
			continue
		}
		if p.m.Type.Reliable() && p.m.Sequence == o.id {
			continue // this is the copy
		}
		e.late = true
		if t.lateCount++; t.late == nil {
			t.late = s.diverge(p, difference{
				ResendLate, machine.RestsOnBoth, "riptide.sequence",
				fmt.Sprintf("message %d again after %.0f ms", e.id, machine.Milliseconds(e.high)),
				fmt.Sprintf("not after %.0f ms", machine.Milliseconds(p.at.Sub(e.lastAt))),
				fmt.Sprintf("message %d was not acked, and not sent again", e.id),
			}, e.last)
		}
		if !s.behaviour.LooseTimers || t.lateCount >= lateLeast && t.lateCount > t.againCount {
			return t.late
		}
	}
	return nil
}
