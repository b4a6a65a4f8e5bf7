package endpoint

import (
	"slices"
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

var linkWords = [...]string{"connecting", "pending", "connected", "closed"}

// Inspect draws what the endpoint knows of its first connection, and lists all of them.
func (e *Endpoint) Inspect(v *machine.View) {
	v.Reset()
	peers := make([]machine.Peer, 0, len(e.links))
	for p := range e.links {
		peers = append(peers, p)
	}
	slices.Sort(peers)
	table := machine.Table{
		Name:    "connections",
		Columns: []string{"peer", "client id", "state", "RTT ms", "smoothed ms", "pending"},
	}
	for i, p := range peers {
		l := e.links[p]
		if i == 0 {
			e.inspect(l, v)
		}
		if i < riptide.ViewRows {
			table.Rows = append(table.Rows, []string{
				strconv.Itoa(int(p)), strconv.Itoa(int(l.id)), linkWords[l.state], strconv.Itoa(l.beats.rtt),
				strconv.Itoa(l.beats.smoothed), strconv.Itoa(len(l.out.slots)),
			})
		}
	}
	v.Tables = append(v.Tables, table)
}

// inspect draws a connection's sequencers and figures.
func (e *Endpoint) inspect(l *link, v *machine.View) {
	sent := machine.Window{
		Name: "reliable sent", First: max(0, l.out.next-riptide.ViewIDs), Next: l.out.next,
		Grade: machine.Certain,
	}
	for id := sent.First; id < l.out.next; id++ {
		cell := machine.CellAcked
		slot, pending := l.out.slots[uint16(id)]
		if pending {
			cell = machine.CellSent
		}
		sent.Cells = append(sent.Cells, cell)
		if pending {
			sent.Slots = append(sent.Slots, machine.Slot{
				Index: int(id & 0xffff), Sequence: uint32(uint16(id)), Sequence64: id, Cell: cell, Grade: machine.Certain,
				SentAt: e.start + machine.Instant(l.out.pending[slot].sentAt*1e6),
			})
		}
	}
	received := machine.Window{
		Name: "reliable received", First: max(0, l.in.newest-riptide.ViewIDs+1), Next: l.in.newest,
		Grade: machine.Certain,
	}
	for id := received.First; id <= l.in.newest; id++ {
		cell := machine.CellEmpty
		if has, _ := l.in.receiver.Received(uint16(id)); has {
			cell = machine.CellReceived
		}
		received.Cells = append(received.Cells, cell)
	}
	v.Windows = append(v.Windows, sent, received)
	for _, g := range []machine.Gauge{
		{Name: "rtt", Value: float64(l.beats.rtt), Unit: "ms"},
		{Name: "smooth_rtt", Value: float64(l.beats.smoothed), Unit: "ms"},
		{Name: "until_timeout", Value: float64(riptide.Timeout.Milliseconds() - (e.clock - l.beats.heard)), Unit: "ms"},
		{Name: "pending", Value: float64(len(l.out.slots)), Unit: "messages"},
		{Name: "sends_row", Value: float64(l.out.sends.Row), Unit: "in a row"},
		{Name: "loss_row", Value: float64(l.notify.losses.Row), Unit: "in a row"},
	} {
		g.Grade = machine.Certain
		v.Gauges = append(v.Gauges, g)
	}
}
