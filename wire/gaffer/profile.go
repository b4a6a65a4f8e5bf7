package gaffer

import (
	"errors"
	"fmt"
	mathbits "math/bits"
	"slices"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	"github.com/ackscope/ackscope/wire/seq"
)

// Profile says how one dialect of the family is written, and how its endpoints keep
// their buffers. It is data: built in (see Builtin) or from a user's file. Validate
// makes it ready for use. After that it must not change, and concurrent reads are safe.
type Profile struct {
	Form      Form      `yaml:"form"`
	ByteOrder ByteOrder `yaml:"byte_order"`

	// Prefix lists what precedes the header. ProtocolID is a 32-bit id. It is sent (id),
	// or only enters the checksum (crc32). It is nil if it is unknown. A crc32 is then
	// shown as unchecked until the id is solved.
	Prefix     []Prefix `yaml:"prefix"`
	ProtocolID *uint32  `yaml:"protocol_id"`

	// Header lists the fields of form fixed, in order. If datagrams acknowledge nothing,
	// it lists only the sequence, or nothing.
	Header  []HeaderField `yaml:"header"`
	AckBase AckBase       `yaml:"ack_base"`

	PacketTypes       int  `yaml:"packet_types"`        // number of packet types; 0 and 1 take no bits
	PayloadLengthBits int  `yaml:"payload_length_bits"` // width of the payload's length in bytes; 0: not sent
	EndCheck          bool `yaml:"end_check"`           // 0x9908ace2 ends the packet

	Fragments FragmentForm `yaml:"fragments"`
	// FragmentSize is the data bytes of every fragment but the last. With 0 the first
	// fragments show the size.
	FragmentSize int  `yaml:"fragment_size"`
	MaxFragments int  `yaml:"max_fragments"` // of one packet
	Slices       int  `yaml:"slices"`        // most slices of a block; 0: no slices
	SliceSize    int  `yaml:"slice_size"`    // data bytes of every slice but the last
	Handshake    bool `yaml:"handshake"`     // packets are those of the connect sample

	SentBuffer       int  `yaml:"sent_buffer"`       // entries of the sent buffer; 0: unknown
	ReceiveWindow    int  `yaml:"receive_window"`    // entries of the received buffer; 0: unknown
	ReassemblyBuffer int  `yaml:"reassembly_buffer"` // packets that can be in reassembly at a time
	Duplicates       Rule `yaml:"duplicates"`
	Stale            Rule `yaml:"stale"`
	// ZeroedAckBits are bits of ack_bits that are written as 0 unless all of them are set.
	// While they are 0 they say nothing. 0: none.
	ZeroedAckBits uint64 `yaml:"zeroed_ack_bits"`
	// FragmentsWait: ack names a packet of fragments once it is whole. Otherwise its first
	// fragment is enough.
	FragmentsWait bool `yaml:"fragments_wait"`

	Messages MessageSection `yaml:"messages"`

	Ports      []uint16 `yaml:"ports"`       // a flow of one of these ports is read so without further evidence
	DetectBits float64  `yaml:"detect_bits"` // evidence that a flow must show, in bits; 0: the classifier's default

	// PacketBodies knows the bodies of packets by type. With nil they are opaque.
	PacketBodies Bodies `yaml:"-"`

	plan plan
}

// Bodies knows how long the body of a message or a packet is. A schema is one.
type Bodies interface {
	// Skip moves r past a body of the given type. Its error names the malformed field.
	Skip(kind uint32, r *bits.Reader) error
}

// HeaderField is one field of a fixed header.
type HeaderField struct {
	Field FieldName `yaml:"field"`
	Bits  int       `yaml:"bits"`
}

// MessageSection says how the payload carries messages.
type MessageSection struct {
	Form         MessageForm `yaml:"form"`
	Types        int         `yaml:"types"`          // message types; a type at or beyond it is malformed
	MaxPerPacket int         `yaml:"max_per_packet"` // most messages of a packet
	SendQueue    int         `yaml:"send_queue"`     // messages that the sender can hold
	ReceiveQueue int         `yaml:"receive_queue"`  // messages that the receiver can hold ahead of the next one
	// Resend is when a message that is not acked goes out again. If it is not set, it is
	// inferred from the packets.
	Resend Resend `yaml:"resend"`

	// Bodies knows the bodies of messages. With nil, only the first id and type can be
	// read.
	Bodies Bodies `yaml:"-"`
}

// plan is what Validate computes from a Profile for Parse.
type plan struct {
	ready    bool
	prefix   int // bytes before the header
	crc      int // offset of the CRC; -1 for none
	header   int // bytes of a fixed header
	typeBits int
	sequence field
	ack      field
	ackBits  field
	acks     bool // the header acknowledges
	plain    bool // little-endian sequence, ack, ack_bits of 16, 16 and 32 bits
	idBits   int  // slice ids
	whole    bool // a payload follows the header directly and runs to the end
	bare     bool // a datagram is a plain header and a payload, nothing else
	short    *wire.ParseError
}

type field struct{ offset, bytes int }

// Validate checks the settings and makes p ready for use. Its error names a setting as
// a profile file does.
func (p *Profile) Validate() error {
	p.plan = plan{crc: -1}
	if err := errors.Join(p.checkFrame(), p.checkHeader(), p.checkParts(), p.checkRules()); err != nil {
		return err
	}
	l := &p.plan
	l.whole = l.typeBits == 0 && p.PayloadLengthBits == 0 && !p.EndCheck
	l.bare = p.Form == FormFixed && l.plain && l.whole && l.prefix == 0
	l.short = &wire.ParseError{
		Field: "header", Expected: fmt.Sprintf("at least %d bytes", l.prefix+l.header),
		Err: wire.ErrShort,
	}
	l.ready = true
	return nil
}

func (p *Profile) checkFrame() error {
	l := &p.plan
	for _, x := range p.Prefix {
		switch x {
		case PrefixZero:
			l.prefix++
		case PrefixID:
			l.prefix += 4
		case PrefixCRC32:
			if l.crc >= 0 {
				return errors.New("prefix: crc32 stands twice")
			}
			l.crc = l.prefix
			l.prefix += 4
		default:
			return fmt.Errorf("prefix: unknown kind %d", x)
		}
	}
	if len(p.Prefix) > 4 {
		return fmt.Errorf("prefix: at most 4 parts, found %d", len(p.Prefix))
	}
	if p.Form != FormFixed && len(p.Prefix) > 0 {
		return fmt.Errorf("prefix: form %s has its own, only form fixed takes one", p.Form)
	}
	if slices.Contains(p.Prefix, PrefixID) && p.ProtocolID == nil {
		return errors.New("protocol_id: needed where prefix has id")
	}
	return nil
}

func (p *Profile) checkHeader() error {
	l := &p.plan
	if p.Form != FormFixed {
		if len(p.Header) > 0 {
			return fmt.Errorf("header: form %s has its own, only form fixed lists fields", p.Form)
		}
		l.acks = p.Form == FormReliable
		return nil
	}
	offset := 0
	for _, h := range p.Header {
		var f *field
		widths := []int{8, 16, 32}
		switch h.Field {
		case FieldSequence:
			f = &l.sequence
		case FieldAck:
			f = &l.ack
		case FieldAckBits:
			f, widths = &l.ackBits, []int{8, 16, 32, 64}
		default:
			return fmt.Errorf("header: unknown field %d", h.Field)
		}
		if f.bytes != 0 {
			return fmt.Errorf("header: %s stands twice", h.Field)
		}
		if !slices.Contains(widths, h.Bits) {
			return fmt.Errorf("header: %s is %d bits wide, expected one of %v", h.Field, h.Bits, widths)
		}
		*f = field{offset, h.Bits / 8}
		offset += h.Bits / 8
	}
	l.header = offset
	if (l.ack.bytes != 0) != (l.ackBits.bytes != 0) {
		return errors.New("header: ack and ack_bits stand together or not at all")
	}
	l.acks = l.ack.bytes != 0
	if l.acks && l.ack.bytes != l.sequence.bytes {
		return fmt.Errorf("header: ack is %d bits wide and sequence %d, expected the same", l.ack.bytes*8, l.sequence.bytes*8)
	}
	l.plain = p.ByteOrder == LittleEndian && l.sequence == field{0, 2} && l.ack == field{2, 2} && l.ackBits == field{4, 4}
	if p.ByteOrder > BigEndian {
		return fmt.Errorf("byte_order: unknown order %d", p.ByteOrder)
	}
	return nil
}

func (p *Profile) checkParts() error {
	l := &p.plan
	for _, v := range []struct {
		name        string
		value, most int
	}{
		{"packet_types", p.PacketTypes, 1 << 16},
		{"payload_length_bits", p.PayloadLengthBits, 16},
		{"fragment_size", p.FragmentSize, 65507},
		{"max_fragments", p.MaxFragments, 256},
		{"slices", p.Slices, MaxSlices},
		{"slice_size", p.SliceSize, 65507},
		{"messages.types", p.Messages.Types, 1 << 16},
		{"messages.max_per_packet", p.Messages.MaxPerPacket, 1 << 16},
		{"messages.send_queue", p.Messages.SendQueue, 1 << 15},
		{"messages.receive_queue", p.Messages.ReceiveQueue, 1 << 15},
	} {
		if v.value < 0 || v.value > v.most {
			return fmt.Errorf("%s: expected 0 to %d, found %d", v.name, v.most, v.value)
		}
	}
	if p.PacketTypes > 1 {
		l.typeBits = bits.Required(0, uint64(p.PacketTypes-1))
	}
	if p.Form != FormFixed && (p.PacketTypes > 1 || p.PayloadLengthBits > 0 || p.EndCheck || p.Slices > 0 || p.Handshake) {
		return fmt.Errorf("form %s takes no packet_types, payload_length_bits, end_check, slices or handshake", p.Form)
	}
	switch {
	case p.Fragments > FragmentsArticle:
		return fmt.Errorf("fragments: unknown form %d", p.Fragments)
	case p.Fragments == FragmentsReliable && p.Form != FormReliable:
		return errors.New("fragments: those of reliable need form reliable")
	case p.Fragments == FragmentsArticle && (p.Form != FormFixed || p.PacketTypes < 2 || l.sequence.bytes == 0):
		return errors.New("fragments: those of the article need form fixed, a sequence in the header, and packet_types of " +
			"which type 0 is the fragment")
	case p.Slices > 0 && (p.PacketTypes != 2 || p.SliceSize == 0 || p.Fragments != FragmentsNone || p.Handshake):
		return errors.New("slices: need packet_types 2 (slice and ack), a slice_size, and neither fragments nor handshake")
	case p.Handshake && (p.PacketTypes != 6 || p.Fragments != FragmentsNone):
		return errors.New("handshake: needs packet_types 6 and no fragments")
	}
	if p.Slices > 0 {
		l.idBits = bits.Required(0, uint64(p.Slices-1))
	}
	if m := p.Messages; m.Form > MessagesSimple {
		return fmt.Errorf("messages.form: unknown form %d", m.Form)
	} else if m.Form != MessagesNone && (m.Types == 0 || m.MaxPerPacket == 0) {
		return errors.New("messages: types and max_per_packet are needed to read them")
	} else if m.Resend.IsSet() && m.Form != MessagesByID {
		return fmt.Errorf("messages.resend: expected none with messages.form %s, found %s: only form by-id waits before a "+
			"message goes out again", m.Form, m.Resend)
	}
	return nil
}

func (p *Profile) checkRules() error {
	half := 1 << 15
	if b := p.SequenceBits(); b == 8 {
		half = 1 << 7
	}
	if p.SentBuffer < 0 || p.SentBuffer > half {
		return fmt.Errorf("sent_buffer: expected 1 to %d, or 0 where it is not known, found %d", half, p.SentBuffer)
	}
	if p.ReceiveWindow < 0 || p.ReceiveWindow == 1 || p.ReceiveWindow > half {
		return fmt.Errorf("receive_window: expected 2 to %d, or 0 where it is not known, found %d", half, p.ReceiveWindow)
	}
	if p.ReassemblyBuffer < 0 || p.ReassemblyBuffer > 1024 {
		return fmt.Errorf("reassembly_buffer: expected 0 to 1024, found %d", p.ReassemblyBuffer)
	}
	if p.Duplicates > RuleUnknown || p.Stale > Delivered || p.AckBase > AckMinusNMinusOne {
		return errors.New("duplicates, stale or ack_base: unknown word")
	}
	if z := p.ZeroedAckBits; z != 0 && (mathbits.Len64(z) > p.AckBitsWidth() || p.AckBase != AckMinusN) {
		return fmt.Errorf("zeroed_ack_bits: expected bits of the %d of ack_bits, with ack_base %s, found %#x",
			p.AckBitsWidth(), AckMinusN, z)
	}
	if p.FragmentsWait && p.Fragments != FragmentsReliable {
		return fmt.Errorf("fragments_wait: needs fragments %s, found fragments %s", FragmentsReliable, p.Fragments)
	}
	if p.DetectBits < 0 || p.DetectBits != p.DetectBits {
		return fmt.Errorf("detect_bits: expected 0 or more, found %v", p.DetectBits)
	}
	return nil
}

// SequenceBits returns the width of sequence numbers: 8, 16 or 32. It returns 0 if
// datagrams carry none.
func (p *Profile) SequenceBits() int {
	if p.Form == FormReliable {
		return 16
	}
	for _, h := range p.Header {
		if h.Field == FieldSequence {
			return h.Bits
		}
	}
	return 0
}

// AckBitsWidth returns the width of ack_bits: 8, 16, 32 or 64. It returns 0 if there
// are none.
func (p *Profile) AckBitsWidth() int {
	if p.Form == FormReliable {
		return 32
	}
	for _, h := range p.Header {
		if h.Field == FieldAckBits {
			return h.Bits
		}
	}
	return 0
}

// Space returns the space of the sequence numbers. Without numbers it is that of 16
// bits.
func (p *Profile) Space() seq.Space {
	if b := p.SequenceBits(); b != 0 {
		return seq.Space(b)
	}
	return seq.Bits16
}

// HasAcks reports whether datagrams acknowledge others. Without acks there is nothing
// to track.
func (p *Profile) HasAcks() bool { return p.plan.acks }

// HasCRC reports whether datagrams carry a CRC32 that covers the protocol id.
func (p *Profile) HasCRC() bool { return p.plan.crc >= 0 }

// NothingReceived reports whether a header says that its sender has received nothing:
// ack is the largest sequence number, and no bit is set.
func (p *Profile) NothingReceived(h Header) bool {
	return h.AckBits == 0 && h.Ack == p.Space().Mask()
}

// AckBit returns the bit of ack_bits for a sequence, and whether there is one. With
// AckMinusNMinusOne, no bit stands for ack itself.
func (p *Profile) AckBit(h Header, sequence uint32) (bit int, ok bool) {
	n := p.Space().Distance(h.Ack, sequence) - int(p.AckBase)
	return n, n >= 0 && n < p.AckBitsWidth()
}

// Names reports whether a header says that its sender has received a packet.
func (p *Profile) Names(h Header, sequence uint32) bool {
	if p.AckBase == AckMinusNMinusOne && sequence == h.Ack {
		return !p.NothingReceived(h)
	}
	bit, ok := p.AckBit(h, sequence)
	return ok && h.AckBits>>bit&1 == 1
}

// WithProtocolID returns a copy of p with a solved protocol id.
func (p *Profile) WithProtocolID(id uint32) *Profile {
	q := *p
	q.ProtocolID = &id
	return &q
}
