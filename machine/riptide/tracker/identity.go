package tracker

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// counted is what the messages of a flow show of its connection: the numbers of reliable
// messages, of notify messages and of pings, by side.
type counted struct {
	reliable, notify, pings [2]machine.Numbers
	began                   bool
}

const (
	// idBits is the width of the ids of reliable and notify messages, and pingBits that of pings.
	// Source: law, the fields of the wire format: 16-bit ids, and an 8-bit ping
	idBits, pingBits = 16, 8
	// resentMost is how far behind the newest reliable message one is sent again.
	// Source: library, Riptide 2.1.0: a receiver keeps the last 80 ids
	resentMost = 80
	// lateMost is how far behind the newest notify message or ping one still passes.
	// Source: definition, rebound: packets overtake each other by a few
	lateMost = 16
)

// take records a message.
func (x *counted) take(from machine.Side, m *wire.Message) {
	switch {
	case m.Type == wire.Connect || m.Type == wire.Reject:
		x.began = true
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		x.reliable[from].Names(uint64(m.Last), idBits)
	case m.Type.Reliable():
		x.began = x.began || m.Type == wire.Welcome
		x.reliable[from].Sent(uint64(m.Sequence), idBits)
	case m.Type == wire.Notify && !m.Bare:
		x.notify[from].Sent(uint64(m.Sequence), idBits)
		x.notify[from].Names(uint64(m.Last), idBits)
	case m.Type == wire.Heartbeat:
		x.pings[from].Sent(uint64(m.Ping), pingBits)
	}
}

// Identity fills in what the flow shows of its connection.
func (t *Tracker) Identity(x *machine.Identity) {
	var seen *counted
	if t.opening != nil {
		seen = &t.opening.seen
	} else {
		seen = &t.f.seen
		x.Client, x.ClientKnown = t.f.client, t.f.roles
	}
	x.Began = [2]bool{seen.began, seen.began}
	x.Counters[0] = machine.Counter{Name: "reliable message", Bits: idBits, Slack: resentMost, Sides: seen.reliable}
	x.Counters[1] = machine.Counter{Name: "notify message", Bits: idBits, Slack: lateMost, Sides: seen.notify}
	x.Counters[2] = machine.Counter{Name: "ping", Bits: pingBits, Slack: lateMost, Sides: seen.pings}
}
