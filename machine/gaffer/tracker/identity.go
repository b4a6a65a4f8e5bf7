package tracker

import "github.com/ackscope/ackscope/machine"

// lateMost is how far behind the newest packet of its sender a packet still passes.
// Source: definition, rebound: packets overtake each other by a few
const lateMost = 16

// identify records the numbers of a packet that belongs to the flow.
func (t *Tracker) identify(p *sighting) {
	n, width := &t.numbers[p.from&1], uint8(t.rules.SequenceBits)
	n.Sent(uint64(p.sequence), width)
	if !p.header {
		return
	}
	c := t.rules.Claims(p.ack, p.ackBits)
	switch {
	case !c.Nothing(t.rules):
		n.Names(uint64(c.Newest), width)
	case !n.Named:
		t.began[p.from&1] = true
	}
}

// Identity fills in what the flow shows of its connection.
func (t *Tracker) Identity(x *machine.Identity) {
	if !t.numbered {
		return
	}
	x.Began = t.began
	x.Counters[0] = machine.Counter{
		Name: "packet", Bits: uint8(t.rules.SequenceBits), Slack: lateMost, Sides: t.numbers,
	}
}

// Identity fills in what the flow shows of its connection.
func (c *Conversation) Identity(x *machine.Identity) { c.inner.Identity(x) }
