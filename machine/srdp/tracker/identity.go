package tracker

import "github.com/ackscope/ackscope/machine"

const (
	// idBits is the width of a packet id.
	// Source: law, the packet id of the document has 2 bytes
	idBits = 16
	// resentMost is how far behind the newest id a packet is sent again.
	// Source: definition, rebound: what a side still resends after its address changed
	resentMost = 64
)

// Identity fills in what the flow shows of its connection. A proxy sends for many hosts, whose
// numbers are mixed: it shows nothing.
func (t *Tracker) Identity(x *machine.Identity) {
	for i := range t.parties {
		if len(t.parties[i].lanes.byPair) > 0 {
			return
		}
	}
	x.Counters[0] = machine.Counter{Name: "packet", Bits: idBits, Slack: resentMost, Endpoint: true, Sides: t.numbers}
}
