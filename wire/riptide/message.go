package riptide

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/ackscope/ackscope/wire"
)

// Message is the header of one message, and where its body is. Fields that the
// type does not have are zero.
type Message struct {
	Type  Type
	Value uint8 // of the type, as on the wire

	Sequence  uint16 // reliable types and Notify
	MessageID uint16 // Unreliable and Reliable (and Notify as the notes write it)

	Last    uint16 // Ack, AckExtra, Notify: newest id received
	AckBits uint16 // bit i: id Last-1-i was received; Notify has 8 of them
	Flag    bool   // 2.1 Ack: Cause counts
	Cause   uint16 // the id that the Ack answers; Last where no field says otherwise

	Reason   uint8 // Reject, Disconnect
	Ping     uint8
	RTT      int16 // ms, -1 for none yet
	ClientID uint16

	// HasCause, HasReason and HasRTT say that the optional field is on the wire.
	HasCause, HasReason, HasRTT bool

	// Unnamed is set by Parse for an Ack that has no field for the id that it
	// answers (notes): Cause is Last then, and what it answers is not on the wire.
	Unnamed bool

	// Bare is set by Parse for a Notify that has neither a sequence nor acks, but
	// a message id (notes).
	Bare bool

	// Body: the application's values or data. In the bit-packed form its last
	// up to 7 bits are padding: nothing says how many.
	BodyBit  int // its first bit
	BodyBits int // to the end of the message as it was on the wire; 0 for types without one

	Oddities Oddity
}

// Oddity is a set of things that a message has and that its dialect's
// description does not lead one to expect. None of them makes it unreadable.
type Oddity uint8

const (
	UnreadCause   Oddity = 1 << iota // an Ack whose flag is 0 carries a cause all the same (2.1.0 to 2.1.2)
	NotesCause                       // notes: an Ack with a third field, which the notes do not have
	NotesHeader                      // notes: a Notify with the ack header of the library in place of a message id
	LongID                           // a message id in more groups than it needs
	Padding                          // bits after the last field are not zero
	UnknownReason                    // a reason that the dialect has no name for
	DataUnasked                      // data after a reason that brings none
)

// Codec reads and writes the messages of one dialect.
type Codec struct {
	Dialect *Dialect

	// BigEndian is the other byte order that the byte-aligned forms can be built
	// with: all numbers of more than one byte but the two-byte length, which is
	// high byte first in any case. Bit-packed messages do not depend on it, their
	// TCP prefix does.
	BigEndian bool

	// NotifyHeader reads a Notify of the notes with the library's ack header,
	// where it is long enough for one.
	NotifyHeader bool
}

// layout returns the layout by which a message of type t and the given length is
// read.
func (c Codec) layout(t Type, length int) *Layout {
	if t == Notify && c.NotifyHeader && c.Dialect.BareNotify() && length >= notifyHeaderLen {
		return bytesNotify
	}
	return c.Dialect.layouts[t]
}

const notifyHeaderLen = 6

// maxIDGroups is the number of groups of a varint that holds 16 bits.
const maxIDGroups = 3

// fault says which field cannot be read and why. It is a plain value, so that
// weighing foreign traffic does not allocate an error a packet.
type fault struct {
	err   error
	field Field
	bit   int
	value int // what was found, where that says something
}

// Parse reads the header of a message of which b was captured and that had
// length bytes on the wire. On an error, a *wire.ParseError, m holds the fields
// before the bad one. A message that is too long for its type gives
// wire.ErrTrailing with all fields in m; one that a snap length cut within its
// header gives wire.ErrSnapped.
func (c Codec) Parse(b []byte, length int, m *Message) error {
	if f := c.parse(b, length, m); f.err != nil {
		return f.error(c, m, length)
	}
	return nil
}

// Fits reports whether Parse would succeed, without building an error.
func (c Codec) Fits(b []byte, length int, m *Message) bool {
	return c.parse(b, length, m).err == nil
}

func (c Codec) parse(b []byte, length int, m *Message) fault {
	*m = Message{}
	if len(b) == 0 {
		return fault{missing(8, length*8), FieldType, 0, 0}
	}
	var (
		word = load(b)
		have = len(b) * 8
		end  = length * 8
		at   = c.Dialect.Form.typeBits()
	)
	m.Value = b[0]
	if at == 4 {
		m.Value &= 15
	}
	t, ok := c.Dialect.TypeOf(m.Value)
	if !ok {
		return fault{wire.ErrRange, FieldType, 0, int(m.Value)}
	}
	m.Type = t
	l := c.layout(t, length)
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

// missing says why the bits up to upTo are not there: the message ends at bit
// end, or the capture cut it before.
func missing(upTo, end int) error {
	if upTo <= end {
		return wire.ErrSnapped
	}
	return wire.ErrShort
}

// finish reads what depends on several fields, and places the body.
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

// has reports whether an IfRoom field is to be written.
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

// Walk calls visit for each header field that is on the wire, in order, with
// its place in bits and its value as written. m must come from Parse of the
// same codec; a message that Parse refused is walked up to the bad field.
func (c Codec) Walk(b []byte, length int, visit func(f Field, bit, width int, value uint64)) {
	var m Message
	c.walk(b, length, &m, c.parse(b, length, &m), visit)
}

// WalkMessage is Walk of a message that Parse gave no error for, into m.
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

// load returns the first 8 bytes as one little-endian number; no header is
// longer, and bytes that are not there read as zero.
func load(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	var w uint64
	for i, v := range b {
		w |= uint64(v) << (8 * i)
	}
	return w
}

// varintID reads a message id from the low bits of w, of which have are real.
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
