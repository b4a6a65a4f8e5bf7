package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// reviewZeroed looks at a flow of reliable's form after a whole run: the headers show
// whether reliable wrote them, or its port rely. Where one side wrote as reliable and the
// other as rely, the flow stays what it is, and what rests on ack_bits is doubtful.
//
// A single header makes rely the better reading: a short cut of a capture may have no other.
// What rests on ack_bits stays doubtful then, since one datagram can be damaged or forged.
func reviewZeroed(c *dissect.Config, p *wire.Profile, facts *machine.Facts) (better *dissect.Config, phrase string) {
	e := &facts.Readings
	switch {
	case p.ZeroedAckBits != 0:
		return nil, ""
	case !e.Doubts(0):
		facts.Doubtful = facts.Doubtful || e.Disputed()
		return nil, ""
	}
	q := *p
	q.ZeroedAckBits, q.FragmentsWait = wire.RelyZeroedBits, p.Fragments == wire.FragmentsReliable
	if q.Duplicates == wire.RuleUnknown {
		q.Duplicates = wire.Delivered
	}
	if q.Validate() != nil {
		return nil, ""
	}
	config := *c
	config.Profile, config.Facts = &q, machine.Facts{Doubtful: !e.Shows(1)}
	if c.Dialect == wire.Reliable {
		config.Dialect = wire.Rely
	}
	return &config, fmt.Sprintf("the whole capture leaves bits 8 to 15 of ack_bits at 0 in %s, as rely does",
		machine.Count(uint64(e.Broken[machine.A][0]+e.Broken[machine.B][0]), "header", "headers"))
}
