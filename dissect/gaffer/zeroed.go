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
func reviewZeroed(c *dissect.Config, p *wire.Profile, facts *machine.Facts) (better *dissect.Config, phrase string) {
	e := &facts.Readings
	switch {
	case p.ZeroedAckBits != 0:
		return nil, ""
	case !e.Shows(1):
		facts.Doubtful = facts.Doubtful || e.Doubts(0) || e.Disputed()
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
	config.Profile, config.Facts = &q, machine.Facts{}
	if c.Dialect == wire.Reliable {
		config.Dialect = wire.Rely
	}
	return &config, fmt.Sprintf("%d headers of the whole capture leave bits 8 to 15 of ack_bits at 0 as rely does",
		e.Broken[machine.A][0]+e.Broken[machine.B][0])
}
