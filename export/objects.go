package export

import (
	"slices"

	"github.com/ackscope/ackscope/show"
)

// Objects returns the schemas of what commands print with --json other than
// tables. The name of a schema is that of the command; but for status, which
// package unit has.
func Objects() []*Schema {
	return []*Schema{
		overviewObject(), batchObject(), statusObject(), compareObject(),
		stateObject(), autopsyObject(), guessObject(), ledgerObject(), replayObject(),
		mergeObject(), anonymiseObject(), simulateObject(), captureObject(),
		interfacesObject(), fieldsObject(), explainObject(), protocolsObject(), thresholdsObject(),
	}
}

// Schemas returns the schema of every object that --json prints: tables and
// others.
func Schemas() []*Schema { return append(Tables(), Objects()...) }

// field declares a key of an object. The functions after the description change
// it.
func field(name string, kind Type, doc string, with ...func(*Column)) Column {
	c := Column{Name: name, Type: kind, Doc: doc}
	for _, change := range with {
		change(&c)
	}
	return c
}

func optional(c *Column) { c.Absent = Omitted }
func nullable(c *Column) { c.Absent = Null }
func either(c *Column)   { c.Absent = Either }

func unit(u string) func(*Column) { return func(c *Column) { c.Unit = u } }

// words makes a field's values a closed list.
func words(list ...string) func(*Column) { return func(c *Column) { c.Words = list } }

// of makes the value an object.
func of(columns ...Column) func(*Column) {
	return func(c *Column) { c.Shape = &Shape{Columns: columns} }
}

// listOf makes the value a list of objects.
func listOf(columns ...Column) func(*Column) {
	return func(c *Column) { c.Shape = &Shape{List: true, Columns: columns} }
}

// several declares a command whose lines are of several kinds.
func several(name, doc string, kinds ...*Schema) *Schema {
	return &Schema{Name: name, Doc: doc, OneOf: kinds}
}

func object(name, doc string, columns ...Column) *Schema {
	return &Schema{Name: name, Doc: doc, Columns: columns}
}

// Fields that several objects have.
var (
	fileField     = field("file", Text, "Name of the file.")
	severalFile   = field("file", Text, "Name of its file, where several are read.", optional)
	flowField     = field("flow", Uint, "Number of the flow, from 1.")
	protocolField = field("protocol", Text, "Its protocol.")
	dialectField  = field("dialect", Text, "Dialect of the protocol.")
	sideField     = field("side", Text, "The side: a spoke first, or is the client of the handshake.", words(sides...))
	addrField     = field("addr", Text, "Its address and port.")
	vantageField  = field("vantage", Text, "Where the capture was taken.", words(vantages...))
)

func certainty(name, doc string) Column { return field(name, Text, doc, words(certainties...)) }

func duration(name, doc string, with ...func(*Column)) Column {
	return field(name, Float, doc, append([]func(*Column){unit("ms")}, with...)...)
}

func stateObject() *Schema {
	cells := show.CellWords[:]
	begin := []Column{
		field("frame", Uint, "The frame after which the side knew this."),
		severalFile,
		field("time", Time, "When it was captured; null where the frame was not read.", nullable),
		flowField, protocolField, dialectField, sideField, addrField,
		field("peer", Text, "The other side's."), vantageField,
	}
	settled := []Column{
		field("by_frame", Uint, "The frame that settled it.", optional),
		field("bit", Uint, "The bit of that frame's ack bits that did.", optional),
	}
	return several("state", "What both sides of a flow knew at a frame: a line for each side.",
		object("state", "What a side knew.", slices.Concat(begin, []Column{
			field("windows", JSON, "What it keeps of packets, window by window.", listOf(slices.Concat([]Column{
				field("name", Text, "The window, as the protocol calls it."),
				field("first", Int, "Unwrapped number of its first cell."),
				field("next", Int, "The number that is due next; null where there is none.", nullable),
				field("size", Int, "How many it holds."),
				certainty("certainty", "How surely."),
				field("cells", Text, "Its cells as a picture, a sign each."),
				field("slots", JSON, "What is known of the cells that are not empty.", listOf(slices.Concat([]Column{
					field("index", Int, "Place in the library's own buffer."),
					field("sequence", Uint, "The number as on the wire."),
					field("sequence64", Int, "The same, unwrapped."),
					field("cell", Text, "What it is.", words(cells...)),
					certainty("certainty", "How surely."),
					field("frame", Uint, "The frame that carried it.", optional),
					field("sent", Time, "When it was sent.", optional),
					field("acked", Time, "When the side learned that it arrived.", optional),
				}, settled)...)),
			})...)),
			field("gauges", JSON, "Its estimates and counters.", listOf(
				field("name", Text, "The figure."),
				field("value", Float, "Its value; null where it is not known.", nullable),
				field("unit", Text, "Its unit; null for none.", nullable),
				certainty("certainty", "How surely."))),
			field("tables", JSON, "What else it keeps, such as queues.", listOf(
				field("name", Text, "The table."),
				field("columns", Texts, "Its columns."),
				Column{
					Name: "rows", Type: JSON, Doc: "Its rows, as the picture shows them.",
					Shape: &Shape{List: true, Item: &Column{Type: Texts}},
				})),
		})...),
		object("change", "With --diff: what changed on a side between two frames.", slices.Concat(begin, []Column{
			field("from_frame", Uint, "The earlier frame; frame is the later one."),
			field("changes", JSON, "Cells that changed.", listOf(slices.Concat([]Column{
				field("window", Text, "The window."),
				field("sequence64", Int, "Unwrapped number of the cell."),
				field("sequence", Uint, "The number as on the wire.", optional),
				field("from", Text, "What it was; null where it was outside of the window.", nullable, words(cells...)),
				field("to", Text, "What it is.", words(cells...)),
			}, settled)...)),
			field("gauges", JSON, "Figures that changed.", listOf(
				field("name", Text, "The figure."),
				field("from", Float, "Its value before.", nullable),
				field("to", Float, "Its value after.", nullable))),
		})...))
}

func autopsyObject() *Schema {
	columns := []Column{
		severalFile, flowField, protocolField, dialectField,
		field("a", Text, "Address and port of side a."), field("b", Text, "Address and port of side b."),
		field("ended", Text, "How it ended.", words("goodbye", "rejected", "denied", "unanswered", "silence")),
		field("story", Text, "That, in sentences."),
	}
	for _, s := range sides {
		columns = append(columns,
			field("last_"+s, Time, "When "+s+" was last heard.", optional),
			field("last_frame_"+s, Uint, "In which frame.", optional),
			field("last_heartbeat_frame_"+s, Uint, "Frame of its last heartbeat.", optional),
			field("reason_"+s, Uint, "Number of the reason that its library gave itself.", optional),
			field("reason_name_"+s, Text, "Name of that reason.", optional),
			field("reason_certainty_"+s, Text, "How surely.", optional, words(certainties...)),
			field("last_acked_frame_"+s, Uint, "Frame by which it last learned that something of it arrived.", optional),
			field("last_acked_sequence_"+s, Uint, "What had arrived.", optional),
			field("unacked_"+s, Uint, "Messages of it that were never acked.", optional))
	}
	return object("autopsy", "How a connection ended: a line a connection that did.", columns...)
}

func guessObject() *Schema {
	return object("guess", "What messages of one id may hold.",
		protocolField, dialectField,
		field("message_id", Uint, "The id; null for notify messages, which have none.", nullable),
		field("mode", Text, "Of notify messages.", optional, words("notify")),
		field("payloads", Uint, "Payloads that were read."),
		field("fixed_bits", Uint, "Their length, where it is one.", optional, unit("bits")),
		field("guesses", JSON, "What explains all of them, the likeliest first.", listOf(
			field("types", Text, "In the words of schemas."),
			field("score", Float, "The greater, the likelier."))))
}

func ledgerObject() *Schema {
	columns := []Column{
		severalFile,
		field("flow", Uint, "Number of the flow, from 1; null for frames of none.", nullable),
		field("protocol", Text, "Its protocol; null where none explains it.", nullable),
		field("dialect", Text, "Dialect of the protocol.", either),
		field("flows_let_go", Uint, "With flow null: of so many flows that ended early (memory ran out) this is the sum; "+
			"left out for frames of no flow.", optional),
		field("side", Text, "The sender.", optional, words(sides...)),
		field("addr", Text, "Its address and port.", optional),
		field("type", Text, "Type of message or packet."),
		field("count", Uint, "How many there were."),
		field("copies", Uint, "How many of them were copies of earlier ones."),
	}
	for _, x := range []struct{ name, doc string }{
		{"bytes", "What they took on the wire: the sum of what follows."},
		{"goodput_bytes", "What was sent for the first time."},
		{"resent_bytes", "What was sent again."},
		{"ack_bytes", "Acknowledgements."},
		{"header_bytes", "The protocol's own headers."},
		{"transport_bytes", "UDP's or TCP's headers."},
		{"ip_bytes", "IP's headers."},
		{"link_bytes", "The link's headers and padding."},
	} {
		columns = append(columns, field(x.name, Float, x.doc, unit("bytes")))
	}
	return object("ledger", "What bytes were spent on: a line for each type of message of each side.", columns...)
}
