package export

import (
	"net/netip"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// PacketRow is a row of Packets. It is created once for a run, and keeps the
// memory of its columns.
type PacketRow struct {
	Reading *filter.Reading // its Take was called with Source
	Source  *analyze.Record
	File    string // empty if only one file is read
	Tree    bool   // include every field with its position
	Hex     bool   // include the frame's bytes

	fields grouping
}

type packetColumn = column[PacketRow]

// fieldShape is one field of a tree.
var fieldShape = []Column{
	{Name: "name", Type: Text, Doc: "The field, as filters name it."},
	{Name: "label", Type: Text, Doc: "The field, as a tree shows it."},
	{Name: "depth", Type: Uint, Doc: "Its depth in the tree, from 0."},
	{
		Name: "bit", Type: Uint, Unit: "bits", Absent: Omitted,
		Doc: "Where it begins in the datagram; left out for fields that are generated.",
	},
	{Name: "bits", Type: Uint, Unit: "bits", Absent: Omitted, Doc: "How wide it is."},
	{Name: "value", Type: JSON, Absent: Omitted, Doc: "Its value."},
	{Name: "note", Type: Text, Absent: Omitted, Doc: "What is said beside the value."},
}

// Packets has a row for each packet.
var Packets = newTable("packets", "A row for each frame, and for each message of a TCP stream, with its decoded "+
	"fields and what was settled at it.",
	packetColumn{
		Column{Name: "frame", Type: Uint, Doc: "Number of the frame, from 1, in its file."},
		func(r *PacketRow, c *Cell) { c.uint(r.at().Ref.Frame()) },
	},
	packetColumn{
		Column{Name: "file", Type: Text, Absent: Omitted, Doc: "Name of the file, where several are read."},
		func(r *PacketRow, c *Cell) { c.word(r.File) },
	},
	packetColumn{
		Column{Name: "time", Type: Time, Doc: "When it was captured."},
		func(r *PacketRow, c *Cell) { c.int(int64(r.at().At)) },
	},
	packetColumn{Column{
		Name: "flow", Type: Uint, Absent: Null,
		Doc: "Number of its flow, from 1; null where it is of none.",
	}, func(r *PacketRow, c *Cell) {
		if n := r.Reading.Record.Flow; n != 0 {
			c.uint(uint64(n))
		}
	}},
	packetColumn{Column{
		Name: "protocol", Type: Text, Absent: Null,
		Doc: "Protocol of the flow; null where none explains it.",
	}, func(r *PacketRow, c *Cell) {
		if p := r.Reading.Record.Protocol; p != nil {
			c.own(p.Name)
		}
	}},
	packetColumn{
		Column{Name: "dialect", Type: Text, Absent: Null, Doc: "Dialect of the protocol."},
		func(r *PacketRow, c *Cell) {
			if r.Reading.Record.Protocol != nil {
				c.text(r.Reading.Record.Dialect)
			}
		},
	},
	packetColumn{
		Column{Name: "side", Type: Text, Absent: Null, Words: sides, Doc: "Its sender: a spoke first."},
		func(r *PacketRow, c *Cell) {
			if r.Reading.Record.Flow != 0 {
				c.own(r.at().From.String())
			}
		},
	},
	packetColumn{
		Column{
			Name: "addr", Type: Text, Absent: Omitted,
			Doc: "The sender's address, with its port where the packet has ports.",
		},
		func(r *PacketRow, c *Cell) { endpointCell(c, &r.Reading.Record, r.Reading.Record.Src) },
	},
	packetColumn{
		Column{Name: "peer", Type: Text, Absent: Omitted, Doc: "The receiver's."},
		func(r *PacketRow, c *Cell) { endpointCell(c, &r.Reading.Record, r.Reading.Record.Dst) },
	},
	packetColumn{
		Column{
			Name: "transport", Type: Text, Absent: Null, Words: transports,
			Doc: "What it carries; null for anything else.",
		},
		func(r *PacketRow, c *Cell) { c.word(transportWord(r.Reading.Record.Transport)) },
	},
	packetColumn{Column{
		Name: "length", Type: Uint, Unit: "bytes", Absent: Omitted,
		Doc: "Length of the frame on the wire.",
	}, func(r *PacketRow, c *Cell) {
		if f := r.Reading.Record.Frame; f != nil {
			c.uint(uint64(max(f.Length, 0)))
		}
	}},
	packetColumn{Column{
		Name: "captured", Type: Uint, Unit: "bytes", Absent: Omitted,
		Doc: "How many bytes of it were captured.",
	}, func(r *PacketRow, c *Cell) {
		if f := r.Reading.Record.Frame; f != nil {
			c.uint(uint64(len(f.Data)))
		}
	}},
	packetColumn{Column{
		Name: "payload_length", Type: Uint, Unit: "bytes", Absent: Omitted,
		Doc: "Length of the UDP or TCP payload on the wire.",
	}, func(r *PacketRow, c *Cell) {
		if t := r.Reading.Record.Transport; t == capture.UDP || t == capture.TCP {
			c.uint(uint64(max(r.at().Length, 0)))
		}
	}},
	packetColumn{
		Column{
			Name: "index", Type: Uint, Absent: Omitted,
			Doc: "Of a message of a TCP stream: which of those that the segment completes, from 0.",
		},
		func(r *PacketRow, c *Cell) {
			if r.Source.Message {
				c.uint(uint64(r.Source.Index))
			}
		},
	},
	packetColumn{Column{
		Name: "spans", Type: Uints, Absent: Omitted,
		Doc: "Frames that its bytes came in, where they may be several.",
	}, func(r *PacketRow, c *Cell) {
		if r.Source.Message {
			spansCell(c, r.Source.Spans)
		} else if p := r.Reading.Record.Packet; p != nil && p.Fragments > 1 {
			spansCell(c, p.Spans)
		}
	}},
	packetColumn{Column{
		Name: "capture_duplicate", Type: Bool, Absent: Omitted,
		Doc: "True where it was captured twice: kept out of all state.",
	}, func(r *PacketRow, c *Cell) {
		if p := r.Reading.Record.Packet; p != nil && p.Duplicate {
			c.bool(true)
		}
	}},
	packetColumn{
		Column{Name: "problem", Type: Text, Absent: Omitted, Doc: "Why decoding stopped before a payload."},
		func(r *PacketRow, c *Cell) {
			if p := r.Reading.Record.Packet; p != nil && p.Problem != nil {
				c.text(p.Problem.Error())
			}
		},
	},
	packetColumn{
		Column{Name: "comments", Type: Texts, Absent: Omitted, Doc: "Comments that the file has on the frame."},
		func(r *PacketRow, c *Cell) {
			f := r.Reading.Record.Frame
			if f == nil {
				return
			}
			for comment := range f.Comments() {
				c.Set = true
				c.Bytes = append(c.Bytes, comment...)
				c.Ends = append(c.Ends, len(c.Bytes))
			}
		},
	},
	packetColumn{
		Column{Name: "info", Type: Text, Doc: "The packet in one line."},
		func(r *PacketRow, c *Cell) { c.bytes(show.AppendInfo(c.Bytes[:0], r.Reading)) },
	},
	packetColumn{
		Column{
			Name: "fields", Type: JSON, Absent: Omitted, Shape: &Shape{},
			Doc: "The protocol's decoded fields by name; one that occurs several times has a list.",
		},
		func(r *PacketRow, c *Cell) {
			if d, own := r.dissection(); d != nil {
				c.bytes(r.fields.appendFields(c.Bytes[:0], d.Fields[:own]))
			}
		},
	},
	packetColumn{Column{
		Name: "tree", Type: JSON, Absent: Omitted, Shape: &Shape{List: true, Columns: fieldShape},
		Doc: "With -V: every field with its place, in the order of the packet.",
	}, func(r *PacketRow, c *Cell) {
		if d, own := r.dissection(); d != nil && r.Tree {
			c.bytes(appendTree(c.Bytes[:0], d.Fields[:own]))
		}
	}},
	packetColumn{Column{
		Name: "layers", Type: JSON, Absent: Omitted, Shape: &Shape{List: true, Columns: layerShape},
		Doc: "With -V: every layer of the frame, outermost first.",
	}, func(r *PacketRow, c *Cell) { r.layers(c, false) }},
	packetColumn{
		Column{
			Name: "reassembled", Type: JSON, Absent: Omitted, Shape: &Shape{List: true, Columns: layerShape},
			Doc: "With -V: the layers of the IP payload, or of the message, that the frame completes; places count from there.",
		},
		func(r *PacketRow, c *Cell) { r.layers(c, true) },
	},
	packetColumn{Column{
		Name: "joined", Type: JSON, Absent: Omitted,
		Doc: "The packet that this datagram completes, where it was sent in several.", Shape: &Shape{Columns: []Column{
			{Name: "length", Type: Uint, Unit: "bytes", Doc: "Its length."},
			{Name: "fields", Type: JSON, Shape: &Shape{}, Doc: "Its fields by name."},
			{
				Name: "tree", Type: JSON, Absent: Omitted, Shape: &Shape{List: true, Columns: fieldShape},
				Doc: "With -V: its fields with their places.",
			},
			{Name: "malformed", Type: Text, Absent: Omitted, Doc: "The first field that is malformed."},
		}},
	}, func(r *PacketRow, c *Cell) { r.joined(c) }},
	packetColumn{
		Column{Name: "malformed", Type: Text, Absent: Omitted, Doc: "The first field that is malformed."},
		func(r *PacketRow, c *Cell) {
			if d, _ := r.dissection(); d != nil && d.Problem != nil {
				c.text(d.Problem.Error())
			}
		},
	},
	packetColumn{Column{
		Name: "snapped", Type: Bool, Absent: Omitted,
		Doc: "True where the snap length cut it before its last field.",
	}, func(r *PacketRow, c *Cell) {
		if d, _ := r.dissection(); d != nil && d.Snapped {
			c.bool(true)
		}
	}},
	packetColumn{Column{
		Name: "batch", Type: JSON, Absent: Omitted,
		Doc: "Of a datagram that was captured together with others as one: see the rule offload.",
		Shape: &Shape{Columns: []Column{
			{Name: "index", Type: Uint, Doc: "Which of them it is, from 0."},
			{Name: "count", Type: Uint, Doc: "How many they are."},
			{Name: "size", Type: Uint, Unit: "bytes", Doc: "Payload of each but the last."},
		}},
	}, func(r *PacketRow, c *Cell) {
		if x := r.Source; x.Batch.Count > 0 {
			b := strconv.AppendInt(append(c.Bytes[:0], `{"index":`...), int64(x.Index), 10)
			b = strconv.AppendInt(append(b, `,"count":`...), int64(x.Batch.Count), 10)
			c.bytes(append(strconv.AppendInt(append(b, `,"size":`...), int64(x.Batch.Size), 10), '}'))
		}
	}},
	packetColumn{Column{
		Name: "icmp", Type: JSON, Absent: Omitted,
		Doc: "Of an ICMP error: what it says, and about which packet.", Shape: &Shape{Columns: []Column{
			{Name: "reason", Type: Text, Words: capture.Reasons(), Doc: "Why the packet could not be delivered."},
			{Name: "mtu", Type: Uint, Unit: "bytes", Absent: Omitted, Doc: "MTU of the link that the packet is too big for."},
			{Name: "addr", Type: Text, Doc: "The sender of the packet that it quotes."},
			{Name: "peer", Type: Text, Doc: "The receiver of that packet."},
			{Name: "flow", Type: Uint, Absent: Omitted, Doc: "The flow of that packet; left out where it is of none."},
			{Name: "frame", Type: Uint, Absent: Omitted, Doc: "The frame of that packet; left out where none fits."},
			{
				Name: "certainty", Type: Text, Absent: Omitted, Words: certainties,
				Doc: "How surely it is that packet: possible where no captured one fits.",
			},
			{Name: "by_peer", Type: Bool, Absent: Omitted, Doc: "True where the address of the receiver sent the error."},
		}},
	}, func(r *PacketRow, c *Cell) { r.icmp(c) }},
	packetColumn{Column{
		Name: "events", Type: JSON, Absent: Omitted,
		Doc: "What was settled at this packet, in short; with -Y of rel.* or message.*, what it shows. " +
			"The table events has the whole.",
		Shape: &Shape{List: true, Columns: []Column{
			{Name: "event", Type: Text, Doc: "What happened."},
			{Name: "side", Type: Text, Words: sides, Doc: "To whom."},
			{Name: "sequence", Type: Uint, Doc: "Sequence number, as on the wire."},
			{Name: "certainty", Type: Text, Words: certainties, Doc: "How surely."},
			{Name: "frame", Type: Uint, Doc: "The frame that shows it."},
			{Name: "by_frame", Type: Uint, Absent: Omitted, Doc: "Of acked: the frame that carried the acknowledgement."},
			{Name: "bit", Type: Uint, Absent: Omitted, Doc: "Of acked: the bit that told it."},
		}},
	}, func(r *PacketRow, c *Cell) { r.events(c) }},
	packetColumn{Column{
		Name: "findings", Type: JSON, Absent: Omitted,
		Doc: "What is wrong at this packet; the table findings gathers them.", Shape: &Shape{List: true, Columns: []Column{
			{Name: "rule", Type: Text, Doc: "Name of the rule."},
			{Name: "severity", Type: Text, Words: severities, Doc: "How grave it is."},
			{Name: "certainty", Type: Text, Words: certainties, Doc: "How surely."},
			{Name: "side", Type: Text, Words: sides, Doc: "Whose doing it is."},
		}},
	}, func(r *PacketRow, c *Cell) { r.findings(c) }},
	packetColumn{Column{
		Name: "bytes", Type: Text, Absent: Omitted,
		Doc: "With -x: the frame as captured, in hexadecimal.",
	}, func(r *PacketRow, c *Cell) {
		if f := r.Reading.Record.Frame; f != nil && r.Hex {
			c.bytes(appendHex(c.Bytes[:0], f.Data))
		}
	}},
).sharing("flow", "transport", func(r *PacketRow) sharedBy {
	x := &r.Reading.Record
	return sharedBy{
		flow: x.Flow, side: x.Datagram.From, protocol: x.Protocol, dialect: x.Dialect,
		src: x.Src, dst: x.Dst, transport: x.Transport,
	}
})

// at returns the datagram.
func (r *PacketRow) at() *machine.Datagram { return &r.Reading.Record.Datagram }

func endpointCell(c *Cell, r *filter.Record, a netip.AddrPort) {
	if r.Src.IsValid() {
		c.bytes(show.AppendEndpoint(c.Bytes[:0], a, r.Transport))
	}
}

func spansCell(c *Cell, list []capture.Span) {
	c.Set = true
	for i := range list {
		c.Uints = append(c.Uints, list[i].Ref.Frame())
	}
}

// joined sets the cell to the packet that the datagram completes.
func (r *PacketRow) joined(c *Cell) {
	d, own := r.dissection()
	whole := r.Reading.Whole
	if d == nil || whole == nil {
		return
	}
	b := append(c.Bytes[:0], `{"length":`...)
	b = strconv.AppendInt(b, int64(whole.Length), 10)
	b = r.fields.appendFields(append(b, `,"fields":`...), d.Fields[own:])
	if r.Tree {
		b = appendTree(append(b, `,"tree":`...), d.Fields[own:])
	}
	if p := r.Reading.Inside.Problem; p != nil {
		b = AppendString(append(b, `,"malformed":`...), p.Error())
	}
	c.bytes(append(b, '}'))
}

// events sets the cell to a short form of what was settled at the packet.
func (r *PacketRow) events(c *Cell) {
	x := r.Source
	if len(x.Events) == 0 {
		return
	}
	b := append(c.Bytes[:0], '[')
	for i := range x.Events {
		e := &x.Events[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"event":`...), show.EventName(x.Flow, e.Kind))
		b = append(append(append(b, `,"side":"`...), e.Side.String()...), `","sequence":`...)
		b = strconv.AppendUint(b, uint64(e.Sequence), 10)
		b = append(append(append(b, `,"certainty":"`...), e.Certainty.String()...), `","frame":`...)
		b = strconv.AppendUint(b, e.Ref.Frame(), 10)
		if e.Kind == machine.EventAcked && e.By != 0 {
			b = strconv.AppendUint(append(b, `,"by_frame":`...), e.By.Frame(), 10)
			b = strconv.AppendUint(append(b, `,"bit":`...), uint64(e.Bit), 10)
		}
		b = append(b, '}')
	}
	c.bytes(append(b, ']'))
}

// icmp sets the cell to what an ICMP error says.
func (r *PacketRow) icmp(c *Cell) {
	p := r.Reading.Record.Packet
	if p == nil || p.Quote == nil {
		return
	}
	q := p.Quote
	b := AppendString(append(c.Bytes[:0], `{"reason":`...), q.Reason.String())
	if q.MTU > 0 {
		b = strconv.AppendInt(append(b, `,"mtu":`...), int64(q.MTU), 10)
	}
	b = append(q.Src.AppendTo(append(b, `,"addr":"`...)), '"')
	b = append(q.Dst.AppendTo(append(b, `,"peer":"`...)), '"')
	if x := r.Source.Quoted; x != nil {
		b = strconv.AppendInt(append(b, `,"flow":`...), int64(x.Flow.ID), 10)
		if x.Ref != 0 {
			b = strconv.AppendUint(append(b, `,"frame":`...), x.Ref.Frame(), 10)
		}
		b = append(append(append(b, `,"certainty":"`...), x.Certainty.String()...), `","by_peer":`...)
		b = strconv.AppendBool(b, x.Peer)
	}
	c.bytes(append(b, '}'))
}

// findings sets the cell to the findings at the packet.
func (r *PacketRow) findings(c *Cell) {
	x := r.Source
	if len(x.Anomalies) == 0 {
		return
	}
	b := append(c.Bytes[:0], '[')
	for i := range x.Anomalies {
		m := &x.Anomalies[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"rule":`...), m.Rule.ID)
		b = append(append(append(b, `,"severity":"`...), m.Rule.Severity.String()...), `","certainty":"`...)
		b = append(append(append(b, m.Certainty.String()...), `","side":"`...), m.Side.String()...)
		b = append(b, `"}`...)
	}
	c.bytes(append(b, ']'))
}
