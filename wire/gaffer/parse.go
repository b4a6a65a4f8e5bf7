package gaffer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// ErrUnchecked is the error of Parse on a profile that was not validated.
var ErrUnchecked = errors.New("gaffer: profile is used before Validate")

var (
	errZero     = &wire.ParseError{Field: "prefix.zero", Expected: "0x00", Err: wire.ErrRange}
	errID       = &wire.ParseError{Field: "protocol_id", Expected: "the profile's protocol_id", Err: wire.ErrRange}
	errChecksum = &wire.ParseError{
		Field: "crc32", Expected: "the CRC32 of the protocol id and the datagram",
		Err: wire.ErrChecksum,
	}
)

// Parse reads one datagram. b is what was captured of it, and wireLen its length on the
// wire. The error is wire.ErrSnapped if the capture lacks bytes of the header,
// otherwise a *wire.ParseError. Fields that were read before the error are in out.
// Parse does not allocate on success, nor on the failures that foreign datagrams cause.
func (p *Profile) Parse(b []byte, wireLen int, out *Packet) error {
	return p.parse(b, wireLen, out, false)
}

// Try is Parse without the words of an error: of a fault within the frame it returns only the
// kind, such as wire.ErrRange. So it never allocates. Classifiers call it with each profile for
// every datagram, and most of them fail.
func (p *Profile) Try(b []byte, wireLen int, out *Packet) error {
	return p.parse(b, wireLen, out, true)
}

func (p *Profile) parse(b []byte, wireLen int, out *Packet, terse bool) error {
	*out = Packet{}
	wireLen = max(wireLen, len(b))
	l := &p.plan
	if !l.ready {
		return ErrUnchecked
	}
	switch p.Form {
	case FormReliable:
		return p.parseReliable(b, wireLen, out)
	case FormNetcode:
		return parseNetcode(b, wireLen, out)
	}
	start := l.prefix + l.header
	if wireLen < start {
		return l.short
	}
	if len(b) < start {
		return wire.ErrSnapped
	}
	if err := p.parsePrefix(b, out); err != nil {
		return err
	}
	h := b[l.prefix:start]
	if l.plain {
		out.Header.Sequence = uint32(binary.LittleEndian.Uint16(h))
		out.Header.Ack = uint32(binary.LittleEndian.Uint16(h[2:]))
		out.Header.AckBits = uint64(binary.LittleEndian.Uint32(h[4:]))
	} else {
		out.Header.Sequence = uint32(p.field(h, l.sequence))
		out.Header.Ack = uint32(p.field(h, l.ack))
		out.Header.AckBits = p.field(h, l.ackBits)
	}
	out.Sequence = out.Header.Sequence
	out.HasHeader, out.HeaderOffset, out.HeaderLen = l.acks, l.prefix, l.header
	out.PayloadOffset, out.PayloadLen = start, wireLen-start
	if l.crc >= 0 && p.ProtocolID != nil && len(b) == wireLen {
		if want := Checksum(*p.ProtocolID, b, l.crc); want != out.CRC {
			out.CRCCheck, out.CRCWant = Differs, want
			return errChecksum
		}
		out.CRCCheck = Matches
	}
	if l.whole {
		return nil
	}
	return p.parseFrame(b, wireLen, out, terse)
}

// ParseRegular reads the header of the most common datagrams: regular packets with a
// bare header or reliable's. It returns the offset of the payload. The results equal
// those of Parse, at a third of its cost. It returns false for datagrams that need
// Parse.
func (p *Profile) ParseRegular(b []byte, wireLen int, h *Header) (payload int, ok bool) {
	switch {
	case p.plan.bare:
		if len(b) < 8 {
			return 0, false
		}
		v := binary.LittleEndian.Uint64(b)
		h.Sequence, h.Ack, h.AckBits = uint32(v&0xffff), uint32(v>>16&0xffff), v>>32
		return 8, true
	case p.Form == FormReliable && p.plan.ready && len(b) > 0 && b[0]&prefixFragment == 0:
		n, err := readReliable(b, max(wireLen, len(b)), h)
		return n, err == nil
	}
	return 0, false
}

func (p *Profile) parsePrefix(b []byte, out *Packet) error {
	at := 0
	for _, x := range p.Prefix {
		switch x {
		case PrefixZero:
			if b[at] != 0 {
				return errZero
			}
			at++
		case PrefixID:
			if p.ProtocolID != nil && uint32(p.field(b, field{at, 4})) != *p.ProtocolID {
				return errID
			}
			at += 4
		case PrefixCRC32:
			out.CRC = binary.LittleEndian.Uint32(b[at:])
			at += 4
		}
	}
	return nil
}

func (p *Profile) field(b []byte, f field) uint64 {
	var v uint64
	b = b[f.offset : f.offset+f.bytes]
	if p.ByteOrder == BigEndian {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// parseFrame reads what follows the header in the article's bit-packed frame.
func (p *Profile) parseFrame(b []byte, wireLen int, out *Packet, terse bool) error {
	f := frame{p: p, b: b, wireLen: wireLen, out: out, terse: terse}
	f.r.Reset(b, (p.plan.prefix+p.plan.header)*8)
	kind, err := f.bits("type", p.plan.typeBits)
	if err != nil {
		return err
	}
	out.Type = uint32(kind)
	if p.PacketTypes > 1 && kind >= uint64(p.PacketTypes) {
		return f.fault("type", wire.ErrRange, want("at most %d", p.PacketTypes-1), kind, p.plan.typeBits)
	}
	switch {
	case p.Fragments == FragmentsArticle && kind == 0:
		return f.fragment()
	case p.Slices > 0 && kind == 0:
		return f.slice()
	case p.Slices > 0:
		return f.sliceAck()
	case p.Handshake:
		return f.handshake()
	case p.PayloadLengthBits > 0:
		n, err := f.bits("payload.length", p.PayloadLengthBits)
		if err != nil {
			return err
		}
		if err := f.align(); err != nil {
			return err
		}
		return f.payload(int(n))
	}
	pos := f.r.Pos()
	out.PayloadOffset, out.PayloadBit = pos/8, pos%8
	end := wireLen
	if p.EndCheck {
		end -= endCheckBytes
	}
	if end < bits.Bytes(pos) {
		return f.fault("end_check", wire.ErrShort, want("4 bytes"), 0, 0)
	}
	out.PayloadLen = end - out.PayloadOffset
	return f.end(end)
}

// frame is a reader of what follows the header.
type frame struct {
	p       *Profile
	b       []byte
	wireLen int
	r       bits.Reader
	out     *Packet
	terse   bool // an error is its kind only
}

// wanted is what a field should have held: a format, and the numbers for it.
type wanted struct {
	format  string
	numbers []int
}

func want(format string, numbers ...int) wanted { return wanted{format, numbers} }

func (w wanted) String() string {
	list := make([]any, len(w.numbers))
	for i, n := range w.numbers {
		list[i] = n
	}
	return fmt.Sprintf(w.format, list...)
}

// bits reads n bits of the named field.
func (f *frame) bits(name string, n int) (uint64, error) {
	v, ok := f.r.Bits(n)
	if !ok {
		if f.r.Pos()+n <= f.wireLen*8 {
			return 0, wire.ErrSnapped
		}
		return 0, f.error(name, f.r.Pos(), wire.ErrShort, want("%d bits", n), want("%d", max(f.wireLen*8-f.r.Pos(), 0)))
	}
	return v, nil
}

// ranged reads an integer from least to most.
func (f *frame) ranged(name string, least, most int) (int, error) {
	n := bits.Required(uint64(least), uint64(most))
	v, err := f.bits(name, n)
	if err != nil {
		return 0, err
	}
	if int(v)+least > most {
		return 0, f.fault(name, wire.ErrRange, want("%d to %d", least, most), v+uint64(least), n)
	}
	return int(v) + least, nil
}

// fault describes an error in a field of which the last n bits read are part.
func (f *frame) fault(name string, kind error, expected wanted, found uint64, n int) error {
	if n == 0 {
		return f.error(name, f.r.Pos(), kind, expected, wanted{})
	}
	return f.error(name, f.r.Pos()-n, kind, expected, want("%d", int(found)))
}

// error describes an error in the field at a bit, or names its kind only.
func (f *frame) error(name string, bit int, kind error, expected, found wanted) error {
	if f.terse {
		return kind
	}
	return &wire.ParseError{Field: name, Bit: bit, Expected: expected.String(), Found: found.String(), Err: kind}
}

func (f *frame) align() error {
	n := -f.r.Pos() & 7
	v, err := f.bits("padding", n)
	if err != nil {
		return err
	}
	if v != 0 {
		return f.fault("padding", wire.ErrPadding, want("zero bits"), v, n)
	}
	return nil
}

// payload sets the payload to n bytes at the current position, then ends the packet.
func (f *frame) payload(n int) error {
	at := f.r.Pos() / 8
	f.out.PayloadOffset, f.out.PayloadLen = at, n
	if at+n > f.wireLen {
		f.out.PayloadLen = f.wireLen - at
		return f.fault("payload", wire.ErrShort, want("%d bytes", n), uint64(f.wireLen-at), 0)
	}
	return f.end(at + n)
}

// end checks that the packet ends at byte at, after the end check if it has one.
func (f *frame) end(at int) error {
	stop := at
	if f.p.EndCheck {
		stop += endCheckBytes
	}
	if stop > f.wireLen {
		return f.error("end_check", at*8, wire.ErrShort, want("4 bytes"), want("%d", f.wireLen-at))
	}
	if stop < f.wireLen {
		return f.error("trailing", stop*8, wire.ErrTrailing, want("the end of the packet"),
			want("%d more bytes", f.wireLen-stop))
	}
	if f.p.EndCheck && stop <= len(f.b) {
		if v := binary.LittleEndian.Uint32(f.b[at:]); v != EndCheck {
			return f.error("end_check", at*8, wire.ErrChecksum, want("%#08x", EndCheck), want("%#08x", int(v)))
		}
	}
	return nil
}

// Fits reports whether Parse may succeed. It looks only at the few bytes that are
// cheapest to check: classifiers call it for every datagram of every flow.
func (p *Profile) Fits(b []byte, wireLen int) bool {
	l := &p.plan
	start := l.prefix + l.header
	if p.Form != FormFixed || l.whole {
		return true
	}
	wireLen = max(wireLen, len(b))
	if wireLen <= start {
		return false
	}
	if len(b) <= start {
		return true
	}
	if p.Fragments == FragmentsArticle && b[start]&(1<<l.typeBits-1) == 0 {
		return true
	}
	if p.EndCheck && len(b) == wireLen &&
		(wireLen < start+endCheckBytes || binary.LittleEndian.Uint32(b[wireLen-endCheckBytes:]) != EndCheck) {
		return false
	}
	if n := p.PayloadLengthBits; n > 0 && l.typeBits == 0 && len(b) >= start+3 {
		length := int(b[start]) | int(b[start+1])<<8 | int(b[start+2])<<16
		end := start + bits.Bytes(n) + length&(1<<n-1)
		if p.EndCheck {
			end += endCheckBytes
		}
		return end == wireLen
	}
	return true
}
