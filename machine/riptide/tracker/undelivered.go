package tracker

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// A message can be acked and never be handed over in three ways, all of them the
// window's fault at a jump of 32 and more ids:
//
//	refused   a copy came, and the receiver's window took it for a duplicate;
//	lied of   no copy came, but an Ack named the id, and its sender was content;
//	cleared   no copy came, no Ack named it: the sender's own window, which has
//	          the same fault, took it for acked.
//
// The first is seen at the receiver's end. Of the other two it sees that the id
// never comes, although its sender goes on and would have sent it again.

// absent is an id of a side that has not passed the tap although newer ones have.
type absent struct {
	id         int64
	since      machine.Instant // when the one before it passed: it was sent after that
	at         machine.Instant // when a newer one passed
	ref        machine.Ref
	falseAck   machine.Ref // the Ack that made it look acked; zero for none
	falseAckAt machine.Instant
}

// jump is a jump of the newest id that a receiver's window, or its sender's, did
// not stand.
type jump struct {
	from, to int64
	at       machine.Instant
}

const (
	absentMost = 1 << 10
	leapsMost  = 64
	// leapReach is how many ids around a jump the windows of both ends get wrong.
	leapReach = 48
)

// skip notes the ids between the newest that has passed and one after it.
func (o *outbound) skip(to int64, p *step) {
	for id := max(o.top+1, to-absentMost); id < to; id++ {
		if len(o.absent) == absentMost {
			o.absent = o.absent[:copy(o.absent, o.absent[absentMost/4:])]
		}
		o.absent = append(o.absent, absent{id: id, since: o.topAt, at: p.at, ref: p.ref})
	}
}

// came takes an id out of those that have not passed.
func (o *outbound) came(id int64) {
	if i, is := o.absence(id); is {
		o.absent = slices.Delete(o.absent, i, i+1)
	}
}

// absence finds an id among those that have not passed, which stand by id.
func (o *outbound) absence(id int64) (int, bool) {
	return slices.BinarySearchFunc(o.absent, id, func(x absent, id int64) int { return cmp.Compare(x.id, id) })
}

// markFalselyAcked notes that an Ack has made an id that never came look acked: by what it says,
// or by what the sender's window makes of it.
func (o *outbound) markFalselyAcked(id int64, by *step) {
	if i, is := o.absence(id); is && o.absent[i].falseAck == 0 {
		o.absent[i].falseAck, o.absent[i].falseAckAt = by.ref, by.at
	}
}

// addJump notes a jump of the newest id received.
func (i *inbound) addJump(to int64, gap int, at machine.Instant) {
	i.jumps = machine.KeepNewest(i.jumps, jump{to - int64(gap), to, at}, leapsMost)
}

// jumpCovers reports whether the window has had a jump that can have made it take an id
// for received.
func (i *inbound) jumpCovers(id int64) bool {
	for k := range i.jumps {
		if l := &i.jumps[k]; id <= l.to && l.to-l.from >= riptide.JumpList {
			return true
		}
	}
	return false
}

// falseAcks notes the ids between the newest before a jump and the one after it that the
// Ack of a side names: none of them can have come.
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

// neverComes reports whether an id of s that has not come will not come any more: acked
// in the eyes of s, who goes on and would have sent it again.
func (t *follower) neverComes(s, receiver *side, x *absent) bool {
	again := riptide.ResendAfter(s.smoothed)
	// One that was sent long before can have been given up after 15 attempts.
	given := func(at machine.Instant) bool {
		return !s.behaviour.DropsConnection && at.Sub(x.since) >= time.Duration(s.behaviour.Limit-1)*again
	}
	for i := range receiver.in.jumps {
		l := &receiver.in.jumps[i]
		if x.id <= l.from-leapReach || x.id > l.to+leapReach {
			continue
		}
		if x.falseAck != 0 {
			return s.speech.last.Sub(x.falseAckAt) >= s.roundTrip() && !given(x.falseAckAt)
		}
		// The way here, and twice the time after which it is sent again.
		if s.speech.last.Sub(max(l.at, x.at)) >= s.roundTrip()/2+2*again && !given(s.speech.last) {
			return true
		}
	}
	return false
}

// settleAbsent judges the ids of s that have not come for long; all of them where
// the capture ends.
func (t *follower) settleAbsent(s *side, now machine.Instant, end bool, out *machine.Effects) {
	receiver := &t.sides[s.side.Other()]
	n := 0
	for n < len(s.out.absent) && (end || now.Sub(s.out.absent[n].at) > lifeReliable) {
		x := &s.out.absent[n]
		if receiver.tap.near && receiver.behaviour.ShiftFault && !s.mayPort && t.neverComes(s, receiver, x) {
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

// refusedForGood judges, at the end of its life, a message of s that a near
// receiver refused: its sender has taken one of the Acks where it went on and
// sent no more copies.
func (t *follower) refusedForGood(s *side, e *life, out *machine.Effects) {
	receiver := &t.sides[s.side.Other()]
	since := s.speech.last.Sub(e.answers.last)
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

// notDelivered tells that s acked a message of its peer and never handed it over.
func (t *follower) notDelivered(p *step, s *side, sequence int64, sure machine.Certainty, about machine.Ref) {
	p.out.At(p.at, p.ref).Report(riptide.AckedNotDelivered, s.side, sure, about, float64(uint16(sequence)),
		s.behaviour.Number())
	t.emit(p, machine.Event{Kind: riptide.EventNotDelivered, Side: s.side, Certainty: sure,
		Sequence: uint32(uint16(sequence)), Sequence64: sequence, About: about})
}
