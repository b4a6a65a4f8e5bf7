package tracker

import "github.com/ackscope/ackscope/machine"

// lateMost is how far behind the newest packet of its sender a packet still passes.
// Source: definition, rebound: packets overtake each other by a few
const lateMost = 16

// identify records the first numbers of a side. Later ones are in its state.
func (t *Tracker) identify(p *sighting) {
	if n := &t.numbers[p.from&1]; !n.Met || !n.Named && p.header {
		t.count(n, p)
	}
}

// count records the numbers of a packet.
func (t *Tracker) count(n *machine.Numbers, p *sighting) {
	width := uint8(t.rules.SequenceBits)
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
	numbers := t.numbers
	for i := range t.Held {
		t.count(&numbers[t.Held[i].from&1], &t.Held[i])
	}
	for i := range numbers {
		n := &numbers[i]
		if t.Sides == nil || !n.Met {
			continue
		}
		s := &t.Sides[i]
		n.Last, n.Span = uint64(s.sent.top), uint64(max(0, s.sent.top64-s.sent.began64))
		if last := &s.headers.last; n.Named && last.Width > 0 && !last.Nothing(t.rules) {
			n.NewestName = uint64(last.Newest)
		}
	}
	x.Began = t.began
	x.Counters[0] = machine.Counter{Name: "packet", Bits: uint8(t.rules.SequenceBits), Slack: lateMost, Sides: numbers}
}

// Identity fills in what the flow shows of its connection.
func (c *Conversation) Identity(x *machine.Identity) { c.inner.Identity(x) }
