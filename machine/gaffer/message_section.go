package gaffer

import (
	"fmt"
	"strconv"

	base "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// section reads and sizes the message section at the start of a packet's
// payload, as the profile lays it out. Fields are packed low bit first; the
// section ends with zero bits up to a whole byte, and what follows is the
// packet's own.
//
//	by-id   count | id 16, type, body | id 16, type, body | ... | pad
//	simple  ack 16 | count | start id 16 | type, body | type, body | ... | pad
type section struct{ *wire.MessageSection }

// sectionMessage is one message of a section. Bits count from the section's first.
type sectionMessage struct {
	ID        uint16
	Type      uint32
	Bit       int // where the message begins: its id, or its type in the simple scheme
	Body, End int // where its body begins and ends
}

// sectionContent is a section that was read. The caller owns and reuses it.
type sectionContent struct {
	Ack      uint16 // simple scheme: the most recent message id received; 0xffff where none was
	Start    uint16 // simple scheme
	Messages []sectionMessage
	End      int // bytes of the section
}

const idBits = 16

func (s section) countBits() int { return bits.Required(0, uint64(s.MaxPerPacket)) }
func (s section) typeBits() int  { return bits.Required(0, uint64(s.Types-1)) }

// head gives what a message costs beside its body, in bits.
func (s section) head() int {
	if s.Form == wire.MessagesSimple {
		return s.typeBits()
	}
	return idBits + s.typeBits()
}

// fixed gives what a section without messages takes, in bits.
func (s section) fixed() int {
	if s.Form == wire.MessagesSimple {
		return idBits + s.countBits() + idBits
	}
	return s.countBits()
}

// read reads the section at the start of a payload. Its errors are
// *base.ParseError with bits counted from the section's first: a count or type
// out of range, a body that its type does not allow, padding that is not zero.
func (s section) read(payload []byte, to *sectionContent) error {
	*to = sectionContent{Messages: to.Messages[:0]}
	r := bits.NewReader(payload)
	field := func(name string, width int) (uint64, error) {
		at := r.Pos()
		v, ok := r.Bits(width)
		if !ok {
			return 0, &base.ParseError{Field: name, Bit: at, Err: base.ErrShort,
				Expected: strconv.Itoa(width) + " bits", Found: strconv.Itoa(r.Left())}
		}
		return v, nil
	}
	if s.Form == wire.MessagesSimple {
		ack, err := field("message_ack", idBits)
		if err != nil {
			return err
		}
		to.Ack = uint16(ack)
	}
	at := r.Pos()
	count, err := field("message_count", s.countBits())
	if err != nil {
		return err
	}
	if count > uint64(s.MaxPerPacket) {
		return outOfRange("message_count", at, s.MaxPerPacket, count)
	}
	if s.Form == wire.MessagesSimple {
		start, err := field("message_start", idBits)
		if err != nil {
			return err
		}
		to.Start = uint16(start)
	}
	for i := range int(count) {
		m := sectionMessage{ID: to.Start + uint16(i), Bit: r.Pos()}
		if s.Form == wire.MessagesByID {
			id, err := field("message_id", idBits)
			if err != nil {
				return err
			}
			m.ID = uint16(id)
		}
		at := r.Pos()
		kind, err := field("message_type", s.typeBits())
		if err != nil {
			return err
		}
		if kind >= uint64(s.Types) {
			return outOfRange("message_type", at, s.Types-1, kind)
		}
		m.Type, m.Body = uint32(kind), r.Pos()
		if err := s.Bodies.Skip(m.Type, &r); err != nil {
			return err
		}
		m.End = r.Pos()
		to.Messages = append(to.Messages, m)
	}
	at = r.Pos()
	if !r.Align() {
		return &base.ParseError{Field: "message_padding", Bit: at, Err: base.ErrPadding}
	}
	to.End = r.Pos() / 8
	return nil
}

func outOfRange(field string, bit, most int, found uint64) error {
	return &base.ParseError{Field: field, Bit: bit, Err: base.ErrRange,
		Expected: fmt.Sprintf("0 to %d", most), Found: strconv.FormatUint(found, 10)}
}

// copyBits appends the bits [from, to) of src to dst, low bit first, with zero
// bits up to a whole byte.
func copyBits(dst, src []byte, from, to int) []byte {
	w := bits.NewWriter(dst)
	writeBits(&w, src, from, to)
	return w.Data()
}

// writeBits writes the bits [from, to) of src.
func writeBits(w *bits.Writer, src []byte, from, to int) {
	var r bits.Reader
	r.Reset(src, from)
	for left := to - from; left > 0; {
		n := min(left, 64)
		v, _ := r.Bits(n) // within src: the caller read these bits before
		w.Bits(v, n)
		left -= n
	}
}
