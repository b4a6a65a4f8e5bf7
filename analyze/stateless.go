package analyze

import (
	"unsafe"

	"github.com/ackscope/ackscope/machine"
)

// stateless replaces the tracker of a protocol that has a dissector only. It
// counts what passed the tap and claims nothing else.
type stateless struct {
	packets, bytes [2]uint64
	facts          machine.Facts
}

func (t *stateless) Observe(d *machine.Datagram, _ *machine.Effects) {
	t.packets[d.From]++
	t.bytes[d.From] += uint64(d.Length)
}

func (t *stateless) Finish(*machine.Effects) {}

func (t *stateless) Inspect(machine.Side, *machine.View) {}

func (t *stateless) Summary(s machine.Side) machine.Summary {
	return machine.Summary{Packets: t.packets[s], Bytes: t.bytes[s], NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
}

func (t *stateless) Learned() machine.Facts { return t.facts }

func (t *stateless) Clone() machine.Tracker {
	c := *t
	return &c
}

func (t *stateless) Size() int { return int(unsafe.Sizeof(*t)) }
