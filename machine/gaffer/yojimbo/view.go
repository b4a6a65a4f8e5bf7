package yojimbo

import (
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Inspect draws what side x knew: its packets, its channels as sender and as receiver,
// the blocks on their way, and netcode's figures.
func (y *Yojimbo) Inspect(x machine.Side, v *machine.View) {
	y.inner.Inspect(x, v)
	sender, receiver := &y.sides[x], &y.sides[x.Other()]
	for i := range sender.Lanes {
		if c := &sender.Lanes[i]; c.Started {
			grade := machine.Likely
			if y.near(x) {
				grade = machine.Certain
			}
			v.Windows = append(v.Windows, c.SendWindow(grade))
		}
	}
	for i := range receiver.Lanes {
		if c := &receiver.Lanes[i]; c.Started {
			v.Windows = append(v.Windows, c.ReceiveWindow())
		}
	}
	sender.Blocks(v)
	y.flow.Inspect(x, v)
	if y.layers.Connection != nil && x == machine.A {
		v.Tables = append(v.Tables, channelTable(y.layers.Connection))
	}
	if y.inferred != nil && x == machine.A {
		v.Tables = append(v.Tables, y.inferred.table())
	}
}

func channelTable(y *wire.Yojimbo) machine.Table {
	t := machine.Table{
		Name:    fmt.Sprintf("channels, %d message types", y.MessageTypes),
		Columns: []string{"channel", "type", "messages per packet", "block bytes", "block fragment bytes"},
	}
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

// table shows what was inferred, and what stays open.
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
		if i.Config.TypesUnknown && i.Config.Channels[n].Type == wire.ReliableOrdered {
			ids := machine.Certain
			if i.Config.Channels[n].Doubtful {
				ids = machine.Likely
			}
			row(name+" ids of messages", ids.String(), "they stand before the types")
		}
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
