package export

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// MessageRow is a row of Messages.
type MessageRow struct {
	Flow    *analyze.Flow
	Message *machine.Message
	Name    string         // of its type; empty if none is known
	Values  dissect.Values // nil if no schema reads them
	File    string         // empty if only one file is read
}

// NewMessageRow returns a row. It asks the protocol for the message's name and
// values.
func NewMessageRow(f *analyze.Flow, m *machine.Message, file string) MessageRow {
	r := MessageRow{Flow: f, Message: m, File: file}
	if say := f.Protocol.Message; say != nil {
		r.Name, r.Values = say(f.Config(), m)
	}
	if m.Name != "" {
		r.Name = m.Name
	}
	return r
}

type messageColumn = column[MessageRow]

// spanColumn returns a column for one bound of a time.
func spanColumn(name, doc string, bound func(*machine.Message) (machine.Instant, bool)) messageColumn {
	return messageColumn{Column{Name: name, Type: Time, Absent: Omitted, Doc: doc}, func(r *MessageRow, c *Cell) {
		if at, ok := bound(r.Message); ok {
			c.int(int64(at))
		}
	}}
}

func sentFrom(m *machine.Message) (machine.Instant, bool) { return m.Sent.From, m.Sent.Known() }
func sentTo(m *machine.Message) (machine.Instant, bool)   { return m.Sent.To, m.Sent.Known() }
func arrivedFrom(m *machine.Message) (machine.Instant, bool) {
	return m.Arrived.From, m.Arrived.Known()
}

func arrivedTo(m *machine.Message) (machine.Instant, bool) { return m.Arrived.To, m.Arrived.Known() }

func inOrderFrom(m *machine.Message) (machine.Instant, bool) {
	return m.InOrder.From, m.InOrder.Known()
}

func inOrderTo(m *machine.Message) (machine.Instant, bool) { return m.InOrder.To, m.InOrder.Known() }

// took returns a column for a duration, which is negative where it is unknown.
func took(name, doc string, get func(*machine.Message) time.Duration) messageColumn {
	return messageColumn{
		Column{Name: name, Type: Float, Digits: 6, Unit: "ms", Absent: Omitted, Doc: doc},
		func(r *MessageRow, c *Cell) {
			if d := get(r.Message); d >= 0 {
				c.float(machine.Milliseconds(d), 6)
			}
		},
	}
}

// Messages has a row for the life of each message.
var Messages = newTable("messages", "The life of every message that the packets carry: a row a message, in the order "+
	"in which their lives end.",
	messageColumn{
		Column{Name: "frame", Type: Uint, Doc: "Number of the frame that first carried it."},
		func(r *MessageRow, c *Cell) { c.uint(r.Message.Frames[0].Frame()) },
	},
	messageColumn{
		Column{Name: "time", Type: Time, Doc: "When it was first sent."},
		func(r *MessageRow, c *Cell) { c.int(int64(r.Message.At)) },
	},
	messageColumn{
		Column{Name: "flow", Type: Uint, Doc: "Number of the flow, from 1."},
		func(r *MessageRow, c *Cell) { c.uint(uint64(r.Flow.ID)) },
	},
	messageColumn{
		Column{Name: "protocol", Type: Text, Doc: "Protocol of the flow."},
		func(r *MessageRow, c *Cell) { c.own(r.Flow.Protocol.Name) },
	},
	messageColumn{
		Column{Name: "dialect", Type: Text, Doc: "Dialect of the protocol."},
		func(r *MessageRow, c *Cell) { c.text(r.Flow.Config().Dialect) },
	},
	messageColumn{
		Column{Name: "side", Type: Text, Words: sides, Doc: "Its sender: a spoke first."},
		func(r *MessageRow, c *Cell) { c.own(r.Message.From.String()) },
	},
	messageColumn{
		Column{Name: "from", Type: Text, Doc: "The sender's address and port."},
		func(r *MessageRow, c *Cell) { c.addr(r.Flow.Addr(r.Message.From)) },
	},
	messageColumn{Column{Name: "to", Type: Text, Doc: "The receiver's."}, func(r *MessageRow, c *Cell) {
		c.addr(r.Flow.Addr(r.Message.From.Other()))
	}},
	messageColumn{
		Column{Name: "mode", Type: Text, Words: modes, Doc: "What it was promised."},
		func(r *MessageRow, c *Cell) { c.own(r.Message.Mode.String()) },
	},
	messageColumn{
		Column{Name: "channel", Type: Int, Absent: Omitted, Doc: "Its channel, where the protocol has some."},
		func(r *MessageRow, c *Cell) {
			if r.Message.Channel >= 0 {
				c.int(int64(r.Message.Channel))
			}
		},
	},
	messageColumn{
		Column{Name: "message_id", Type: Uint, Absent: Null, Doc: "Its own number as on the wire."},
		func(r *MessageRow, c *Cell) {
			if m := r.Message; m.ID >= 0 {
				c.uint(uint64(m.ID) & (1<<m.IDBits - 1))
			}
		},
	},
	messageColumn{
		Column{Name: "message_id64", Type: Int, Absent: Omitted, Doc: "The same, unwrapped."},
		func(r *MessageRow, c *Cell) {
			if r.Message.ID >= 0 {
				c.int(r.Message.ID)
			}
		},
	},
	messageColumn{
		Column{
			Name: "type", Type: Uint, Absent: Null,
			Doc: "Number of its type; null where the packets do not show it.",
		},
		func(r *MessageRow, c *Cell) {
			if !r.Message.Untyped {
				c.uint(uint64(r.Message.Type))
			}
		},
	},
	messageColumn{Column{
		Name: "name", Type: Text, Absent: Null,
		Doc: "Name of its type, where a schema or the protocol has one.",
	}, func(r *MessageRow, c *Cell) { c.word(r.Name) }},
	messageColumn{
		Column{
			Name: "sequence", Type: Uint,
			Doc: "Sequence number of the packet that first carried it, as on the wire.",
		},
		func(r *MessageRow, c *Cell) { c.uint(uint64(r.Message.Sequence)) },
	},
	messageColumn{
		Column{Name: "sequence64", Type: Int, Doc: "The same, unwrapped."},
		func(r *MessageRow, c *Cell) { c.int(r.Message.Sequence64) },
	},
	messageColumn{
		Column{Name: "bits", Type: Uint, Unit: "bits", Absent: Omitted, Doc: "Length of its body."},
		func(r *MessageRow, c *Cell) {
			if r.Message.Bits >= 0 {
				c.uint(uint64(r.Message.Bits))
			}
		},
	},
	messageColumn{Column{
		Name: "block_bytes", Type: Uint, Unit: "bytes", Absent: Omitted,
		Doc: "Length of the block that it carries.",
	}, func(r *MessageRow, c *Cell) {
		if r.Message.Block > 0 {
			c.uint(uint64(r.Message.Block))
		}
	}},
	messageColumn{
		Column{Name: "attempts", Type: Uint, Doc: "How many packets carried it."},
		func(r *MessageRow, c *Cell) { c.uint(uint64(r.Message.Attempts)) },
	},
	messageColumn{Column{Name: "frames", Type: Uints, Doc: "Their frames, the first 16."}, func(r *MessageRow, c *Cell) {
		c.Set = true
		for i := range min(r.Message.Attempts, machine.MessageFrames) {
			c.Uints = append(c.Uints, r.Message.Frames[i].Frame())
		}
	}},
	messageColumn{
		Column{
			Name: "acked", Type: Bool, Absent: Null,
			Doc: "Whether its sender learned that it arrived; null where the capture does not say.",
		},
		func(r *MessageRow, c *Cell) {
			if r.Message.Acked != machine.Unanswered {
				c.bool(r.Message.Acked == machine.Yes)
			}
		},
	},
	messageColumn{
		Column{
			Name: "named", Type: Bool, Absent: Omitted,
			Doc: "True where an acknowledgement that names it by its documented meaning was captured.",
		},
		func(r *MessageRow, c *Cell) {
			if r.Message.Named {
				c.bool(true)
			}
		},
	},
	messageColumn{
		Column{Name: "acked_frame", Type: Uint, Absent: Omitted, Doc: "Frame that told its sender."},
		func(r *MessageRow, c *Cell) {
			if r.Message.AckedBy != 0 {
				c.uint(r.Message.AckedBy.Frame())
			}
		},
	},
	messageColumn{Column{
		Name: "acked_ms", Type: Float, Digits: 6, Unit: "ms", Absent: Omitted,
		Doc: "Time from first sending to that.",
	}, func(r *MessageRow, c *Cell) {
		if r.Message.AckedBy != 0 {
			c.float(machine.Milliseconds(r.Message.AckedAt.Sub(r.Message.At)), 6)
		}
	}},
	messageColumn{
		Column{
			Name: "delivered", Type: Text, Words: answers,
			Doc: "Whether the receiver's application was handed it.",
		},
		func(r *MessageRow, c *Cell) { c.own(r.Message.Delivered.String()) },
	},
	messageColumn{Column{
		Name: "delivered_frame", Type: Uint, Absent: Omitted,
		Doc: "Frame that brought what was missing.",
	}, func(r *MessageRow, c *Cell) {
		if r.Message.Delivered == machine.Yes {
			c.uint(r.Message.DeliveredBy.Frame())
		}
	}},
	messageColumn{
		Column{
			Name: "delivered_time", Type: Time, Absent: Omitted,
			Doc: "When that frame was captured, which proved the delivery: it was earlier.",
		},
		func(r *MessageRow, c *Cell) {
			if r.Message.Delivered == machine.Yes {
				c.int(int64(r.Message.DeliveredAt))
			}
		},
	},
	spanColumn("sent_earliest", "When it was first sent: not before.", sentFrom),
	spanColumn("sent_latest", "When it was first sent: not after.", sentTo),
	spanColumn("arrived_earliest", "When it came to its receiver's library: not before.", arrivedFrom),
	spanColumn("arrived_latest", "When it came to its receiver's library: not after.", arrivedTo),
	messageColumn{
		Column{
			Name: "arrived_certainty", Type: Text, Words: certainties, Absent: Omitted,
			Doc: "How surely the capture shows these two.",
		},
		func(r *MessageRow, c *Cell) {
			if r.Message.Arrived.Known() {
				c.own(r.Message.Arrived.Certainty.String())
			}
		},
	},
	took("arrival_ms_least", "Time from first sending to arrival: at least.", func(m *machine.Message) time.Duration {
		least, _, _ := m.Latency()
		return least
	}),
	took("arrival_ms_most", "Time from first sending to arrival: at most.", func(m *machine.Message) time.Duration {
		_, most, _ := m.Latency()
		return most
	}),
	took("arrival_ms", "Time from first sending to arrival: the estimate.", (*machine.Message).About),
	spanColumn("in_order_earliest", "When it could be handed over in order: not before.", inOrderFrom),
	spanColumn("in_order_latest", "When it could be handed over in order: not after.", inOrderTo),
	messageColumn{Column{
		Name: "deliveries", Type: Uint, Absent: Omitted,
		Doc: "How often it was handed over: more than once is a fault.",
	}, func(r *MessageRow, c *Cell) {
		if r.Message.Delivered == machine.Yes {
			c.uint(uint64(r.Message.Deliveries))
		}
	}},
	messageColumn{
		Column{
			Name: "wait_ms", Type: Float, Digits: 6, Unit: "ms", Absent: Omitted,
			Doc: "How long it had arrived and waited for an earlier one: head-of-line blocking.",
		},
		func(r *MessageRow, c *Cell) {
			if r.Message.Delivered == machine.Yes {
				c.float(machine.Milliseconds(r.Message.Wait), 6)
			}
		},
	},
	messageColumn{
		Column{Name: "blocked_by", Type: Int, Absent: Null, Doc: "Number of that earlier message, unwrapped."},
		func(r *MessageRow, c *Cell) {
			if r.Message.BlockedBy >= 0 {
				c.int(r.Message.BlockedBy)
			}
		},
	},
	messageColumn{Column{
		Name: "values", Type: JSON, Absent: Omitted,
		Doc: "Values of its body in their order, where a schema reads them.",
	}, func(r *MessageRow, c *Cell) {
		if r.Values != nil {
			if b, err := r.Values.MarshalList(); err == nil {
				c.bytes(append(c.Bytes[:0], b...))
			}
		}
	}},
	messageColumn{
		Column{Name: "fields", Type: JSON, Absent: Omitted, Doc: "The same by their names.", Shape: &Shape{}},
		func(r *MessageRow, c *Cell) {
			if r.Values != nil {
				if b, err := r.Values.MarshalJSON(); err == nil {
					c.bytes(append(c.Bytes[:0], b...))
				}
			}
		},
	},
	messageColumn{
		Column{
			Name: "certainty", Type: Text, Words: certainties,
			Doc: "How surely the capture shows what delivered says.",
		},
		func(r *MessageRow, c *Cell) { c.own(r.Message.Certainty.String()) },
	},
	messageColumn{
		Column{Name: "file", Type: Text, Absent: Omitted, Doc: "Name of the file, where several are read."},
		func(r *MessageRow, c *Cell) { c.word(r.File) },
	},
).sharing("flow", "to", func(r *MessageRow) sharedBy { return ofSide(r.Flow, r.Message.From) })
