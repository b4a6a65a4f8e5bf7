package gaffer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/wire"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func profile(t testing.TB, name string) *Profile {
	t.Helper()
	p, _, err := Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHeaders uses headers of real captures, with the values that their senders logged.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		profile, hex string
		want         Header
	}{
		{Reliable, "3e 6400 01 35 fa 27 6e", Header{100, 99, 0x6e27fa35}},
		{Reliable, "20 2c01 03", Header{300, 297, 0xffffffff}},
		{Reliable, "00 2800 2900", Header{40, 41, 0xffffffff}},
		{Reliable, "1e 0000 0100 03000000", Header{0, 1, 3}},
		{Reliable, "28 ffff 02 7f", Header{65535, 65533, 0xff7fffff}},
		{Reliable, "30 0000 02 fe", Header{0, 65534, 0xfeffffff}},
		{Reliable, "3e 0000 01 00000000", Header{0, 65535, 0}},
		{Reliable, "3e 0900 04 3c000000", Header{9, 5, 0x3c}},
		{Article, "2c01 2801 8ffdfbcf", Header{300, 296, 0xcffbfd8f}},
		{ArticleBE, "012c 0126 b5eee7f1", Header{300, 294, 0xb5eee7f1}},
		{Reliable2017, "00 2c01 2601 ffffefdd", Header{300, 294, 0xddefffff}},
	} {
		p, b := profile(t, c.profile), unhex(t, c.hex)
		var pk Packet
		if err := p.Parse(b, len(b)+20, &pk); err != nil {
			t.Errorf("%s %s: %v", c.profile, c.hex, err)
			continue
		}
		if pk.Header != c.want || !pk.HasHeader || pk.Sequence != c.want.Sequence || pk.Kind != KindRegular {
			t.Errorf("%s %s: got %+v, want %+v", c.profile, c.hex, pk, c.want)
		}
		if pk.PayloadOffset != len(b) || pk.PayloadLen != 20 || pk.HeaderOffset+pk.HeaderLen != len(b) {
			t.Errorf("%s %s: payload at %d of %d bytes, want %d of 20", c.profile, c.hex, pk.PayloadOffset,
				pk.PayloadLen, len(b))
		}
		if got := p.AppendHeader(nil, c.want); !bytes.Equal(got, b) {
			t.Errorf("%s %+v is written as %x, want %x", c.profile, c.want, got, b)
		}
		if !p.Canonical(b, &pk) {
			t.Errorf("%s %s: taken for not canonical", c.profile, c.hex)
		}
	}
}

func TestReliableFragment(t *testing.T) {
	p, b := profile(t, Reliable), unhex(t, "01 0d00 00 03  3c 0d00 00 3f 00 00")
	var pk Packet
	if err := p.Parse(b, len(b)+1024, &pk); err != nil {
		t.Fatal(err)
	}
	want := Packet{
		Kind: KindFragment, HasHeader: true, Header: Header{13, 13, 0x00003fff}, HeaderOffset: 5, HeaderLen: 7,
		Sequence: 13, FragmentCount: 4, PayloadOffset: 12, PayloadLen: 1024,
	}
	if !reflect.DeepEqual(pk, want) {
		t.Errorf("got %+v, want %+v", pk, want)
	}
	if got := p.Append(nil, &pk, nil); !bytes.Equal(got, b) {
		t.Errorf("written as %x, want %x", got, b)
	}
	for _, c := range []struct {
		hex   string
		err   error
		field string
	}{
		{"01 0d00 00", wire.ErrShort, "prefix"},
		{"01 0d00 04 03 00", wire.ErrRange, "fragment.id"},
		{"03 0d00 01 03 00", wire.ErrRange, "prefix"},
		{"01 0d00 00 03  3c 0e00 00 3f 00 00", wire.ErrRange, "sequence"},
		{"01 0d00 00 03  3e 0d00 00 ff 3f 00 00", wire.ErrNotCanonical, "prefix"},
		{"01 0d00 00 03  01 0d00 00 3f 00 00", wire.ErrRange, "prefix"},
		{"01 0d00 00 03  3c 0d00 00 3f 00", wire.ErrShort, "header"},
		{"3e 0d", wire.ErrShort, "prefix"},
		{"3e 0d00 00 00", wire.ErrShort, "ack"},
		{"", wire.ErrShort, "prefix"},
	} {
		b := unhex(t, c.hex)
		err := p.Parse(b, len(b), &pk)
		var pe *wire.ParseError
		if !errors.As(err, &pe) || !errors.Is(err, c.err) || pe.Field != c.field {
			t.Errorf("%s: got %v, want %v in %s", c.hex, err, c.err, c.field)
		}
		if err := p.Parse(b[:len(b)/2], len(b)+2000, &pk); len(b) > 0 && err != nil && err != wire.ErrSnapped &&
			c.err == wire.ErrShort {
			t.Errorf("%s cut by the snap length: %v", c.hex, err)
		}
	}
}

// TestNotCanonical: a regular header in another form than the library's is read, and
// reported.
func TestNotCanonical(t *testing.T) {
	p := profile(t, Reliable)
	for _, s := range []string{"3e 2c01 03 ffffffff", "00 2c01 2901", "e0 2c01 03"} {
		b := unhex(t, s)
		var pk Packet
		if err := p.Parse(b, len(b), &pk); err != nil {
			t.Errorf("%s: %v", s, err)
		} else if p.Canonical(b, &pk) {
			t.Errorf("%s: taken for canonical", s)
		} else if (pk.Header != Header{300, 297, 0xffffffff}) {
			t.Errorf("%s: %+v", s, pk.Header)
		}
	}
}

// TestFrames uses frames of the article's samples, from real captures.
func TestFrames(t *testing.T) {
	for _, c := range []struct {
		profile, hex string
		id           uint32
		want         Packet
	}{
		{
			ArticleFragments, "112fd954 0000 0d8007 e2ac0899", 0x55667788,
			Packet{Type: 1, PayloadOffset: 6, PayloadBit: 2, PayloadLen: 3, HeaderOffset: 4, HeaderLen: 2, CRC: 0x54d92f11},
		},
		{
			ArticleSlices, "ae82e867 01008600 e2ac0899", 0x11223344,
			Packet{
				Kind: KindSliceAck, Type: 1, SliceCount: 4, SliceAcked: [4]uint64{2}, PayloadOffset: 8, HeaderOffset: 4,
				CRC: 0x67e882ae,
			},
		},
	} {
		p := profile(t, c.profile).WithProtocolID(c.id)
		b := unhex(t, c.hex)
		c.want.CRCCheck = Matches
		var pk Packet
		if err := p.Parse(b, len(b), &pk); err != nil {
			t.Errorf("%s: %v", c.hex, err)
		} else if !reflect.DeepEqual(pk, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.hex, pk, c.want)
		}
		if got := p.Append(nil, &pk, b[pk.PayloadOffset:pk.PayloadOffset+pk.PayloadLen]); !bytes.Equal(got, b) {
			t.Errorf("written as %x, want %x", got, b)
		}
		if id := SolveProtocolID(b, p.plan.crc); id != c.id {
			t.Errorf("%s: solved protocol id %#x, want %#x", c.hex, id, c.id)
		}
		b[len(b)-1] ^= 1
		if err := p.Parse(b, len(b), &pk); !errors.Is(err, wire.ErrChecksum) {
			t.Errorf("a wrong end passes: %v", err)
		}
	}
}

func TestNothingReceived(t *testing.T) {
	p := profile(t, Article)
	if !p.NothingReceived(Header{0, 0xffff, 0}) || p.NothingReceived(Header{0, 0xffff, 1}) ||
		p.NothingReceived(Header{0, 0, 0}) {
		t.Error("the header of an endpoint that has received nothing is not told apart")
	}
	if p.Names(Header{9, 5, 0x3c}, 5) || !p.Names(Header{9, 5, 0x3c}, 3) || p.Names(Header{9, 5, 0x3c}, 6) {
		t.Error("ack 5 with bits 0x3c names 3, 2, 1 and 0 only")
	}
	p.AckBase = AckMinusNMinusOne
	if !p.Names(Header{9, 5, 1}, 5) || !p.Names(Header{9, 5, 1}, 4) || p.Names(Header{9, 5, 1}, 3) {
		t.Error("ack-n-1: ack 5 with bits 1 names 5 and 4")
	}
}

func BenchmarkParse(b *testing.B) {
	for name, s := range map[string]string{
		Reliable: "3e 6400 01 35 fa 27 6e 01020304",
		Article:  "2c01 2801 8ffdfbcf 01020304", ArticleBE: "012c 0126 b5eee7f1 01020304",
	} {
		b.Run(name, func(b *testing.B) {
			p, bytes := profile(b, name), unhex(b, s)
			var pk Packet
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Parse(bytes, len(bytes), &pk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
