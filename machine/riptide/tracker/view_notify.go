package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// viewOpen bounds how many notify messages are drawn where no verdict comes.
const viewOpen = 4 * riptide.ViewIDs

// notifySentWindow draws the newest notify messages of s, and those that wait for
// a verdict. Each gets one from its library: acked, or lost. Where the headers that
// it read do not pass the tap in its order, what they are documented to say stands
// for that verdict.
func (t *follower) notifySentWindow(s *side, grade machine.Certainty) machine.Window {
	judged := t.sides[s.side.Other()].notifyHeard
	if s.ordered {
		judged = s.unwrapNotify(s.notifyOut.Last)
	}
	first := max(min(judged-riptide.NotifyReach+1, s.notifyTop-riptide.ViewIDs+1), s.notifyTop-viewOpen+1)
	w := machine.Window{Name: "notify sent", First: max(t.notifyFrom(s), first), Next: s.notifyTop + 1, Grade: grade}
	for id := w.First; id <= s.notifyTop; id++ {
		cell := machine.CellUnknown
		e := s.notes.find(id)
		switch {
		case e == nil:
		case !s.ordered && e.Named:
			cell = machine.CellAcked
		case !s.ordered && e.Delivered == machine.No:
			cell = machine.CellLost
		case e.Acked != machine.Unanswered && s.reads(e.AckedAt, e.AckedBy) != machine.Unknown:
			cell = machine.CellLost
			if e.Acked == machine.Yes {
				cell = machine.CellAcked
			}
		default:
			cell = machine.CellSent
		}
		w.Cells = append(w.Cells, cell)
		if e != nil {
			w.Slots = append(w.Slots, machine.Slot{
				Index: int(id & 0xffff), Sequence: e.Sequence, Sequence64: id, Cell: cell, SentAt: e.At, AckedAt: e.AckedAt,
				Ref: e.frame, SettledBy: e.AckedBy, Grade: grade,
			})
		}
	}
	return w
}

// notifyNewest gives the newest notify message of the peer that s has: as its
// library has it, else as its headers have said; false where neither is known.
func (s *side) notifyNewest(peer *side) (newest int64, ok bool) {
	switch {
	case !peer.notifyMet:
		return 0, false
	case s.ordered && s.notified:
		return peer.unwrapNotify(s.notifyIn.Last), true
	}
	return s.notifyHeard, !s.ordered && s.notifyHeard > 0
}

// notifyFrom gives the first notify message of s that there can be something to
// say of.
func (t *follower) notifyFrom(s *side) int64 {
	if t.begun {
		return 1
	}
	return max(s.firstNotify, 0)
}

// notifyReceivedWindow draws which notify messages of its peer s has handed over,
// up to the newest. What its header names though no copy of it ever passed is a
// claim.
func (t *follower) notifyReceivedWindow(s *side, newest int64, grade machine.Certainty) machine.Window {
	peer := &t.sides[s.side.Other()]
	w := machine.Window{Name: "notify received", First: max(t.notifyFrom(peer), newest-riptide.ViewIDs+1), Next: newest, Grade: grade}
	_, bits := s.notifyIn.Header()
	for id := w.First; id <= newest; id++ {
		cell := machine.CellUnknown
		e := peer.notes.find(id)
		switch behind := newest - id; {
		case e != nil && e.Delivered == machine.Yes:
			if !s.ordered || s.reads(e.DeliveredAt, e.DeliveredBy) != machine.Unknown {
				cell = machine.CellReceived
			}
		case e != nil && e.Delivered == machine.No:
			cell = machine.CellEmpty
		case e != nil, !s.ordered, id <= peer.notes.newestEnded(), id < s.notifyJoined:
		case behind > 0 && bits>>(behind-1)&1 == 1:
			cell = machine.CellClaimed
		default:
			cell = machine.CellEmpty
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}
