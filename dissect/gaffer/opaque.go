package gaffer

import "github.com/ackscope/ackscope/machine"

// opaque counts the datagrams of a flow that has no readable acks.
type opaque struct {
	packets [2]uint64
	bytes   [2]uint64
}

// Observe counts the datagram.
func (o *opaque) Observe(d *machine.Datagram, _ *machine.Effects) {
	o.packets[d.From]++
	o.bytes[d.From] += uint64(d.Length)
}

// Finish does nothing: everything is settled.
func (o *opaque) Finish(*machine.Effects) {}

// Inspect draws only how much was sent.
func (o *opaque) Inspect(s machine.Side, v *machine.View) {
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "packets", Value: float64(o.packets[s]), Unit: "packets", Grade: machine.Certain},
		machine.Gauge{Name: "bytes", Value: float64(o.bytes[s]), Unit: "bytes", Grade: machine.Certain})
}

// Summary returns the counts. The rest is unknown.
func (o *opaque) Summary(s machine.Side) machine.Summary {
	return machine.Summary{Packets: o.packets[s], Bytes: o.bytes[s], NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
}

// Learned returns nothing: a second run has no use for counts.
func (o *opaque) Learned() machine.Facts { return machine.Facts{} }

// Clone returns an independent copy.
func (o *opaque) Clone() machine.Tracker { c := *o; return &c }

// Size returns the bytes of a clone.
func (o *opaque) Size() int { return 64 }
