package tracker

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// A message can be acked and never delivered. There are three ways, and the window's fault at a
// jump of 32 and more ids causes all of them:
//
//	refused       a copy came, and the receiver's window took it for a duplicate;
//	falsely acked no copy came, but an Ack named the id, so its sender stopped;
//	cleared       no copy came and no Ack named it: the sender's own window, which
//	              has the same fault, counted it as acked.
//
// A tap at the receiver sees the first. For the other two, it sees that the id never comes,
// although its sender goes on and would have sent it again.

// absent is an id of a side that has not passed the tap although newer ones have.
type absent struct {
	id         int64
	since      machine.Instant // when the id before it passed: this one was sent later
	at         machine.Instant // when a newer one passed
	ref        machine.Ref
	falseAck   machine.Ref // the Ack that falsely acked it; zero for none
	falseAckAt machine.Instant
}

// jump is a jump of the newest id that corrupted a receiver's window, or its sender's.
type jump struct {
	from, to int64
	at       machine.Instant
}

const (
	// absentMost is how many absent ids of a side are kept.
	// Source: bound, the absent ids that are kept
	absentMost = 1 << 10
	// jumpsMost is how many jumps of the newest id are kept.
	// Source: bound, the jumps that are kept
	jumpsMost = 64
	// jumpMargin is how many ids around a jump the windows of both ends get wrong.
	// Source: library, Riptide 2.0.0 to 2.2.1: wider than the 16 bits of an Ack and the 32 of a segment
	jumpMargin = 48
)

// skip records the ids between the newest that has passed and a newer one. That one is to.
func (o *outbound) skip(to int64, p *step) {
	for id := max(o.top+1, to-absentMost); id < to; id++ {
		if len(o.absent) == absentMost {
			o.absent = o.absent[:copy(o.absent, o.absent[absentMost/4:])]
		}
		o.absent = append(o.absent, absent{id: id, since: o.topAt, at: p.at, ref: p.ref})
	}
}

// came removes an id from those that have not passed.
func (o *outbound) came(id int64) {
	if i, is := o.absence(id); is {
		o.absent = slices.Delete(o.absent, i, i+1)
	}
}

// absence finds an id among those that have not passed, which are sorted by id.
func (o *outbound) absence(id int64) (int, bool) {
	if n := len(o.absent); n == 0 || id < o.absent[0].id || id > o.absent[n-1].id {
		return 0, false // as nearly always
	}
	return slices.BinarySearchFunc(o.absent, id, func(x absent, id int64) int { return cmp.Compare(x.id, id) })
}

// markFalselyAcked records that an Ack acked an id that never came. Either the Ack names it, or the
// sender's window counts it as acked.
func (o *outbound) markFalselyAcked(id int64, by *step) {
	if i, is := o.absence(id); is && o.absent[i].falseAck == 0 {
		o.absent[i].falseAck, o.absent[i].falseAckAt = by.ref, by.at
	}
}

// addJump records a jump of the newest id received.
func (i *inbound) addJump(to int64, gap int, at machine.Instant) {
	i.jumps = machine.KeepNewest(i.jumps, jump{to - int64(gap), to, at}, jumpsMost)
}

// jumpCovers reports whether the window has had a jump that can have made it count an id as
// received.
func (i *inbound) jumpCovers(id int64) bool {
	for k := range i.jumps {
		if l := &i.jumps[k]; id <= l.to && l.to-l.from >= riptide.JumpList {
			return true
		}
	}
	return false
}

// falseAcks reports the ids that an Ack names and that a jump skipped. None of them can have
// arrived. newest is the id after the jump.
func (t *follower) falseAcks(p *step, newest uint16, gap int) {
	s, peer := p.own, p.peer
	lies := 0
	for bit := 1; bit <= riptide.WindowAcks && bit < gap; bit++ {
		if has, _ := s.in.receiver.Received(newest - uint16(bit)); !has {
			continue
		}
		peer.out.markFalselyAcked(peer.out.unwrap(newest-uint16(bit)), p)
		lies++
	}
	if lies > 0 {
		p.out.At(p.at, p.ref).Report(riptide.FalseAck, s.side, s.tap.grade(), 0, float64(lies), float64(newest), float64(gap))
	}
}

// neverComes reports whether an id of s that has not passed will never pass. It will not if s
// counts it as acked, goes on, and would have sent it again by now.
func (t *follower) neverComes(s, receiver *side, x *absent) bool {
	again := riptide.ResendAfter(s.smoothed)
	// A message sent long before can have been given up after 15 attempts.
	given := func(at machine.Instant) bool {
		return !s.behaviour.DropsConnection && at.Sub(x.since) >= time.Duration(s.behaviour.Limit-1)*again
	}
	for i := range receiver.in.jumps {
		l := &receiver.in.jumps[i]
		if x.id <= l.from-jumpMargin || x.id > l.to+jumpMargin {
			continue
		}
		if x.falseAck != 0 {
			return s.activity.last.Sub(x.falseAckAt) >= s.roundTrip() && !given(x.falseAckAt)
		}
		// The way here, and twice the resend time.
		if s.activity.last.Sub(max(l.at, x.at)) >= s.roundTrip()/2+2*again && !given(s.activity.last) {
			return true
		}
	}
	return false
}

// settleAbsent settles the ids of s that have not come for long. At the end of the capture it
// settles all of them.
func (t *follower) settleAbsent(s *side, now machine.Instant, end bool, out *machine.Effects) {
	receiver := &t.sides[s.side.Other()]
	n := 0
	for n < len(s.out.absent) && (end || now.Sub(s.out.absent[n].at) > lifeReliable) {
		x := &s.out.absent[n]
		if receiver.tap.near && receiver.behaviour.ShiftFault && !s.maybePort && t.neverComes(s, receiver, x) {
			ref := x.falseAck
			if ref == 0 {
				ref = x.ref
			}
			t.notDelivered(pastStep(x.at, ref, out), receiver, x.id, machine.Likely, 0)
		}
		n++
	}
	s.out.absent = s.out.absent[:copy(s.out.absent, s.out.absent[n:])]
}

// refusedForGood settles a message of s that a near receiver refused, at the end of its life. Its
// sender has read one of the Acks if it went on and sent no more copies.
func (t *follower) refusedForGood(s *side, e *life, out *machine.Effects) {
	receiver := &t.sides[s.side.Other()]
	since := s.activity.last.Sub(e.answers.last)
	if e.copies.last > e.answers.last || since < s.roundTrip() {
		return
	}
	sure := machine.Likely
	if since >= s.roundTrip()+riptide.ResendAfter(s.smoothed)+riptide.TickSlack &&
		(s.behaviour.DropsConnection || int(e.copies.count) < s.behaviour.Limit) {
		sure = min(machine.Certain, e.certainty)
	}
	t.notDelivered(pastStep(e.details.refusedAt, e.details.refusedRef, out), receiver, e.sequence64, sure, e.copies.frame)
}

// notDelivered reports that s acked a message of its peer and never delivered it.
func (t *follower) notDelivered(p *step, s *side, sequence int64, sure machine.Certainty, about machine.Ref) {
	p.out.At(p.at, p.ref).Report(riptide.AckedNotDelivered, s.side, sure, about, float64(uint16(sequence)),
		s.behaviour.Number())
	t.emit(p, machine.Event{
		Kind: riptide.EventNotDelivered, Side: s.side, Certainty: sure,
		Sequence: uint32(uint16(sequence)), Sequence64: sequence, About: about,
	})
}
