package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// aheadClaim is what a side diverges by: a header names a packet that is newer than all that
// had passed the tap. For example, the peer's newest is 83, and a header names 339.
//
// The capture may lack packet 339. Then packets 84 to 338 were sent before it, and those that
// pass after the header were overtaken by it. A network overtakes a few packets, not many. So
// the peer's own numbers settle it: if 84, 85 and so on pass one by one, 339 was not sent. As
// many must pass as ack_bits cover, and twice as many more as ever overtook one of the peer's.
type aheadClaim struct {
	sequence uint32
	since    int // numbers that passed after the header, each newer than all before, and older than sequence
	open     bool
}

// claimsAhead keeps what a side diverges by, if it names a packet newer than all that passed.
// It does not where the peer may have begun anew: a side that never named a packet of this
// session speaks of the one before.
func (s *Judged) claimsAhead(peer *Judged, c gaffer.Claims) {
	switch v := s.Opinion.Divergence; {
	case c.Nothing(s.Rules):
	case v == nil:
		is := peer.passage(s.Rules, c.Newest)
		s.current = s.current || is == passedWhole || is == passedFragments
	case s.current && v.RestsOn == machine.RestsOnBoth && peer.Sent.met && peer.passage(s.Rules, c.Newest) == passedAhead:
		s.ahead = aheadClaim{sequence: c.Newest, open: true}
	}
}

// weighAhead takes the next packet of the peer into account. newest reports whether it is newer
// than all of the peer's packets before.
func (s *Judged) weighAhead(peer *Judged, sequence uint32, newest bool) {
	x := &s.ahead
	switch {
	case !x.open || !newest:
	case s.Rules.Distance(x.sequence, sequence) <= 0:
		x.open = false // its numbers have come that far, or jumped there
	default:
		if x.since++; x.since >= s.Rules.AckBits+2*peer.Sent.overtaken {
			x.open = false
			s.Opinion.Divergence.RestsOn &^= machine.RestsOnAbsence
		}
	}
}
