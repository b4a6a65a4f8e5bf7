package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// viewOpen is how many Notify messages are drawn when no result comes.
// Source: bound, the notify messages that are drawn
const viewOpen = 4 * riptide.ViewIDs

// notifySentWindow draws the newest notify messages of s, and those without a result. The library
// settles each message as acked or lost. Where s does not read in the order of the tap, the
// documented meaning of the headers is drawn instead.
func (t *follower) notifySentWindow(s *side, grade machine.Certainty) machine.Window {
	decided := t.sides[s.side.Other()].notifyIn.heard
	if s.tap.ordered {
		decided = s.notifyOut.unwrap(s.notifyOut.sender.Last)
	}
	first := max(min(decided-riptide.NotifySpan+1, s.notifyOut.top-riptide.ViewIDs+1), s.notifyOut.top-viewOpen+1)
	w := machine.Window{Name: "notify sent", First: max(t.notifyFrom(s), first), Next: s.notifyOut.top + 1, Grade: grade}
	for id := w.First; id <= s.notifyOut.top; id++ {
		cell := machine.CellUnknown
		e := s.notifyOut.lives.find(id)
		switch {
		case e == nil:
		case !s.tap.ordered && e.answers.named:
			cell = machine.CellAcked
		case !s.tap.ordered && e.receiver.delivered == machine.No:
			cell = machine.CellLost
		case e.sender.acked != machine.Unanswered && s.reads(e.sender.at, e.sender.by) != machine.Unknown:
			cell = machine.CellLost
			if e.sender.acked == machine.Yes {
				cell = machine.CellAcked
			}
		default:
			cell = machine.CellSent
		}
		w.Cells = append(w.Cells, cell)
		if e != nil {
			w.Slots = append(w.Slots, machine.Slot{
				Index: int(id & 0xffff), Sequence: e.sequence, Sequence64: id, Cell: cell, SentAt: e.copies.first,
				AckedAt: e.sender.at,
				Ref:     e.copies.frame, SettledBy: e.sender.by, Grade: grade,
			})
		}
	}
	return w
}

// notifyNewest returns the newest notify message of the peer that s has. Its library decides, or
// else its headers. It returns false where neither is known.
func (s *side) notifyNewest(peer *side) (newest int64, ok bool) {
	switch {
	case !peer.notifyOut.met:
		return 0, false
	case s.tap.ordered && s.notifyIn.known:
		return peer.notifyOut.unwrap(s.notifyIn.receiver.Last), true
	}
	return s.notifyIn.heard, !s.tap.ordered && s.notifyIn.heard > 0
}

// notifyFrom returns the first notify message of s about which anything can be known.
func (t *follower) notifyFrom(s *side) int64 {
	if t.begun {
		return 1
	}
	return max(s.notifyOut.first, 0)
}

// notifyReceivedWindow draws which notify messages of its peer s has delivered, up to the newest.
// An id is drawn as claimed if its header names it but no copy of it ever passed.
func (t *follower) notifyReceivedWindow(s *side, newest int64, grade machine.Certainty) machine.Window {
	peer := &t.sides[s.side.Other()]
	w := machine.Window{
		Name: "notify received", First: max(t.notifyFrom(peer), newest-riptide.ViewIDs+1), Next: newest,
		Grade: grade,
	}
	_, bits := s.notifyIn.receiver.Header()
	for id := w.First; id <= newest; id++ {
		cell := machine.CellUnknown
		e := peer.notifyOut.lives.find(id)
		switch behind := newest - id; {
		case e != nil && e.receiver.delivered == machine.Yes:
			if !s.tap.ordered || s.reads(e.receiver.at, e.receiver.by) != machine.Unknown {
				cell = machine.CellReceived
			}
		case e != nil && e.receiver.delivered == machine.No:
			cell = machine.CellEmpty
		case e != nil, !s.tap.ordered, id <= peer.notifyOut.lives.newestEnded(), id < s.notifyIn.joined:
		case behind > 0 && bits>>(behind-1)&1 == 1:
			cell = machine.CellClaimed
		default:
			cell = machine.CellEmpty
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}
