package article

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// numbers counts the packets of a side by their numbers, and those that came whole.
type numbers struct {
	met         bool
	first, top  int64 // the oldest and the newest number, unwrapped
	whole       uint64
	recent      [recentPackets]parts
	recentTaken int
}

// recentPackets is how many packets are remembered, so that copies and late fragments count once.
// Source: bound, the packets of a fragment sample that are remembered
const recentPackets = 16

// parts are the fragments of a packet that have passed; left is how many have not.
type parts struct {
	number int64
	have   [4]uint64
	left   int
}

// take counts a packet or a fragment.
func (n *numbers) take(p *wire.Packet, mask uint32) {
	number := int64(p.Sequence)
	if n.met {
		half := int64(mask/2) + 1
		number = n.top + (int64((p.Sequence-uint32(n.top))&mask)+half)&int64(mask) - half
	} else {
		n.met, n.first, n.top = true, number, number
	}
	n.first, n.top = min(n.first, number), max(n.top, number)
	e := n.find(number)
	if e == nil {
		e = &n.recent[n.recentTaken%recentPackets]
		n.recentTaken++
		*e = parts{number: number, left: 1}
		if p.Kind == wire.KindFragment {
			e.left = p.FragmentCount
		}
	}
	id := 0
	if p.Kind == wire.KindFragment {
		id = p.FragmentID & 0xff
	}
	if bit := uint64(1) << (id % 64); e.have[id/64]&bit == 0 && e.left > 0 {
		e.have[id/64] |= bit
		if e.left--; e.left == 0 {
			n.whole++
		}
	}
}

func (n *numbers) find(number int64) *parts {
	for i := range min(n.recentTaken, recentPackets) {
		if e := &n.recent[i]; e.number == number {
			return e
		}
	}
	return nil
}

// lossBounds bounds how many of a side's packets were lost on the way to its peer. The
// samples ack slices only. So of fragments, a tap at the receiver tells the loss, and any
// other tells nothing.
func (t *Tracker) lossBounds(x machine.Side) (b machine.LossBounds) {
	v := t.Learned().Vantage
	if n := &t.numbers[x]; n.met {
		b.Sent = uint64(n.top - n.first + 1)
		b.Most = b.Sent
		if v.Near(x.Other()) && !v.Near(x) {
			b.Most = b.Sent - min(b.Sent, n.whole)
			b.Least, b.Certainty = b.Most, machine.Likely
		}
		return b
	}
	b.Sent = t.packets[x]
	b.Most = b.Sent
	if named := uint64(t.blocks[x].named); named > 0 && !v.Near(x.Other()) {
		b.Most -= min(b.Most, named)
		b.Certainty = machine.Likely
	}
	return b
}
