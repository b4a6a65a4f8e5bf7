package gaffer

import (
	"time"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// tapJitter is by how much frames of the two directions may be recorded in the
// wrong order.
const tapJitter = time.Millisecond

// RulesOf gives the rules that a profile states.
func RulesOf(p *wire.Profile) *Rules {
	r := &Rules{
		SequenceBits:      p.Space(),
		AckBits:           p.AckBitsWidth(),
		AckBelow:          p.AckBase == wire.AckMinusNMinusOne,
		Sent:              max(p.SentBuffer, 1),
		Received:          max(p.ReceiveWindow, 2),
		DeliverDuplicates: p.Duplicates == wire.Delivered,
		DeliverStale:      p.Stale == wire.Delivered,
	}
	if p.Fragments == wire.FragmentsReliable {
		r.Partial = max(p.ReassemblyBuffer, 1)
	}
	return r
}
