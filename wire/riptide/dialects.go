package riptide

import "strings"

// Form is how a dialect lays out its fields.
type Form uint8

const (
	ByteAligned Form = iota // whole bytes; the type is the first byte
	BitPacked               // the type is the low 4 bits of the first byte; nothing after it is aligned
)

// Presence is when a field of a layout is present.
type Presence uint8

const (
	Always Presence = iota
	IfRoom          // where the message is long enough; later fields of the type are then present too
)

// Slot is one field of a layout.
type Slot struct {
	Field    Field
	Bits     uint8 // width; 0 for a varint of 1 to 3 groups of 8 bits
	Presence Presence
}

// BodyKind is what follows the header of a type.
type BodyKind uint8

const (
	NoBody BodyKind = iota
	Values          // the application's values of a user message
	Data            // the application's connect, reject or kick data; it has no length of its own
)

// Layout is what follows the type of a message.
type Layout struct {
	Slots []Slot
	Body  BodyKind
}

// Dialect is one form of the protocol on the wire. Code that reads packets knows versions only by
// the dialects in this file.
type Dialect struct {
	Name string
	Doc  string // the implementations that speak it, in one sentence
	Form Form

	// types holds the Type of each value on the wire, plus one. It is 0 for a value that does not
	// exist.
	types [16]uint8

	layouts [typeCount]*Layout

	// Prefixes are the sizes in bytes of the length before each message over TCP. Builds of this
	// dialect use these sizes, the usual one first.
	Prefixes []int

	rejectReasons     []string
	disconnectReasons []string
	CustomReason      uint8 // the reject reason that data may follow
	KickedReason      uint8 // the disconnect reason that data may follow

	// SeparateCause is set where an Ack for another id than the newest has a type of its own
	// (AckExtra).
	SeparateCause bool

	// RTTBothWays is set where every heartbeat has an RTT by the dialect's document. Elsewhere a
	// server's answer has none.
	RTTBothWays bool

	// ReasonBothWays is set where every Disconnect has a reason by the dialect's document. Elsewhere a
	// client's has none.
	ReasonBothWays bool

	// AcksUnnamed is set where an Ack has no field for the id that it answers: Message.Unnamed.
	AcksUnnamed bool

	// WelcomeOneWay is set where a client does not answer the server's Welcome with one of its own.
	// The connection is made once the server has sent it.
	WelcomeOneWay bool

	MaxMessage int // bytes of the largest message, by the library's default
}

// Value returns the number that the dialect writes for a type.
func (d *Dialect) Value(t Type) (uint8, bool) {
	for v, known := range d.types {
		if known == uint8(t)+1 {
			return uint8(v), true
		}
	}
	return 0, false
}

// TypeOf returns the type of a number on the wire.
func (d *Dialect) TypeOf(value uint8) (Type, bool) {
	if int(value) >= len(d.types) || d.types[value] == 0 {
		return 0, false
	}
	return Type(d.types[value] - 1), true
}

// BareNotify reports whether the dialect's Notify is a message id and values only: Message.Bare.
func (d *Dialect) BareNotify() bool { return d.layouts[Notify] == bytesUnreliable }

// HasVarLongs reports whether the dialect has VarLong and VarULong: the notes have them, and the releases since 2.1.0.
func (d *Dialect) HasVarLongs() bool { return d.Form == BitPacked || d == Notes }

// Layout returns what follows the type in messages of type t, or nil where the dialect does not
// have t.
func (d *Dialect) Layout(t Type) *Layout {
	if int(t) >= typeCount {
		return nil
	}
	return d.layouts[t]
}

// RejectReason returns the name of a reason of Reject, or "" for a reason that does not exist.
func (d *Dialect) RejectReason(reason uint8) string { return reasonName(d.rejectReasons, reason) }

// DisconnectReason returns the name of a reason of Disconnect, or "" for a reason that does not
// exist.
func (d *Dialect) DisconnectReason(reason uint8) string {
	if d.Form == BitPacked && reason == UnpackedStop {
		return "ServerStopped (written as a whole byte)"
	}
	return reasonName(d.disconnectReasons, reason)
}

// UnpackedStop is the reason that a reader finds in a server's stop from releases 2.1.0 to 2.2.0.
// In the bit-packed form they wrote the reason as a whole byte behind the type: `05 05` is type 5,
// reason 0x50.
const UnpackedStop = 0x50

func reasonName(names []string, reason uint8) string {
	if int(reason) < len(names) {
		return names[reason]
	}
	return ""
}

// Layouts that several dialects share. A field after an IfRoom field is present only with it.
var (
	bytesUnreliable = &Layout{[]Slot{{FieldMessageID, 16, Always}}, Values}
	bytesReliable   = &Layout{[]Slot{{FieldSequence, 16, Always}, {FieldMessageID, 16, Always}}, Values}
	bytesAck        = &Layout{[]Slot{{FieldLast, 16, Always}, {FieldAckBits, 16, Always}}, NoBody}
	bytesAckCause   = &Layout{
		[]Slot{{FieldLast, 16, Always}, {FieldAckBits, 16, Always}, {FieldCause, 16, IfRoom}},
		NoBody,
	}
	bytesAckExtra = &Layout{
		[]Slot{{FieldLast, 16, Always}, {FieldAckBits, 16, Always}, {FieldCause, 16, Always}},
		NoBody,
	}
	bytesNotify = &Layout{
		[]Slot{{FieldLast, 16, Always}, {FieldAckBits, 8, Always}, {FieldSequence, 16, Always}},
		Values,
	}

	bitsUnreliable = &Layout{[]Slot{{FieldMessageID, 0, Always}}, Values}
	bitsReliable   = &Layout{[]Slot{{FieldSequence, 16, Always}, {FieldMessageID, 0, Always}}, Values}
	bitsAck        = &Layout{[]Slot{
		{FieldLast, 16, Always}, {FieldAckBits, 16, Always}, {FieldFlag, 1, Always}, {FieldCause, 16, IfRoom},
	}, NoBody}

	connect    = &Layout{nil, Data}
	reject     = &Layout{[]Slot{{FieldReason, 8, Always}}, Data}
	heartbeat  = &Layout{[]Slot{{FieldPing, 8, Always}, {FieldRTT, 16, IfRoom}}, NoBody}
	disconnect = &Layout{[]Slot{{FieldReason, 8, IfRoom}}, Data}
	client     = &Layout{[]Slot{{FieldSequence, 16, Always}, {FieldClientID, 16, Always}}, NoBody}
)

// layouts returns the layouts of a dialect. Only the three given types, Notify and AckExtra differ
// between dialects.
func layouts(unreliable, ack, reliable *Layout) [typeCount]*Layout {
	return [typeCount]*Layout{
		Unreliable: unreliable, Ack: ack, Connect: connect, Reject: reject, Heartbeat: heartbeat, Disconnect: disconnect,
		Reliable: reliable, Welcome: client, ClientConnected: client, ClientDisconnected: client,
	}
}

func with(l [typeCount]*Layout, t Type, layout *Layout) [typeCount]*Layout {
	l[t] = layout
	return l
}

// values returns the table of types in the order of their numbers on the wire.
func values(types ...Type) (out [16]uint8) {
	for v, t := range types {
		out[v] = uint8(t) + 1
	}
	return out
}

var (
	typesWithNotify = values(Unreliable, Ack, Connect, Reject, Heartbeat, Disconnect, Notify, Reliable, Welcome,
		ClientConnected, ClientDisconnected)

	rejectWithPending = []string{"NoConnection", "AlreadyConnected", "Pending", "ServerFull", "Rejected", "Custom"}
	rejectReasons     = []string{"NoConnection", "AlreadyConnected", "ServerFull", "Rejected", "Custom"}

	disconnectReasons = []string{
		"NeverConnected", "ConnectionRejected", "TransportError", "TimedOut", "Kicked", "ServerStopped", "Disconnected",
		"PoorConnection",
	}
)

// kicked is the disconnect reason that data may follow, in every dialect.
const kicked = 4

// Notes is the form that the Riptide Networking Notes describe, byte for byte. The notes give some
// fields fewer or more bytes than the library's packets have. There both are read, and
// Message.Oddities says which one it was:
//
//   - an Ack with a third field;
//   - a Notify with the library's ack header (Codec.NotifyHeader) in place of the notes' bare
//     message id.
var Notes = &Dialect{
	Name: "notes", Doc: "implementations written from the Riptide Networking Notes 2.1.0; no published library",
	Form: ByteAligned, types: typesWithNotify,
	layouts:  with(layouts(bytesUnreliable, bytesAckCause, bytesReliable), Notify, bytesUnreliable),
	Prefixes: []int{2}, rejectReasons: rejectWithPending, disconnectReasons: disconnectReasons, CustomReason: 5,
	KickedReason: kicked,
	RTTBothWays:  true, ReasonBothWays: true, AcksUnnamed: true, WelcomeOneWay: true, MaxMessage: 1230,
}

// V20 is release 2.0.0, and Pytide 2.0.0.
var V20 = &Dialect{
	Name: "2.0", Doc: "release 2.0.0, and Pytide 2.0.0",
	Form: ByteAligned,
	types: values(Unreliable, Ack, AckExtra, Connect, Reject, Heartbeat, Disconnect, Reliable, Welcome, ClientConnected,
		ClientDisconnected),
	layouts:  with(layouts(bytesUnreliable, bytesAck, bytesReliable), AckExtra, bytesAckExtra),
	Prefixes: []int{2}, rejectReasons: rejectWithPending, disconnectReasons: disconnectReasons[:7], CustomReason: 5,
	KickedReason:  kicked,
	SeparateCause: true, MaxMessage: 1230,
}

// DevD is the byte-aligned form of source builds from February to July 2023.
var DevD = &Dialect{
	Name: "2.1-dev-d", Doc: "source builds of February to July 2023: AckExtra gone, no Notify yet",
	Form: ByteAligned,
	types: values(Unreliable, Ack, Connect, Reject, Heartbeat, Disconnect, Reliable, Welcome, ClientConnected,
		ClientDisconnected),
	layouts:  layouts(bytesUnreliable, bytesAckCause, bytesReliable),
	Prefixes: []int{2, 4}, rejectReasons: rejectReasons, disconnectReasons: disconnectReasons[:7], CustomReason: 4,
	KickedReason: kicked,
	MaxMessage:   1230,
}

// DevN is the byte-aligned form of source builds from July to November 2023.
var DevN = &Dialect{
	Name: "2.1-dev-n", Doc: "source builds of July to November 2023: Notify, not yet bit-packed",
	Form: ByteAligned, types: typesWithNotify,
	layouts:  with(layouts(bytesUnreliable, bytesAckCause, bytesReliable), Notify, bytesNotify),
	Prefixes: []int{4}, rejectReasons: rejectReasons, disconnectReasons: disconnectReasons, CustomReason: 4,
	KickedReason: kicked,
	MaxMessage:   1231,
}

// V21 is the bit-packed form of releases 2.1.0 to 2.2.1, of main up to the commit in its Doc, and of Pytide
// 2.1.0-alpha.
var V21 = &Dialect{
	Name: "2.1", Doc: "releases 2.1.0 to 2.2.1, main up to bc3f3f2 (August 2026), and Pytide 2.1.0-alpha",
	Form: BitPacked, types: typesWithNotify,
	layouts:  with(layouts(bitsUnreliable, bitsAck, bitsReliable), Notify, bytesNotify),
	Prefixes: []int{4}, rejectReasons: rejectReasons, disconnectReasons: disconnectReasons, CustomReason: 4,
	KickedReason: kicked,
	MaxMessage:   1231,
}

// Dialects lists all of them, the oldest first.
var Dialects = []*Dialect{Notes, V20, DevD, DevN, V21}

// Lookup finds a dialect by its name, in upper or lower case.
func Lookup(name string) (*Dialect, bool) {
	for _, d := range Dialects {
		if strings.EqualFold(d.Name, name) {
			return d, true
		}
	}
	return nil, false
}

// typeBits returns the bits of the type field.
func (f Form) typeBits() int {
	if f == BitPacked {
		return 4
	}
	return 8
}
