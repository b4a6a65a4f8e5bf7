package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// The main branch writes what release 2.2.1 writes, and its windows handle jumps of 32 and more
// otherwise: without the shift fault. Often the first Acks after a jump fit both. So from a jump on, the
// tracker follows both windows until an Ack fits one of them only. What they disagree on is likely.
//
// Example: the newest id jumps from 40 to 77. Both windows then hold the same 16 bits. A copy of 50
// comes, which the faulty window refuses. That refusal is likely, until the Acks show the fault.

// repair is what is known of a side's windows.
type repair uint8

const (
	repairOpen    repair = iota // nothing has shown it: the side counts as the more widely used, with the fault
	repairNone                  // it has the shift fault
	repairShown                 // it has not
	repairSettled               // it has not, as an earlier run showed
)

// rivals are the windows of a side as the other version has them. Both are nil until a jump, and once
// the version is known.
type rivals struct {
	receiver *riptide.Receiver
	sender   *riptide.Sender
	jump     int     // of the receiving window's newest id, at which the versions divide
	cleared  []int64 // the messages that the rival sender takes for acked by the present Ack
	disputed bool    // the windows disagree on the arrival that is processed
}

func (r rivals) clone() rivals {
	if r.receiver != nil {
		c := r.receiver.Clone()
		r.receiver = &c
	}
	if r.sender != nil {
		c := r.sender.Clone()
		r.sender = &c
	}
	r.cleared = nil
	return r
}

// repairable reports whether a side's windows can be those of release 2.2.1 and those of main.
func repairable(s *riptide.Speaker) bool { return s.Builds.Has(newestBuild) }

var newestBuild, _ = wire.LookupBuild("2.2.1")

// repaired is the behaviour without the shift fault.
var repaired = riptide.LookupBehaviour("riptide@main")

// takes runs the windows of a side over an id that no Ack shows to be compared with. It reports whether its
// own window delivers the message.
func (s *side) takes(id uint16) bool {
	fresh := s.in.receiver.Take(id)
	s.rivals.disputed = false
	if r := s.rivals.receiver; r != nil {
		s.rivals.disputed = r.Take(id) != fresh && s.repair == repairOpen && s.repairable
	}
	return fresh
}

// agree sets the rival window to what an Ack shows, where they differ.
func (r *rivals) agree(m *wire.Message) {
	if r.receiver != nil && !r.receiver.Holds(m) {
		r.receiver.Merge(m.Last, m.AckBits)
	}
}

// compare runs the rival window over an arrival that an Ack answers, as the side's own window was. It
// settles which of the two the side has. The flags say whether the message is delivered and whether the Ack
// fits: first by the own window, and then by the settled one.
func (t *follower) compare(p *step, a *arrival, fresh, follows bool) (isFresh, isFollowed bool) {
	s, r := p.own, p.own.rivals.receiver
	s.rivals.disputed = false
	if r == nil {
		return fresh, follows
	}
	rivalFresh := r.Take(a.sequence)
	rivalFollows := r.Holds(p.m)
	if rivalFollows == follows || p.m.AckBits == allBits {
		// Both fit, or the capture lacks arrivals and neither does. A full window shows nothing.
		s.rivals.disputed = rivalFresh != fresh && s.repair == repairOpen && s.repairable
		s.rivals.agree(p.m)
		return fresh, follows
	}
	is := (s.behaviour == repaired) == follows
	if is {
		s.once(p, riptide.WindowRepaired, s.tap.grade(), float64(s.rivals.jump))
	}
	if rivalFollows {
		s.in.receiver, fresh, follows = *r, rivalFresh, true
	}
	s.settleRepair(is)
	return fresh, follows
}

// allBits are the bits of an Ack behind which nothing is missing.
const allBits = 1<<riptide.WindowAcks - 1

// settleRepair records which windows a side has.
func (s *side) settleRepair(is bool) {
	b := s.released
	s.repair = repairNone
	if is {
		b, s.repair = repaired, repairShown
	}
	switch {
	case s.behaviour == b:
	case is && s.rivals.sender != nil:
		s.out.sender = *s.rivals.sender
	default:
		s.out.sender = s.out.sender.As(b)
	}
	s.behaviour, s.in.receiver.Behaviour = b, b
	s.rivals = rivals{}
}

// divides starts the rival of a side's receiving window at a jump that divides the versions.
func (s *side) divides(gap int) {
	if gap < riptide.JumpList || s.rivals.receiver != nil || s.behaviour.Receive != riptide.ReceiveList ||
		s.behaviour.Port {
		return
	}
	var rival *riptide.Behaviour
	switch {
	case s.repair == repairOpen && s.behaviour.ShiftFault:
		rival = repaired
	case s.repair == repairSettled:
		rival = s.released
	default:
		return
	}
	r := s.in.receiver.As(rival)
	s.rivals.receiver, s.rivals.jump = &r, gap
}

// decides processes an Ack in a side's sending window. From a jump on that divides the versions, it marks
// the messages that only one of them takes for acked.
func (s *side) decides(at machine.Instant, m *wire.Message, decide func(id uint16, v riptide.Verdict)) {
	if s.behaviour.Send == riptide.SendReceived {
		s.decidesPolled(at, m, decide)
		return
	}
	own, r := &s.out.sender, s.rivals.sender
	if r == nil && s.repair == repairOpen && s.repairable && s.behaviour.Send == riptide.SendBits &&
		riptide.GapOf(m.Last, own.Last) >= riptide.JumpList {
		c := own.As(repaired)
		s.rivals.sender, r = &c, &c
	}
	if r == nil {
		own.Acked(m.Last, m.AckBits, m.Cause, decide)
		return
	}
	s.rivals.cleared = s.rivals.cleared[:0]
	r.Acked(m.Last, m.AckBits, m.Cause, func(id uint16, v riptide.Verdict) {
		if e := s.waiting(id); v == riptide.Cleared && e != nil {
			e.sender.rival = true
			s.rivals.cleared = append(s.rivals.cleared, e.number)
		}
	})
	own.Acked(m.Last, m.AckBits, m.Cause, func(id uint16, v riptide.Verdict) {
		if e := s.waiting(id); v == riptide.Cleared && e != nil {
			e.sender.disputed = e.sender.disputed || !e.sender.rival
		}
		decide(id, v)
	})
	for _, n := range s.rivals.cleared {
		e := s.out.lives.at(n)
		e.sender.rival = false
		e.sender.disputed = e.sender.disputed || e.sender.acked == machine.Unanswered
	}
}

// waiting returns the message of a side that waits under an id for an Ack; nil for none.
func (s *side) waiting(id uint16) *life {
	if !s.out.met {
		return nil
	}
	for e := s.out.lives.find(s.out.unwrap(id)); e != nil; e = s.out.lives.older(e) {
		if e.sender.acked == machine.Unanswered && !e.sender.forgot {
			return e
		}
	}
	return nil
}
