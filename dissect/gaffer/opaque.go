package gaffer

import "github.com/ackscope/ackscope/machine"

// opaque tracks a flow of which no datagram acknowledges another, or none that
// can be read: it counts.
type opaque struct {
	packets [2]uint64
	bytes   [2]uint64
}

// Observe counts the datagram.
func (o *opaque) Observe(d *machine.Datagram, _ *machine.Effects) {
	o.packets[d.From]++
	o.bytes[d.From] += uint64(d.Length)
}

// Finish has nothing left to settle.
func (o *opaque) Finish(*machine.Effects) {}

// Inspect knows only how much was sent.
func (o *opaque) Inspect(s machine.Side, v *machine.View) {
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "packets", Value: float64(o.packets[s]), Unit: "packets", Grade: machine.Certain},
		machine.Gauge{Name: "bytes", Value: float64(o.bytes[s]), Unit: "bytes", Grade: machine.Certain})
}

// Summary returns what was counted; the rest is unknown.
func (o *opaque) Summary(s machine.Side) machine.Summary {
	return machine.Summary{Packets: o.packets[s], Bytes: o.bytes[s], NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
}

// Learned knows nothing that a second run could use.
func (o *opaque) Learned() machine.Facts { return machine.Facts{} }

// Clone returns an independent copy.
func (o *opaque) Clone() machine.Tracker { c := *o; return &c }

// Size returns the bytes of a clone.
func (o *opaque) Size() int { return 64 }
