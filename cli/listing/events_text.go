package listing

import (
	"net/netip"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// eventText formats events as lines. There are three events a packet, and most of a line stands in
// other lines too: its frame, its side or its kind. So the last texts of each are kept.
type eventText struct {
	paint show.Painter
	clock show.Clock
	frame eventFrame
	sides [eventSides]eventSide
	names [eventNames]eventName

	// the widths grow with what was printed
	number, address, name int
}

// Texts that are kept. They are powers of two: a place is found by a mask. A server of 128 players
// has twice as many sides. No protocol has as many kinds of events.
const (
	eventSides = 256
	eventNames = 32
)

// eventFrame is the text of a frame's number and time.
type eventFrame struct {
	from *reader.Recording
	ref  machine.Ref
	at   machine.Instant
	text []byte
}

// eventSide is the text of a flow and one of its sides.
type eventSide struct {
	flow  int
	side  machine.Side
	addr  netip.AddrPort
	width int // of the address
	text  []byte
}

// eventName is the text of a kind of event.
type eventName struct {
	protocol *dissect.Protocol
	kind     machine.EventKind
	width    int
	text     []byte
}

func newEventText(paint show.Painter) eventText {
	return eventText{paint: paint, clock: show.Clock{Layout: "15:04:05"}, number: 5, address: 15, name: 9}
}

func eventStyle(k machine.EventKind) show.Style {
	switch k {
	case machine.EventLost, machine.EventStale, machine.EventRejected:
		return show.Red
	case machine.EventDuplicate, machine.EventResent, machine.EventRegraded:
		return show.Yellow
	case machine.EventAcked, machine.EventReceived, machine.EventDelivered:
		return show.Cyan
	default:
		return ""
	}
}

// append appends an event without the end of its line.
func (t *eventText) append(to []byte, from *reader.Recording, f *analyze.Flow, e *machine.Event) []byte {
	to = append(to, t.ofFrame(from, e)...)
	to = append(to, t.ofSide(f, e.Side)...)
	to = append(to, t.ofKind(f, e.Kind)...)
	var scratch [20]byte
	const sequence = 5 // most numbers have 16 bits
	to = show.PadLeft(to, strconv.AppendUint(scratch[:0], uint64(e.Sequence), 10), sequence)
	grade := e.Certainty.String()
	to = append(append(to, ' ', ' '), grade...)
	if e.Kind == machine.EventAcked && e.By != 0 {
		const grades = len("possible")
		to = app.AppendBlanks(to, grades-len(grade))
		to = strconv.AppendUint(append(to, " by frame "...), e.By.Frame(), 10)
		to = strconv.AppendUint(append(to, " bit "...), uint64(e.Bit), 10)
	}
	if note := show.EventNote(f, e); note != "" {
		to = append(append(to, "  "...), note...)
	}
	return to
}

// ofFrame returns the number and the time of the frame that shows an event.
func (t *eventText) ofFrame(from *reader.Recording, e *machine.Event) []byte {
	x := &t.frame
	if x.from == from && x.ref == e.Ref && x.at == e.At {
		return x.text
	}
	var scratch [64]byte
	number := scratch[:0]
	if len(from.Paths) > 1 {
		number = append(strconv.AppendInt(number, int64(from.First+e.Ref.File()+1), 10), ':')
	}
	number = strconv.AppendUint(number, e.Ref.Frame(), 10)
	t.number = max(t.number, len(number))
	b := append(show.PadLeft(x.text[:0], number, t.number), ' ', ' ')
	b = t.paint.Begin(b, show.Dim)
	b = t.clock.Append(b, e.At, 6)
	*x = eventFrame{from, e.Ref, e.At, t.paint.End(b, show.Dim)}
	return x.text
}

// ofSide returns the flow of an event, and its side.
func (t *eventText) ofSide(f *analyze.Flow, side machine.Side) []byte {
	x, addr := &t.sides[(f.ID*2+int(side))%eventSides], f.Addr(side)
	if x.flow == f.ID && x.side == side && x.addr == addr && x.width == t.address {
		return x.text
	}
	b := append(x.text[:0], "  flow "...)
	from := len(b)
	b = show.Pad(strconv.AppendInt(b, int64(f.ID), 10), from, 4)
	b = append(append(b, side.String()...), ' ')
	from = len(b)
	b = addr.AppendTo(b)
	t.address = max(t.address, len(b)-from)
	b = append(show.Pad(b, from, t.address), ' ', ' ')
	*x = eventSide{f.ID, side, addr, t.address, b}
	return b
}

// ofKind returns the name of a kind of event.
func (t *eventText) ofKind(f *analyze.Flow, k machine.EventKind) []byte {
	x := &t.names[int(k)%eventNames]
	if x.protocol == f.Protocol && x.kind == k && x.width == t.name {
		return x.text
	}
	name := show.EventName(f, k)
	t.name = max(t.name, len(name))
	b := t.paint.Text(x.text[:0], eventStyle(k), name)
	*x = eventName{f.Protocol, k, t.name, app.AppendBlanks(b, t.name-len(name)+1)}
	return x.text
}
