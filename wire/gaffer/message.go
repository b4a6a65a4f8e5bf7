package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// MessageIDBits is the width of message ids, and of the simple scheme's ack.
const MessageIDBits = 16

// CountBits returns the width of the message count.
func (s *MessageSection) CountBits() int { return bits.Required(0, uint64(s.MaxPerPacket)) }

// TypeBits returns the width of a message's type.
func (s *MessageSection) TypeBits() int { return bits.Required(0, uint64(max(s.Types-1, 0))) }

// Message is one message of a section. Bit positions count from the first bit of the
// slice that its Messages reads.
type Message struct {
	ID   uint16
	Type uint32
	Bit  int // where it begins: at its id, or at its type in the simple scheme
	Kind int // where its type begins
	Body int // where its body begins
	End  int // where it ends; -1 if that is unknown: the body is malformed, or no schema has it
}

// Messages reads a message section, one message at a time:
//
//	by-id   count | id 16, type, body | id 16, type, body | ... | pad
//	simple  ack 16 | count | start id 16 | type, body | type, body | ... | pad
//
// The packet's own data follows the section.
type Messages struct {
	Ack   uint16 // simple: the most recent message id received
	Start uint16 // simple: the id of the first message
	Count int

	section *MessageSection
	r       bits.Reader
	read    int
	err     error
}

// Open reads the head of the section that begins at bit at of b. Its error is a
// *wire.ParseError.
func (s *MessageSection) Open(b []byte, at int) (Messages, error) {
	m := Messages{section: s}
	m.r.Reset(b, at)
	if s.Form == MessagesSimple {
		m.Ack = uint16(m.field("message.ack", MessageIDBits))
	}
	count := m.field("message.count", s.CountBits())
	if m.err == nil && count > uint64(s.MaxPerPacket) {
		m.err = outOfRange("message.count", m.r.Pos()-s.CountBits(), s.MaxPerPacket, count)
	}
	m.Count = int(count)
	if s.Form == MessagesSimple {
		m.Start = uint16(m.field("message.start", MessageIDBits))
	}
	return m, m.err
}

// Pos returns the bit up to which the section has been read.
func (m *Messages) Pos() int { return m.r.Pos() }

// Left returns how many messages have not been read yet.
func (m *Messages) Left() int { return m.Count - m.read }

// Next reads one more message. It returns false after the last one, and where reading
// stops. Err then reports what is wrong, if anything.
func (m *Messages) Next(to *Message) bool {
	s := m.section
	if m.err != nil || m.read >= m.Count || m.read > 0 && s.Bodies == nil {
		return false
	}
	*to = Message{ID: m.Start + uint16(m.read), Bit: m.r.Pos(), End: -1}
	if s.Form == MessagesByID {
		to.ID = uint16(m.field("message.id", MessageIDBits))
	}
	to.Kind = m.r.Pos()
	to.Type = uint32(m.field("message.type", s.TypeBits()))
	if m.err == nil && int(to.Type) >= s.Types {
		m.err = outOfRange("message.type", to.Kind, s.Types-1, uint64(to.Type))
	}
	if m.err != nil {
		return false
	}
	m.read++
	to.Body = m.r.Pos()
	if s.Bodies == nil {
		return true
	}
	if m.err = s.Bodies.Skip(to.Type, &m.r); m.err == nil {
		to.End = m.r.Pos()
	}
	return true
}

// Close skips the padding after the last message. It returns the byte at which the
// packet's own data begins.
func (m *Messages) Close() (int, error) {
	if m.err == nil {
		at := m.r.Pos()
		if !m.r.Align() {
			m.err = &wire.ParseError{Field: "message.padding", Bit: at, Expected: "zero bits", Err: wire.ErrPadding}
		}
	}
	return m.r.Pos() / 8, m.err
}

// Err returns what is wrong with the part of the section that was read.
func (m *Messages) Err() error { return m.err }

func (m *Messages) field(name string, n int) uint64 {
	if m.err != nil {
		return 0
	}
	v, ok := m.r.Bits(n)
	if !ok {
		m.err = &wire.ParseError{
			Field: name, Bit: m.r.Pos(), Expected: fmt.Sprintf("%d bits", n),
			Found: fmt.Sprintf("%d", m.r.Left()), Err: wire.ErrShort,
		}
	}
	return v
}

func outOfRange(field string, bit, most int, found uint64) error {
	return &wire.ParseError{
		Field: field, Bit: bit, Expected: fmt.Sprintf("0 to %d", most),
		Found: fmt.Sprintf("%d", found), Err: wire.ErrRange,
	}
}
