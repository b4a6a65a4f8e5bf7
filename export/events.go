package export

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Words of the columns whose values are a closed list.
var (
	certainties = []string{"unknown", "possible", "likely", "certain"}
	severities  = []string{"note", "warn", "error"}
	vantages    = []string{"unknown", "a", "b", "both", "between"}
	answers     = []string{"unknown", "no", "yes"}
	sides       = []string{"a", "b"}
	modes       = []string{"unreliable", "reliable", "notify", "internal"}
	transports  = []string{"udp", "tcp", "ip-fragment"}
)

// EventRow is a row of Events.
type EventRow struct {
	Flow        *analyze.Flow
	Event       *machine.Event
	File        string // empty if only one file is read
	Provisional bool   // from a single run, and not certain
}

type eventColumn = column[EventRow]

// Events has a row for each fact about a packet.
var Events = newTable("events", "What happened to every packet, as the capture proves it of either endpoint: a row a "+
	"fact, in the order in which facts are settled.",
	eventColumn{
		Column{Name: "frame", Type: Uint, Doc: "Number of the frame that shows the fact, from 1, in its file."},
		func(r *EventRow, c *Cell) { c.uint(r.Event.Ref.Frame()) },
	},
	eventColumn{
		Column{Name: "time", Type: Time, Doc: "When that frame was captured."},
		func(r *EventRow, c *Cell) { c.int(int64(r.Event.At)) },
	},
	eventColumn{
		Column{Name: "flow", Type: Uint, Doc: "Number of the flow, from 1."},
		func(r *EventRow, c *Cell) { c.uint(uint64(r.Flow.ID)) },
	},
	eventColumn{
		Column{Name: "protocol", Type: Text, Doc: "Protocol of the flow."},
		func(r *EventRow, c *Cell) { c.own(r.Flow.Protocol.Name) },
	},
	eventColumn{
		Column{Name: "dialect", Type: Text, Doc: "Dialect of the protocol."},
		func(r *EventRow, c *Cell) { c.text(r.Flow.Config().Dialect) },
	},
	eventColumn{
		Column{
			Name: "side", Type: Text, Words: sides,
			Doc: "The endpoint that the fact belongs to: a spoke first.",
		},
		func(r *EventRow, c *Cell) { c.own(r.Event.Side.String()) },
	},
	eventColumn{
		Column{Name: "addr", Type: Text, Doc: "Its address and port."},
		func(r *EventRow, c *Cell) { c.addr(r.Flow.Addr(r.Event.Side)) },
	},
	eventColumn{Column{Name: "peer", Type: Text, Doc: "The other endpoint's."}, func(r *EventRow, c *Cell) {
		c.addr(r.Flow.Addr(r.Event.Side.Other()))
	}},
	eventColumn{
		Column{
			Name: "event", Type: Text,
			Doc: "What happened: sent, received, acked, duplicate, stale, rejected, lost, resent, delivered, regraded, or a " +
				"kind of the protocol's own.",
		}, func(r *EventRow, c *Cell) {
			c.own(show.EventName(r.Flow, r.Event.Kind))
		},
	},
	eventColumn{
		Column{Name: "sequence", Type: Uint, Doc: "Sequence number of the packet or message, as on the wire."},
		func(r *EventRow, c *Cell) { c.uint(uint64(r.Event.Sequence)) },
	},
	eventColumn{
		Column{Name: "sequence64", Type: Int, Doc: "The same, unwrapped."},
		func(r *EventRow, c *Cell) { c.int(r.Event.Sequence64) },
	},
	eventColumn{
		Column{Name: "certainty", Type: Text, Words: certainties, Doc: "How surely the capture shows it."},
		func(r *EventRow, c *Cell) { c.own(r.Event.Certainty.String()) },
	},
	eventColumn{
		Column{
			Name: "note", Type: Text, Absent: Omitted,
			Doc: "What the number stands for, such as the name of a reason.",
		},
		func(r *EventRow, c *Cell) { c.word(show.EventNote(r.Flow, r.Event)) },
	},
	eventColumn{Column{
		Name: "about_frame", Type: Uint, Absent: Omitted,
		Doc: "Frame of the packet that the fact is about, where it was captured.",
	}, func(r *EventRow, c *Cell) {
		if r.Event.About != 0 {
			c.uint(r.Event.About.Frame())
		}
	}},
	eventColumn{Column{
		Name: "by_frame", Type: Uint, Absent: Omitted,
		Doc: "Of acked: the frame whose header carried the acknowledgement.",
	}, func(r *EventRow, c *Cell) {
		if r.Event.Kind == machine.EventAcked && r.Event.By != 0 {
			c.uint(r.Event.By.Frame())
		}
	}},
	eventColumn{
		Column{Name: "bit", Type: Uint, Absent: Omitted, Doc: "Of acked: the bit of the ack bits that told it."},
		func(r *EventRow, c *Cell) {
			if r.Event.Kind == machine.EventAcked {
				c.uint(uint64(r.Event.Bit))
			}
		},
	},
	eventColumn{Column{
		Name: "rtt_ms", Type: Float, Digits: 6, Unit: "ms", Absent: Omitted,
		Doc: "Of acked: the endpoint's own sample of its round-trip time.",
	}, func(r *EventRow, c *Cell) {
		if e := r.Event; e.RTT > 0 || e.RTT == 0 && e.Kind == machine.EventAcked {
			c.float(float64(e.RTT)/1e6, 6)
		}
	}},
	eventColumn{
		Column{
			Name: "provisional", Type: Bool, Absent: Omitted,
			Doc: "True where it was told as the packets came and is not certain: a second look may grade it otherwise.",
		},
		func(r *EventRow, c *Cell) { provisionalCell(c, r.Provisional) },
	},
	eventColumn{
		Column{Name: "file", Type: Text, Absent: Omitted, Doc: "Name of the file, where several are read."},
		func(r *EventRow, c *Cell) { c.word(r.File) },
	},
).sharing("frame", "time", func(r *EventRow) sharedBy {
	return sharedBy{ref: r.Event.Ref, at: r.Event.At}
}).sharing("flow", "peer", func(r *EventRow) sharedBy { return ofSide(r.Flow, r.Event.Side) })
