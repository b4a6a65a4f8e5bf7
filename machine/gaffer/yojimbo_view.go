package gaffer

import (
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// viewIDs bounds the ids that a message window draws.
const viewIDs = 256

// Inspect draws what side x knew: its packets, its channels as sender and as
// receiver, the blocks on their way, and netcode's figures.
func (y *Yojimbo) Inspect(x machine.Side, v *machine.View) {
	y.inner.Inspect(x, v)
	sender, receiver := &y.sides[x], &y.sides[x.Other()]
	for i := range sender.lanes {
		if c := &sender.lanes[i]; c.started {
			grade := machine.Likely
			if y.near(x) {
				grade = machine.Certain
			}
			v.Windows = append(v.Windows, c.sendWindow(grade))
		}
	}
	for i := range receiver.lanes {
		if c := &receiver.lanes[i]; c.started {
			v.Windows = append(v.Windows, c.receiveWindow())
		}
	}
	sender.blocks(v)
	y.flow.inspect(x, v)
	if y.layers.Connection != nil && x == machine.A {
		v.Tables = append(v.Tables, channelTable(y.layers.Connection))
	}
	if y.inferred != nil && x == machine.A {
		v.Tables = append(v.Tables, y.inferred.table())
	}
}

// name names the channel, where the protocol has channels.
func (c *lane) name() string {
	if c.channel < 0 {
		return ""
	}
	return fmt.Sprintf("channel %d ", c.channel)
}

// sendWindow draws the sender's messages from its oldest unacked one on.
func (c *lane) sendWindow(grade machine.Certainty) machine.Window {
	w := machine.Window{Name: c.name() + "messages sent", Next: c.top + 1, Size: c.config.SendQueue, Grade: grade}
	w.First = max(c.base, w.Next-viewIDs, c.first)
	for id := w.First; id < w.Next; id++ {
		cell := machine.CellUnknown
		switch l := c.find(id); {
		case l == nil || l.attempts == 0:
		case l.acked:
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

// receiveWindow draws what the receiver has, from the id that it hands over next.
func (c *lane) receiveWindow() machine.Window {
	w := machine.Window{Name: c.name() + "messages received", First: c.next, Next: c.next, Size: c.config.ReceiveQueue, Grade: c.nextKnown}
	if c.nextKnown == machine.Unknown {
		w.First, w.Next = max(c.base, c.first), -1
	}
	for id := w.First; id <= c.top && len(w.Cells) < viewIDs; id++ {
		cell := machine.CellEmpty
		switch l := c.find(id); {
		case l == nil:
		case l.arrived:
			cell = machine.CellReceived
		case l.block != nil && l.block.arrived > 0:
			cell = machine.CellPartial
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}

// blocks lists the transfers that are under way.
func (s *courier) blocks(v *machine.View) {
	t := machine.Table{Name: "blocks sent", Columns: []string{"channel", "message", "fragments", "arrived", "acked", "sent again", "longest stall ms"}}
	for i := range s.lanes {
		c := &s.lanes[i]
		for j := range c.lives {
			l := &c.lives[j]
			if b := l.block; b != nil {
				t.Rows = append(t.Rows, []string{
					strconv.Itoa(c.channel), strconv.FormatInt(l.id, 10), strconv.Itoa(len(b.parts)), strconv.Itoa(b.arrived), strconv.Itoa(b.acked),
					strconv.Itoa(b.resends), strconv.FormatFloat(machine.Milliseconds(b.longest), 'f', 0, 64),
				})
			}
		}
	}
	if len(t.Rows) > 0 {
		v.Tables = append(v.Tables, t)
	}
}

func channelTable(y *wire.Yojimbo) machine.Table {
	t := machine.Table{Name: fmt.Sprintf("channels, %d message types", y.MessageTypes), Columns: []string{"channel", "type", "messages per packet", "block bytes", "block fragment bytes"}}
	for i := range y.Channels {
		c := &y.Channels[i]
		blocks, size := strconv.Itoa(c.MaxBlockSize), strconv.Itoa(c.BlockFragmentSize)
		if c.DisableBlocks {
			blocks, size = "none", ""
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(i), c.Type.String(), strconv.Itoa(c.MaxMessages), blocks, size})
	}
	return t
}

// table says what was inferred, and what stays open.
func (i *Inference) table() machine.Table {
	t := machine.Table{Name: "configuration, inferred from packets", Columns: []string{"what", "found", "by"}}
	row := func(what, found, by string) { t.Rows = append(t.Rows, []string{what, found, by}) }
	between := func(least, most int) string {
		switch {
		case most == 0:
			return "undecided"
		case least == most:
			return strconv.Itoa(most)
		}
		return fmt.Sprintf("%d to %d", least, most)
	}
	by := fmt.Sprintf("%d of %d packets read to the last bit", i.Read, i.Packets)
	if i.Opaque > 0 {
		by += fmt.Sprintf(", %d up to a body that is not known", i.Opaque)
	}
	if i.Wrong > 0 {
		by += fmt.Sprintf(", %d not", i.Wrong)
	}
	if i.Next > 0 {
		by += fmt.Sprintf("; with %d channels %d", i.Next, i.NextRead)
	}
	row("channels", strconv.Itoa(len(i.Channels)), by)
	row("message types", between(i.TypesLeast, i.TypesMost), "")
	for n := range i.Channels {
		c := &i.Channels[n]
		name := fmt.Sprintf("channel %d", n)
		if c.Undecided {
			row(name, "undecided", fmt.Sprintf("%d entries are too few", c.Messages+c.Blocks))
			continue
		}
		row(name+" type", i.Config.Channels[n].Type.String(), fmt.Sprintf("%d entries of messages", c.Messages))
		row(name+" messages per packet, at most", between(c.MessagesLeast, c.MessagesMost), "")
		if c.Blocks > 0 {
			size := "undecided"
			if c.FragmentSize > 0 {
				size = strconv.Itoa(c.FragmentSize)
			}
			row(name+" block fragment bytes", size, fmt.Sprintf("%d block fragments", c.Blocks))
			row(name+" fragments of a block, at most", between(c.FragmentsLeast, c.FragmentsMost), "")
		}
	}
	return t
}
