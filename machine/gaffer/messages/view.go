package messages

import (
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/machine"
)

// viewIDs is how many ids a message window draws at most.
// Source: bound, the ids that a window draws
const viewIDs = 256

// name returns the channel's name as a prefix. It is empty if the protocol has no
// channels.
func (c *Lane) name() string {
	if c.Channel < 0 {
		return ""
	}
	return fmt.Sprintf("channel %d ", c.Channel)
}

// SendWindow draws the sender's messages from its oldest unacked one on.
func (c *Lane) SendWindow(grade machine.Certainty) machine.Window {
	w := machine.Window{
		Name: c.name() + "messages sent", Next: c.Top + 1, Size: c.Config.SendQueue, Grade: c.atMost(grade),
		Acked: c.acked, AckedKnown: c.ackedAny,
	}
	w.First = max(c.open(), w.Next-viewIDs, c.first)
	for id := w.First; id < w.Next; id++ {
		cell := machine.CellUnknown
		switch l := c.find(id); {
		case l == nil || l.sends.count == 0:
		case l.ack.shown:
			cell = machine.CellAcked
		case l.block != nil && l.block.acked > 0:
			cell = machine.CellPartial
		default:
			cell = machine.CellSent
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}

// ReceiveWindow draws what the receiver has, from the oldest id that is not settled.
// Messages that it has delivered, but whose ack the sender has not read, are in it.
func (c *Lane) ReceiveWindow() machine.Window {
	w := machine.Window{
		Name: c.name() + "messages received", First: max(c.open(), c.first), Next: c.next, Size: c.Config.ReceiveQueue,
		Grade: c.atMost(c.nextKnown),
	}
	if c.nextKnown == machine.Unknown {
		w.Next = -1
	} else {
		w.First = min(max(w.First, c.next-viewIDs/2), c.next)
	}
	for id := w.First; id <= c.Top && len(w.Cells) < viewIDs; id++ {
		cell := machine.CellEmpty
		switch l := c.find(id); {
		case l == nil:
		case l.arrival.shown:
			cell = machine.CellReceived
		case l.block != nil && l.block.arrived > 0:
			cell = machine.CellPartial
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}

// Blocks lists the transfers that are under way.
func (s *Direction) Blocks(v *machine.View) {
	t := machine.Table{
		Name:    "blocks sent",
		Columns: []string{"channel", "message", "fragments", "arrived", "acked", "sent again", "longest stall ms"},
	}
	for i := range s.Lanes {
		c := &s.Lanes[i]
		for j := range c.lives[c.settled:] {
			l := &c.lives[c.settled+j]
			if b := l.block; b != nil {
				t.Rows = append(t.Rows, []string{
					strconv.Itoa(c.Channel), strconv.FormatInt(l.id, 10), strconv.Itoa(len(b.parts)), strconv.Itoa(b.arrived),
					strconv.Itoa(b.acked),
					strconv.Itoa(b.resends), strconv.FormatFloat(machine.Milliseconds(b.longest), 'f', 0, 64),
				})
			}
		}
	}
	if len(t.Rows) > 0 {
		v.Tables = append(v.Tables, t)
	}
}

// Inspect draws the send and receive windows of the messages.
func (m *Queues) Inspect(v *machine.View) {
	send := machine.Window{
		Name: "messages sent", First: m.send.Oldest, Next: m.send.Next, Size: len(m.send.Queue),
		Grade: machine.Certain,
	}
	table := machine.Table{Name: "messages unacked", Columns: []string{"id", "type", "sends", "last sent ms"}}
	for id := m.send.Oldest; id < m.send.Next; id++ {
		e := m.send.Entry(id)
		cell := machine.CellAcked
		if e.ID == id {
			cell = machine.CellEmpty // waits for its first packet
			if e.Attempts > 0 {
				cell = machine.CellSent
			}
			table.Rows = append(table.Rows, []string{
				strconv.FormatInt(id, 10), m.types.Body(e.Kind).Name, strconv.Itoa(e.Attempts),
				strconv.FormatFloat(float64(e.sentAt)/1e6, 'f', 3, 64),
			})
		}
		send.Cells = append(send.Cells, cell)
	}
	receive := machine.Window{
		Name: "messages received", First: m.receive.Next, Next: m.receive.Next,
		Size: len(m.receive.Buffer), Grade: machine.Certain,
	}
	last := 0
	for i := range m.receive.Buffer {
		id := m.receive.Next + int64(i)
		cell := machine.CellEmpty
		if m.receive.Buffer[id%int64(len(m.receive.Buffer))].ID == id {
			cell, last = machine.CellReceived, i+1
		}
		receive.Cells = append(receive.Cells, cell)
	}
	receive.Cells = receive.Cells[:last]
	v.Windows = append(v.Windows, send, receive)
	v.Tables = append(v.Tables, table)
}
