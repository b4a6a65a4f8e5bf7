package gaffer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// seeds are datagrams of real captures, one or more of every form.
var seeds = map[string][]string{
	Reliable: {
		"3e640001 35fa276e 0102030405", "202c0103", "0028002900", "1e00000100 03000000 ff", "010d0000033c0d00003f0000 aabbcc",
		"010d000203 0011223344", "3e", "3e09",
	},
	Article:      {"2c0128018ffdfbcf 010203", "0000ffff00000000"},
	ArticleBE:    {"012c0126b5eee7f1 010203", "0000ffff00000000"},
	Reliable2017: {"002c012601ffffefdd 0102", "000000ffff00000000"},
	ArticleCRC32: {"00000000 0000ffff00000000 0200 aabb e2ac0899"},
	ArticleFragments: {
		"112fd95400000d8007e2ac0899", "d649a6b30000000c009dce890a000026",
		"393c7629b100372d2511d753dc10fb14e2ac0899",
	},
	ArticleSlices:    {"ae82e86701008600e2ac0899", "8add0b450000c000b0aa885edf5c9cb3"},
	ArticleSlices256: {"ae82e86701000400e2ac0899"},
	ArticleConnect:   {"0059a6053d98c65553fc7e00", "007a6453999cc65553fc7e0011223344556677889900aabbe2ac0899"},
	Netcode:          {"004e4554434f444520312e303200", "15070011223344556677889900112233445566", "8200000000000000800011"},
}

// FuzzParse reads any bytes with every profile:
//
//   - Nothing may panic.
//   - Everything that is read lies within the datagram.
//   - A datagram that is read whole and written again reads the same.
func FuzzParse(f *testing.F) {
	names := BuiltinNames()
	for i, name := range names {
		for _, s := range seeds[name] {
			f.Add(uint8(i), unhex(f, s), uint16(0))
			f.Add(uint8(i), unhex(f, s), uint16(1000))
		}
	}
	profiles := make([]*Profile, len(names))
	for i, name := range names {
		profiles[i] = profile(f, name)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte, more uint16) {
		p := profiles[int(which)%len(profiles)]
		wireLen := len(b) + int(more)
		var pk Packet
		p.Fits(b, wireLen)
		err := p.Parse(b, wireLen, &pk)
		var h Header
		if n, ok := p.ParseRegular(b, wireLen, &h); ok &&
			(err != nil || pk.Kind != KindRegular || !pk.HasHeader || pk.Header != h || pk.PayloadOffset != n) {
			t.Fatalf("%x: the short way reads %+v and a payload at %d, the long one %+v (%v)", b, h, n, pk, err)
		} else if !ok && err == nil && pk.Kind == KindRegular &&
			(p.Form == FormReliable || p == profiles[slices.Index(names, Article)]) {
			t.Fatalf("%x: the short way does not read what the long one does: %+v", b, pk)
		}
		if err != nil {
			var pe *wire.ParseError
			if !errors.Is(err, wire.ErrSnapped) && !errors.As(err, &pe) {
				t.Fatalf("an error of another kind: %v", err)
			}
			if errors.Is(err, wire.ErrSnapped) && more == 0 {
				t.Fatal("a whole datagram is taken for cut")
			}
			if pe != nil && (pe.Bit < 0 || pe.Bit > wireLen*8 || pe.Error() == "") {
				t.Fatalf("%v: at bit %d of %d", err, pe.Bit, wireLen*8)
			}
			return
		}
		if !p.Fits(b, wireLen) {
			t.Fatalf("%x is read, but said not to fit", b)
		}
		if pk.PayloadOffset < 0 || pk.PayloadLen < 0 || pk.PayloadOffset+pk.PayloadLen > wireLen {
			t.Fatalf("payload of %d bytes at %d of %d", pk.PayloadLen, pk.PayloadOffset, wireLen)
		}
		if more > 0 {
			return
		}
		again := p.Append(nil, &pk, b[pk.PayloadOffset:pk.PayloadOffset+pk.PayloadLen])
		var second Packet
		if err := p.Parse(again, len(again), &second); err != nil {
			t.Fatalf("%x was read as %+v, written as %x, and not read again: %v", b, pk, again, err)
		}
		// Headers in another form than the library's are written in the library's form.
		if p.Form == FormReliable && !p.Canonical(b, &pk) {
			second.HeaderLen, second.PayloadOffset, pk.HeaderLen, pk.PayloadOffset = 0, 0, 0, 0
		} else if p.Form != FormNetcode && !bytes.Equal(again, b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
		if p.Form == FormNetcode {
			second.PayloadOffset, pk.PayloadOffset = 0, 0 // a counter in more bytes than it needs
		}
		if !reflect.DeepEqual(pk, second) {
			t.Fatalf("%x reads as %+v, written again as %+v", b, pk, second)
		}
	})
}

// TestHeaderVariants compares every width and order of a fixed header with bytes
// written by hand.
func TestHeaderVariants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	orders := [][3]FieldName{
		{FieldSequence, FieldAck, FieldAckBits},
		{FieldSequence, FieldAckBits, FieldAck},
		{FieldAck, FieldSequence, FieldAckBits},
		{FieldAck, FieldAckBits, FieldSequence},
		{FieldAckBits, FieldSequence, FieldAck},
		{FieldAckBits, FieldAck, FieldSequence},
	}
	id := uint32(0xcafef00d)
	for _, width := range []int{8, 16, 32} {
		for _, ackBits := range []int{8, 16, 32, 64} {
			for _, order := range orders {
				for _, bytesOrder := range []ByteOrder{LittleEndian, BigEndian} {
					for _, prefix := range [][]Prefix{nil, {PrefixZero}, {PrefixID}, {PrefixZero, PrefixID}, {PrefixCRC32}} {
						p := &Profile{ByteOrder: bytesOrder, Prefix: prefix, ProtocolID: &id, SentBuffer: 64, ReceiveWindow: 64}
						for _, name := range order {
							n := width
							if name == FieldAckBits {
								n = ackBits
							}
							p.Header = append(p.Header, HeaderField{name, n})
						}
						if err := p.Validate(); err != nil {
							t.Fatal(err)
						}
						h := Header{
							Sequence: random.Uint32() & p.Space().Mask(), Ack: random.Uint32() & p.Space().Mask(),
							AckBits: random.Uint64() >> (64 - ackBits),
						}
						var by binary.AppendByteOrder = binary.LittleEndian
						if bytesOrder == BigEndian {
							by = binary.BigEndian
						}
						var want []byte
						for _, x := range prefix {
							switch x {
							case PrefixZero:
								want = append(want, 0)
							case PrefixID:
								want = by.AppendUint32(want, id)
							case PrefixCRC32:
								want = append(want, 0, 0, 0, 0)
							}
						}
						for _, f := range p.Header {
							v := map[FieldName]uint64{
								FieldSequence: uint64(h.Sequence), FieldAck: uint64(h.Ack),
								FieldAckBits: h.AckBits,
							}[f.Field]
							switch f.Bits {
							case 8:
								want = append(want, byte(v))
							case 16:
								want = by.AppendUint16(want, uint16(v))
							case 32:
								want = by.AppendUint32(want, uint32(v))
							case 64:
								want = by.AppendUint64(want, v)
							}
						}
						if got := p.AppendHeader(nil, h); !bytes.Equal(got, want) {
							t.Fatalf("%+v %+v: written as %x, want %x", p.Header, h, got, want)
						}
						b := p.Append(nil, &Packet{Header: h, Sequence: h.Sequence}, []byte("payload"))
						var pk Packet
						if err := p.Parse(b, len(b), &pk); err != nil || pk.Header != h || pk.PayloadLen != 7 ||
							pk.PayloadOffset != len(want) {
							t.Fatalf("%x: %v, %+v", b, err, pk)
						}
						if p.HasCRC() {
							b[len(b)-1] ^= 0x10
							if err := p.Parse(b, len(b), &pk); !errors.Is(err, wire.ErrChecksum) {
								t.Fatalf("a changed datagram passes: %v", err)
							}
						}
					}
				}
			}
		}
	}
}

// TestSolveProtocolID: one datagram of any length yields the protocol id.
func TestSolveProtocolID(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		at := random.IntN(3)
		b := make([]byte, at+4+random.IntN(1400))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		id := random.Uint32()
		binary.LittleEndian.PutUint32(b[at:], Checksum(id, b, at))
		if got := SolveProtocolID(b, at); got != id {
			t.Fatalf("%d bytes: solved %#x, want %#x", len(b), got, id)
		}
	}
}

func TestValidate(t *testing.T) {
	id := uint32(1)
	for name, p := range map[string]Profile{
		"ack without ack_bits":    {Header: []HeaderField{{FieldSequence, 16}, {FieldAck, 16}}},
		"sequence twice":          {Header: []HeaderField{{FieldSequence, 16}, {FieldSequence, 16}}},
		"width 24":                {Header: []HeaderField{{FieldSequence, 24}}},
		"ack wider than sequence": {Header: []HeaderField{{FieldSequence, 16}, {FieldAck, 32}, {FieldAckBits, 32}}},
		"window above half": {
			Header:     []HeaderField{{FieldSequence, 8}, {FieldAck, 8}, {FieldAckBits, 8}},
			SentBuffer: 64, ReceiveWindow: 129,
		},
		"id without its value":     {Prefix: []Prefix{PrefixID}},
		"two checksums":            {Prefix: []Prefix{PrefixCRC32, PrefixCRC32}},
		"header of form reliable":  {Form: FormReliable, Header: []HeaderField{{FieldSequence, 16}}},
		"prefix of form reliable":  {Form: FormReliable, Prefix: []Prefix{PrefixZero}},
		"reliable's fragments":     {Fragments: FragmentsReliable},
		"fragments without types":  {Fragments: FragmentsArticle, Header: []HeaderField{{FieldSequence, 16}}},
		"slices without a size":    {PacketTypes: 2, Slices: 4},
		"handshake of three types": {Handshake: true, PacketTypes: 3},
		"messages without types":   {Messages: MessageSection{Form: MessagesByID}},
		"negative":                 {SliceSize: -1},
		"detect_bits below zero":   {ProtocolID: &id, DetectBits: -1},
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%s: taken for valid", name)
		}
		var pk Packet
		if err := p.Parse(make([]byte, 40), 40, &pk); !errors.Is(err, ErrUnchecked) {
			t.Errorf("%s: a profile that is not valid is used: %v", name, err)
		}
	}
}

// TestMessageSections lays out a section by id and a simple one by hand, low bits
// first.
func TestMessageSections(t *testing.T) {
	byID := &MessageSection{Form: MessagesByID, Types: 3, MaxPerPacket: 8, Bodies: nibble{}}
	// The count is 2 in 4 bits. Then:
	//
	//	id 7 in 16 bits | type 1 in 2 | body 0xa in 4 | id 9 | type 2 | body 5
	b := pack(t, 2, 4, 7, 16, 1, 2, 0xa, 4, 9, 16, 2, 2, 5, 4)
	m, err := byID.Open(b, 0)
	if err != nil || m.Count != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	var got []Message
	for one := (Message{}); m.Next(&one); {
		got = append(got, one)
	}
	if want := []Message{{7, 1, 4, 20, 22, 26}, {9, 2, 26, 42, 44, 48}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if end, err := m.Close(); end != 6 || err != nil {
		t.Errorf("ends at byte %d: %v", end, err)
	}

	simple := &MessageSection{Form: MessagesSimple, Types: 1, MaxPerPacket: 3, Bodies: nibble{}}
	b = pack(t, 65535, 16, 2, 2, 65535, 16, 1, 4, 2, 4)
	if m, err = simple.Open(b, 0); err != nil || m.Ack != 65535 || m.Start != 65535 || m.Count != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	var one Message
	if m.Next(&one); one.ID != 65535 || one.Body != 34 {
		t.Errorf("first message %+v", one)
	}
	if m.Next(&one); one.ID != 0 || one.End != 42 {
		t.Errorf("second message %+v", one)
	}
	if _, err := m.Close(); err != nil {
		t.Error(err)
	}

	for name, c := range map[string]struct {
		s    *MessageSection
		b    []byte
		kind error
	}{
		"type out of range":  {byID, pack(t, 1, 4, 7, 16, 3, 2, 0, 4), wire.ErrRange},
		"count out of range": {byID, pack(t, 9, 4), wire.ErrRange},
		"cut in an id":       {byID, pack(t, 1, 4, 7, 10), wire.ErrShort},
		"padding of ones":    {byID, pack(t, 0, 4, 1, 1), wire.ErrPadding},
		"nothing at all":     {simple, nil, wire.ErrShort},
	} {
		m, err := c.s.Open(c.b, 0)
		for one := (Message{}); m.Next(&one); {
			continue
		}
		if err == nil {
			_, err = m.Close()
		}
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}

	// Without bodies, the first id and type can be read, but nothing after them.
	opaque := &MessageSection{Form: MessagesByID, Types: 3, MaxPerPacket: 8}
	m, _ = opaque.Open(pack(t, 2, 4, 7, 16, 1, 2, 0xa, 4), 0)
	if !m.Next(&one) || one.ID != 7 || one.Type != 1 || one.End != -1 || m.Next(&one) || m.Err() != nil {
		t.Errorf("an opaque section gives %+v, %v", one, m.Err())
	}
}

// nibble is messages whose bodies all take four bits.
type nibble struct{}

func (nibble) Skip(_ uint32, r *bits.Reader) error {
	if _, ok := r.Bits(4); !ok {
		return &wire.ParseError{Field: "nibble", Bit: r.Pos(), Err: wire.ErrShort}
	}
	return nil
}

// pack writes pairs of value and width, low bit first, one bit at a time.
func pack(t *testing.T, pairs ...uint64) []byte {
	t.Helper()
	var out []byte
	at := 0
	for i := 0; i < len(pairs); i += 2 {
		for bit := range pairs[i+1] {
			if at%8 == 0 {
				out = append(out, 0)
			}
			out[at/8] |= byte(pairs[i]>>bit&1) << (at % 8)
			at++
		}
	}
	return out
}
