package riptide

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/ackscope/ackscope/wire"
)

// Message is the header of one message, and the place of its body. Fields that the type does not
// have are zero.
type Message struct {
	Type  Type
	Value uint8 // of the type, as on the wire

	Sequence  uint16 // reliable types and Notify
	MessageID uint16 // Unreliable and Reliable (and Notify as the notes write it)

	Last    uint16 // Ack, AckExtra, Notify: newest id received
	AckBits uint16 // bit i: id Last-1-i was received; Notify has 8 of them
	Flag    bool   // 2.1 Ack: Cause counts
	Cause   uint16 // the id that the Ack answers; Last where no field names another

	Reason   uint8 // Reject, Disconnect
	Ping     uint8
	RTT      int16 // ms, -1 for none yet
	ClientID uint16

	// HasCause, HasReason and HasRTT say that the optional field is on the wire.
	HasCause, HasReason, HasRTT bool

	// Unnamed is set by Parse for an Ack of the notes, which has no field for the id that it answers.
	// Cause is Last then, and the wire does not show what the Ack answers.
	Unnamed bool

	// Bare is set by Parse for a Notify of the notes. It has a message id, and neither a sequence nor
	// acks.
	Bare bool

	// The body: the application's values or data. In the bit-packed form up to 7 of its last bits are
	// padding. Nothing on the wire says how many.
	BodyBit  int // its first bit
	BodyBits int // to the end of the message on the wire; 0 for types without a body

	Oddities Oddity
}

// Oddity is a set of things in a message that the description of its dialect does not mention. None
// of them makes the message unreadable.
type Oddity uint8

const (
	UnreadCause   Oddity = 1 << iota // an Ack carries a cause although its flag is 0 (2.1.0 to 2.1.2)
	NotesCause                       // notes: an Ack with a third field, which the notes do not have
	NotesHeader                      // notes: a Notify with the library's ack header in place of a message id
	LongID                           // a message id in more groups than it needs
	Padding                          // bits after the last field are not zero
	UnknownReason                    // a reason that the dialect has no name for
	DataUnasked                      // data after a reason that has none
)

// Codec reads and writes the messages of one dialect.
type Codec struct {
	Dialect *Dialect

	// BigEndian is the other byte order that builds of the byte-aligned forms can have. It applies to
	// all numbers of more than one byte. The two-byte length is an exception: its high byte always
	// comes first. Bit-packed messages do not depend on it, but their TCP prefix does.
	BigEndian bool

	// NotifyHeader reads a Notify of the notes with the library's ack header, where the message is
	// long enough for one.
	NotifyHeader bool
}

// layout returns the layout of a message of type t and the given length.
func (c Codec) layout(t Type, length int) *Layout {
	if t == Notify && c.NotifyHeader && c.Dialect.BareNotify() && length >= notifyHeaderLen {
		return bytesNotify
	}
	return c.Dialect.layouts[t]
}

const notifyHeaderLen = 6

// maxIDGroups is the number of groups of a varint that holds 16 bits.
const maxIDGroups = 3

// fault is the field that cannot be read, and why. It is a plain value, so that checking foreign
// traffic does not allocate an error for each packet.
type fault struct {
	err   error
	field Field
	bit   int
	value int // what was found, where that helps
}

// Parse reads the header of a message. b is its captured part, and length its size on the wire in
// bytes. On an error, a *wire.ParseError, m holds the fields before the bad one. The error is
// wire.ErrTrailing for a message that is too long for its type; m then has all fields. It is
// wire.ErrSnapped where a snap length cut the header.
func (c Codec) Parse(b []byte, length int, m *Message) error {
	if f := c.parse(b, length, m); f.err != nil {
		return f.error(c, m, length)
	}
	return nil
}

// Fits reports whether Parse would succeed. It builds no error.
func (c Codec) Fits(b []byte, length int, m *Message) bool {
	return c.parse(b, length, m).err == nil
}

// Beats reports whether a message is a heartbeat that Parse would read, or an answer to one.
func (c Codec) Beats(b []byte, length int) bool {
	if len(b) == 0 {
		return false
	}
	if t, ok := c.Dialect.TypeOf(c.value(b)); !ok || t != Heartbeat {
		return false
	}
	var m Message
	return c.Fits(b, length, &m)
}

// value returns the type of a message as it is on the wire.
func (c Codec) value(b []byte) uint8 {
	if c.Dialect.Form == BitPacked {
		return b[0] & 15
	}
	return b[0]
}

func (c Codec) parse(b []byte, length int, m *Message) fault {
	*m = Message{}
	if len(b) == 0 {
		return fault{missing(8, length*8), FieldType, 0, 0}
	}
	packed := c.Dialect.Form == BitPacked
	m.Value = c.value(b)
	t, ok := c.Dialect.TypeOf(m.Value)
	if !ok {
		return fault{wire.ErrRange, FieldType, 0, int(m.Value)}
	}
	m.Type = t
	l, word := c.layout(t, length), load(b)
	if packed && m.quick(l, word, len(b)*8, length*8) {
		return fault{}
	}
	return c.slow(b, length, l, word, m)
}

// slow reads what follows the type of a message. word holds the first 8 bytes of b.
func (c Codec) slow(b []byte, length int, l *Layout, word uint64, m *Message) fault {
	t, at, have, end := m.Type, c.Dialect.Form.typeBits(), len(b)*8, length*8
	if t == Notify && l == bytesNotify && c.Dialect.BareNotify() {
		m.Oddities |= NotesHeader
	}
	turned := c.BigEndian && c.Dialect.Form == ByteAligned
	for i := range l.Slots {
		s := &l.Slots[i]
		width := int(s.Bits)
		if width == 0 {
			if first := word >> (at & 63) & 255; first < 128 && at+8 <= have {
				m.MessageID = uint16(first) // one group, as nearly always
				at += 8
				continue
			}
			id, used, bad := varintID(word>>at, have-at)
			if bad != nil {
				if bad == wire.ErrShort {
					bad = missing(at+used+8, end)
				}
				return fault{bad, s.Field, at, int(id)}
			}
			if used > 8 && id>>(used/8*7-7) == 0 {
				m.Oddities |= LongID
			}
			m.MessageID = uint16(id)
			at += used
			continue
		}
		if s.Presence == IfRoom && at+width > end {
			break
		}
		if at+width > have {
			return fault{missing(at+width, end), s.Field, at, 0}
		}
		v := uint16(word>>(at&63)) & (1<<(width&31) - 1) // no header is longer than 64 bits
		if turned && width == 16 {
			v = bits.ReverseBytes16(v)
		}
		m.set(s.Field, v)
		at += width
	}
	return c.finish(m, l, word, at, have, end)
}

// missing returns why the bits up to upTo are missing: the message ends at bit end, or the capture
// cut it before.
func missing(upTo, end int) error {
	if upTo <= end {
		return wire.ErrSnapped
	}
	return wire.ErrShort
}

// finish sets what depends on several fields, and the place of the body.
func (c Codec) finish(m *Message, l *Layout, word uint64, at, have, end int) fault {
	switch m.Type {
	case Ack:
		switch {
		case !m.HasCause:
			if m.Flag {
				return fault{wire.ErrShort, FieldCause, at, 0}
			}
			m.Cause, m.Unnamed = m.Last, c.Dialect.AcksUnnamed
		case c.Dialect.Form == BitPacked && !m.Flag:
			m.Oddities |= UnreadCause
		case c.Dialect.AcksUnnamed:
			m.Oddities |= NotesCause
		}
	case Notify:
		m.Bare = l == bytesUnreliable
	case Reject:
		if c.Dialect.RejectReason(m.Reason) == "" {
			m.Oddities |= UnknownReason
		}
		if m.Reason != c.Dialect.CustomReason && (end-at)/8 > 0 {
			m.Oddities |= DataUnasked
		}
	case Disconnect:
		if m.HasReason && c.Dialect.DisconnectReason(m.Reason) == "" {
			m.Oddities |= UnknownReason
		}
		if m.Reason != c.Dialect.KickedReason && (end-at)/8 > 0 {
			m.Oddities |= DataUnasked
		}
	}
	m.BodyBit = at
	if l.Body != NoBody {
		m.BodyBits = max(end-at, 0)
		return fault{}
	}
	if (end-at)/8 > 0 {
		return fault{wire.ErrTrailing, FieldType, at, (end - at) / 8}
	}
	if at < have && have == end && word>>at != 0 {
		m.Oddities |= Padding
	}
	return fault{}
}

// set stores a field's value.
func (m *Message) set(f Field, v uint16) {
	switch f {
	case FieldSequence:
		m.Sequence = v
	case FieldMessageID:
		m.MessageID = v
	case FieldLast:
		m.Last = v
	case FieldAckBits:
		m.AckBits = v
	case FieldFlag:
		m.Flag = v != 0
	case FieldCause:
		m.Cause, m.HasCause = v, true
	case FieldReason:
		m.Reason, m.HasReason = uint8(v), true
	case FieldPing:
		m.Ping = uint8(v)
	case FieldRTT:
		m.RTT, m.HasRTT = int16(v), true
	case FieldClientID:
		m.ClientID = v
	}
}

// get returns a field's value as it is written.
func (m *Message) get(f Field) uint16 {
	switch f {
	case FieldSequence:
		return m.Sequence
	case FieldMessageID:
		return m.MessageID
	case FieldLast:
		return m.Last
	case FieldAckBits:
		return m.AckBits
	case FieldFlag:
		if m.Flag {
			return 1
		}
	case FieldCause:
		return m.Cause
	case FieldReason:
		return uint16(m.Reason)
	case FieldPing:
		return uint16(m.Ping)
	case FieldRTT:
		return uint16(m.RTT)
	case FieldClientID:
		return m.ClientID
	}
	return 0
}

// has reports whether an IfRoom field must be written.
func (m *Message) has(f Field) bool {
	switch f {
	case FieldCause:
		return m.HasCause
	case FieldReason:
		return m.HasReason
	case FieldRTT:
		return m.HasRTT
	}
	return true
}

// Walk calls visit for each header field on the wire, in order, with its first bit, its width in
// bits and its value as written. Where Parse would fail, Walk stops at the bad field.
func (c Codec) Walk(b []byte, length int, visit func(f Field, bit, width int, value uint64)) {
	var m Message
	c.walk(b, length, &m, c.parse(b, length, &m), visit)
}

// WalkMessage is Walk for a message that Parse read into m without an error.
func (c Codec) WalkMessage(b []byte, length int, m *Message, visit func(f Field, bit, width int, value uint64)) {
	c.walk(b, length, m, fault{}, visit)
}

func (c Codec) walk(b []byte, length int, m *Message, bad fault, visit func(f Field, bit, width int, value uint64)) {
	if bad.err != nil && bad.field == FieldType && bad.err != wire.ErrTrailing {
		return
	}
	at := c.Dialect.Form.typeBits()
	visit(FieldType, 0, at, uint64(m.Value))
	for _, s := range c.layout(m.Type, length).Slots {
		if bad.err != nil && bad.err != wire.ErrTrailing && s.Field == bad.field {
			return
		}
		if s.Presence == IfRoom && !m.has(s.Field) {
			return
		}
		width := int(s.Bits)
		if width == 0 {
			_, width, _ = varintID(load(b)>>at, len(b)*8-at)
		}
		visit(s.Field, at, width, uint64(m.get(s.Field)))
		at += width
	}
}

// load returns the first 8 bytes as one little-endian number. No header is longer. Missing bytes
// read as zero.
func load(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	if n := len(b); n >= 4 {
		return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<(n*8-32)
	}
	var w uint64
	for i, v := range b {
		w |= uint64(v) << (8 * i)
	}
	return w
}

// varintID reads a message id from the low have bits of w.
func varintID(w uint64, have int) (id uint32, used int, bad error) {
	for range maxIDGroups {
		if used+8 > have {
			return id, used, wire.ErrShort
		}
		id |= uint32(w>>used&127) << (used / 8 * 7)
		used += 8
		if w>>(used-1)&1 == 0 {
			if id > 0xffff {
				return id, used, wire.ErrRange
			}
			return id, used, nil
		}
	}
	return id, used, wire.ErrRange
}

func (f fault) error(c Codec, m *Message, length int) error {
	e := &wire.ParseError{Field: f.field.String(), Bit: f.bit, Err: f.err}
	switch {
	case f.err == wire.ErrTrailing:
		e.Field = m.Type.String()
		e.Expected = strconv.Itoa((f.bit+7)/8) + " bytes"
		e.Found = strconv.Itoa(length)
	case f.field == FieldType && f.err == wire.ErrRange:
		e.Expected = "0 to " + strconv.Itoa(int(c.Dialect.lastValue()))
		e.Found = strconv.Itoa(f.value)
	case f.field == FieldMessageID && f.err == wire.ErrRange:
		e.Expected = "at most 65535 in 3 groups"
		e.Found = strconv.Itoa(f.value)
	case f.field == FieldCause && f.err == wire.ErrShort && m.Flag:
		e.Expected = "16 bits, as the flag before it says"
	}
	return e
}

func (d *Dialect) lastValue() uint8 {
	v, _ := d.Value(ClientDisconnected)
	return v
}
