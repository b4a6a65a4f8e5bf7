package tracker

import "github.com/ackscope/ackscope/machine"

// settlePath takes a packet of s whose life has ended. Each copy has an
// acknowledgement of its own, and no other evidence exists. Away from the
// receiver, the tracker therefore settles the way there and back as one, by the
// copies that were not needless. At the receiver it settles only the way of the
// acknowledgements.
func (t *Tracker) settlePath(s *party, e *life, needless int32) {
	r := &t.parties[s.side.Other()]
	if e.tally.acks == 0 && !e.gaveUp || e.doubtful || e.ignored {
		return
	}
	if r.near {
		if !s.near {
			r.losses.answering.SettleLost(uint64(max(e.tally.ackLost, 0)))
			r.losses.answering.Settle(false)
		}
		return
	}
	lost := max(e.tally.attempts()-needless, 0)
	if e.tally.acks > 0 {
		lost = max(lost-1, 0)
		defer s.losses.both.Settle(false)
	}
	s.losses.both.SettleLost(uint64(lost))
}

// path returns what was lost of a side's packets on the way to its peer.
func (t *Tracker) path(x machine.Side) (p machine.PathLoss, sure machine.Certainty, both bool) {
	s, peer := &t.parties[x], &t.parties[x.Other()]
	switch {
	case t.config.Stream:
		return p, machine.Unknown, false // TCP repairs what is lost
	case s.near && peer.near:
		return machine.PathLoss{Settled: s.seen.packets}, machine.Certain, false // there is no path
	case s.near && s.losses.both.Settled == 0:
		return s.losses.answering, machine.Likely, false
	case s.near:
		return s.losses.both, machine.Likely, true
	case peer.near:
		return p, machine.Unknown, false // the tap does not show copies that never came
	}
	return s.losses.both, machine.Possible, true
}
