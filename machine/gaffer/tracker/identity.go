package tracker

import "github.com/ackscope/ackscope/machine"

// lateMost is how far behind the newest packet of its sender a packet still passes.
// Source: definition, rebound: packets overtake each other by a few
const lateMost = 16

// identify records the first numbers of a side. Later ones are in its state.
func (t *Tracker) identify(p *sighting) {
	if f := &t.numbers[p.from&1]; !f.met || !f.named && p.header {
		n := f.numbers()
		t.count(&n, p)
		*f = firstNumbers{
			uint32(n.First), uint32(n.Last), uint32(n.FirstNamed), uint32(n.NewestName), n.Span, n.Met, n.Named,
		}
	}
}

// firstNumbers are machine.Numbers in little memory: those until a side first acked a number.
type firstNumbers struct {
	first, last, firstNamed, newestName uint32
	span                                uint64
	met, named                          bool
}

func (f *firstNumbers) numbers() machine.Numbers {
	return machine.Numbers{
		First: uint64(f.first), Last: uint64(f.last), Span: f.span, FirstNamed: uint64(f.firstNamed),
		NewestName: uint64(f.newestName), Met: f.met, Named: f.named,
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
	numbers := [2]machine.Numbers{t.numbers[machine.A].numbers(), t.numbers[machine.B].numbers()}
	t.Held.each(func(p *sighting) { t.count(&numbers[p.from&1], p) })
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
