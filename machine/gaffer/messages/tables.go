package messages

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const (
	// queueRows is the most rows of a table of messages.
	//
	// Source: bound, the rows of a table
	queueRows = 64
	// packetRows is the most rows of the table of packets.
	//
	// Source: bound, the rows of a table
	packetRows = 16
	// cellRanges is the most ranges of numbers in one cell.
	//
	// Source: bound, the ranges in a cell
	cellRanges = 6
)

// Tables draws the message objects of one side: its send queue, the messages that each
// of its packets carried, and its receive queue.
type Tables struct {
	Now     machine.Instant // time of the newest datagram
	Section *wire.MessageSection
	Near    bool              // the tap is at the side
	RTT     time.Duration     // the side's smoothed RTT; 0 or less if unknown
	Grade   machine.Certainty // how well the side's own buffers are known
	// Gapless says that every packet of the side passed the tap, and PeerGapless every
	// packet of its peer.
	Gapless, PeerGapless bool
	// Fate says what became of a packet of the side, and how sure that is.
	Fate func(sequence uint32) (fate string, sure machine.Certainty)
}

// SendQueue lists the messages that wait for an ack. sent is what the side sent.
func (x *Tables) SendQueue(sent *Direction, v *machine.View) {
	t := machine.Table{
		Name:    "send queue",
		Columns: []string{"id", "type", "bits", "sends", "last sent ms ago", "due in ms", "packets", "certainty"},
	}
	c := &sent.Lanes[0]
	carriers := sent.carriers()
	for i := range c.lives {
		l := &c.lives[i]
		if l.ack.shown || l.id < c.first || l.id > c.Top {
			continue
		}
		kind, size := x.content(l)
		row := []string{
			strconv.FormatInt(l.id, 10), kind, size, strconv.Itoa(l.sends.count), "", x.due(c, l), "",
			x.waits(l).String(),
		}
		if l.sends.count > 0 {
			row[4], row[6] = milliseconds(x.Now.Sub(l.sends.lastAt)), machine.Ranges(carriers[l.id], cellRanges)
		}
		t.Rows = append(t.Rows, row)
	}
	v.Tables = append(v.Tables, cut(t, queueRows))
}

// waits returns how sure it is that a message still waits for an ack.
func (x *Tables) waits(l *life) machine.Certainty {
	switch {
	case l.sends.count == 0 && !x.Gapless:
		return machine.Unknown // a packet that the capture lacks may have carried it
	case l.arrival.shown && !x.Near:
		return machine.Unknown // whether the side has read the ack does not show
	}
	return x.Grade
}

// due returns when a message may go into another packet.
func (x *Tables) due(c *Lane, l *life) string {
	switch {
	case x.Section.Form == wire.MessagesSimple:
		return "each packet" // until it is acked
	case l.sends.count == 0:
		return "now"
	}
	rule := c.Rule()
	policy := rule.Policy()
	if !policy.IsSet() {
		return "unknown" // no policy is set, and the packets show none
	}
	return milliseconds(policy.Wait(l.sends.count, x.RTT) - x.Now.Sub(l.sends.lastAt))
}

// Packets lists the side's newest packets that carried messages, the newest first. With
// this map a sender finds the messages that the ack of a packet settles.
func (x *Tables) Packets(sent *Direction, v *machine.View) {
	t := machine.Table{Name: "messages by packet", Columns: []string{"packet", "messages", "fate", "certainty"}}
	var list []*Contents
	for i := range sent.Contents {
		if p := &sent.Contents[i]; p.Live && len(p.Reliable) > 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *Contents) int {
		return cmp.Compare(sent.Unwrap(b.Sequence), sent.Unwrap(a.Sequence))
	})
	for _, p := range list {
		ids := make([]int64, len(p.Reliable))
		for i, m := range p.Reliable {
			ids[i] = m.id
		}
		fate, sure := x.Fate(p.Sequence)
		t.Rows = append(t.Rows, []string{
			strconv.FormatInt(sent.Unwrap(p.Sequence), 10), machine.Ranges(ids, cellRanges),
			fate, sure.String(),
		})
	}
	v.Tables = append(v.Tables, cut(t, packetRows))
}

// ReceiveQueue lists the messages that the side holds, and those that it misses. It begins
// at the one that the side delivers next. sent is what the peer sent.
func (x *Tables) ReceiveQueue(sent *Direction, v *machine.View) {
	t := machine.Table{Name: "receive queue", Columns: []string{"id", "type", "bits", "state", "for ms", "certainty"}}
	c := &sent.Lanes[0]
	if c.nextKnown == machine.Unknown {
		return
	}
	for id := c.next; id <= max(c.Top, c.next); id++ {
		l := c.find(id)
		row := []string{strconv.FormatInt(id, 10), "", "", "", "", ""}
		var sure machine.Certainty
		switch {
		case l == nil || l.sends.count == 0:
			row[3] = "missing, never seen"
			if x.Near || x.PeerGapless {
				sure = c.nextKnown
			}
		case l.arrival.shown:
			row[3], row[4], sure = "held", milliseconds(x.Now.Sub(l.arrival.at)), min(l.sure, c.nextKnown)
		case x.Near:
			row[3], sure = "captured, not read yet", machine.Likely // or its packet was refused
		default:
			row[3] = "missing, or its arrival does not show"
		}
		if l != nil {
			row[1], row[2] = x.content(l)
		}
		row[5] = sure.String()
		t.Rows = append(t.Rows, row)
	}
	v.Tables = append(v.Tables, cut(t, queueRows))
}

// content returns the type and the bits of a message's body. Both are empty if it was
// not read.
func (x *Tables) content(l *life) (kind, size string) {
	if !l.content.read {
		return "", ""
	}
	kind = strconv.FormatUint(uint64(l.content.kind), 10)
	if types, ok := x.Section.Bodies.(messageTypes); ok {
		if b := types.Body(l.content.kind); b != nil && b.Name != "" {
			kind = b.Name
		}
	}
	return kind, strconv.Itoa(l.content.bits)
}

// carriers returns, for each message, the numbers of the packets that carried it, in
// rising order. It lacks packets older than the newest ContentsMost.
func (s *Direction) carriers() map[int64][]int64 {
	by := map[int64][]int64{}
	for i := range s.Contents {
		p := &s.Contents[i]
		if !p.Live {
			continue
		}
		for _, m := range p.Reliable {
			by[m.id] = append(by[m.id], s.Unwrap(p.Sequence))
		}
	}
	for _, packets := range by {
		slices.Sort(packets)
	}
	return by
}

// cut shortens a table to at most so many rows. The last one then counts the rest.
func cut(t machine.Table, most int) machine.Table {
	over := len(t.Rows) - most + 1
	if over <= 1 {
		return t
	}
	rest := make([]string, len(t.Columns))
	rest[0], rest[1] = "…", strconv.Itoa(over)+" more"
	t.Rows = append(t.Rows[:most-1], rest)
	return t
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(machine.Milliseconds(d), 'f', 1, 64)
}
