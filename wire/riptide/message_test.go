package riptide

import (
	"bytes"
	"encoding/hex"
	"errors"
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

// examples are captured packets of the real library and of Pytide, with their documented readings.
// No published library writes the notes' form. Its examples are made by hand, one from every table
// of the document.
var examples = []struct {
	dialect *Dialect
	bytes   string
	want    Message // without Value and the body's place, which are checked apart
	body    int     // its first bit; -1 where the type has none
}{
	{V21, "02", Message{Type: Connect}, 4},
	{V21, "5210c6963656760000", Message{Type: Connect}, 4},
	{V21, "1800100000", Message{Type: Welcome, Sequence: 1, ClientID: 1}, -1},
	{V21, "2900200000", Message{Type: ClientConnected, Sequence: 2, ClientID: 2}, -1},
	{V21, "0a01200000", Message{Type: ClientDisconnected, Sequence: 16, ClientID: 2}, -1},
	{V21, "11001000200000", Message{Type: Ack, Last: 1, AckBits: 1, Cause: 1, HasCause: true, Oddities: UnreadCause}, -1},
	{V21, "21003000300000", Message{Type: Ack, Last: 2, AckBits: 3, Flag: true, Cause: 1, HasCause: true}, -1},
	{V21, "1100100000", Message{Type: Ack, Last: 1, AckBits: 1, Cause: 1}, -1},
	{
		V21, "f10900f8ef1300",
		Message{Type: Ack, Last: 159, AckBits: 0xff80, Cause: 159, HasCause: true, Oddities: UnreadCause},
		-1,
	},
	{V21, "11080004500f00", Message{Type: Ack, Last: 129, AckBits: 0x40, Flag: true, Cause: 122, HasCause: true}, -1},
	{V21, "04f0ff0f", Message{Type: Heartbeat, Ping: 0, RTT: -1, HasRTT: true}, -1},
	{V21, "14100200", Message{Type: Heartbeat, Ping: 1, RTT: 33, HasRTT: true}, -1},
	{V21, "1400", Message{Type: Heartbeat, Ping: 1}, -1},
	{V21, "2300", Message{Type: Reject, Reason: 2, HasReason: true}, 12},
	{V21, "43d07027f7e6760662572637 97f6e666fdffff0f", Message{Type: Reject, Reason: 4, HasReason: true}, 12},
	{
		V21, "4520b19636b6564606 62f626074257364797e67676682d0100",
		Message{Type: Disconnect, Reason: 4, HasReason: true},
		12,
	},
	{V21, "05", Message{Type: Disconnect}, 4},
	{V21, "0505", Message{Type: Disconnect, Reason: 80, HasReason: true}, 12},
	{V21, "5500", Message{Type: Disconnect, Reason: 5, HasReason: true}, 12},
	{V21, "1000", Message{Type: Unreliable, MessageID: 1}, 12},
	{V21, "37001000", Message{Type: Reliable, Sequence: 3, MessageID: 1}, 28},
	{V21, "f001", Message{Type: Unreliable, MessageID: 31}, 12},
	{V21, "0702001810610f", Message{Type: Reliable, Sequence: 32, MessageID: 128}, 36},
	{V21, "270200081820b50d", Message{Type: Reliable, Sequence: 34, MessageID: 16384}, 44},
	{V21, "3702008c2b701057", Message{Type: Reliable, Sequence: 35, MessageID: 40000}, 44},
	{V21, "060000100000", Message{Type: Notify, Sequence: 1}, 44},
	{V21, "260030300000", Message{Type: Notify, Last: 2, AckBits: 3, Sequence: 3}, 44},
	{V21, "2800100000", Message{Type: Welcome, Sequence: 2, ClientID: 1}, -1},
	{V21, "a105000000", Message{Type: Ack, Last: 90, Cause: 90}, -1},
	{V21, "14e00100", Message{Type: Heartbeat, Ping: 1, RTT: 30, HasRTT: true}, -1},

	{V20, "0305616c6963650700", Message{Type: Connect}, 8},
	{V20, "0801000100", Message{Type: Welcome, Sequence: 1, ClientID: 1}, -1},
	{V20, "0500ffff", Message{Type: Heartbeat, RTT: -1, HasRTT: true}, -1},
	{V20, "0501", Message{Type: Heartbeat, Ping: 1}, -1},
	{V20, "0102000300", Message{Type: Ack, Last: 2, AckBits: 3, Cause: 2}, -1},
	{V20, "022c00ffff2b00", Message{Type: AckExtra, Last: 44, AckBits: 0xffff, Cause: 43, HasCause: true}, -1},
	{V20, "0403", Message{Type: Reject, Reason: 3, HasReason: true}, 16},
	{V20, "04050d77726f6e67", Message{Type: Reject, Reason: 5, HasReason: true}, 16},
	{V20, "0604126b", Message{Type: Disconnect, Reason: 4, HasReason: true}, 16},
	{V20, "06", Message{Type: Disconnect}, 8},
	{V20, "0605", Message{Type: Disconnect, Reason: 5, HasReason: true}, 16},
	{V20, "0704000200", Message{Type: Reliable, Sequence: 4, MessageID: 2}, 40},
	{V20, "0901000200", Message{Type: ClientConnected, Sequence: 1, ClientID: 2}, -1},
	{V20, "0a01000200", Message{Type: ClientDisconnected, Sequence: 1, ClientID: 2}, -1},

	{DevN, "0801000100", Message{Type: Welcome, Sequence: 1, ClientID: 1}, -1},
	{DevD, "0701000100", Message{Type: Welcome, Sequence: 1, ClientID: 1}, -1},
	{DevD, "0602000000 80", Message{Type: Reliable, Sequence: 2, MessageID: 0}, 40},
	{DevN, "0101000100", Message{Type: Ack, Last: 1, AckBits: 1, Cause: 1}, -1},
	{DevN, "01030007000200", Message{Type: Ack, Last: 3, AckBits: 7, Cause: 2, HasCause: true}, -1},
	{DevD, "01aa00ffff", Message{Type: Ack, Last: 170, AckBits: 0xffff, Cause: 170}, -1},
	{DevN, "0400ffff", Message{Type: Heartbeat, RTT: -1, HasRTT: true}, -1},
	{DevN, "0902000200", Message{Type: ClientConnected, Sequence: 2, ClientID: 2}, -1},
	{DevD, "0802000200", Message{Type: ClientConnected, Sequence: 2, ClientID: 2}, -1},
	{DevD, "0903000200", Message{Type: ClientDisconnected, Sequence: 3, ClientID: 2}, -1},
	{DevN, "0302", Message{Type: Reject, Reason: 2, HasReason: true}, 16},
	{DevN, "0505", Message{Type: Disconnect, Reason: 5, HasReason: true}, 16},
	{DevN, "000100", Message{Type: Unreliable, MessageID: 1}, 24},
	{DevN, "072100409c09e697a5", Message{Type: Reliable, Sequence: 33, MessageID: 40000}, 40},
	{DevN, "06000000010001", Message{Type: Notify, Sequence: 1}, 48},
	{DevN, "0607007d0900", Message{Type: Notify, Last: 7, AckBits: 0x7d, Sequence: 9}, 48},

	// The tables of messages in "Riptide Networking Notes", chapter 1, in order.
	{Notes, "00 2a01 05", Message{Type: Unreliable, MessageID: 298}, 24},
	{Notes, "01 0900 ff01", Message{Type: Ack, Last: 9, AckBits: 0x1ff, Cause: 9, Unnamed: true}, -1},
	{
		Notes, "01 0900 ff01 0700",
		Message{Type: Ack, Last: 9, AckBits: 0x1ff, Cause: 7, HasCause: true, Oddities: NotesCause},
		-1,
	},
	{Notes, "02", Message{Type: Connect}, 8},
	{Notes, "02 05616c696365", Message{Type: Connect}, 8},
	{Notes, "03 02", Message{Type: Reject, Reason: 2, HasReason: true}, 16},
	{Notes, "03 05 026e6f", Message{Type: Reject, Reason: 5, HasReason: true}, 16},
	{Notes, "04 07 ffff", Message{Type: Heartbeat, Ping: 7, RTT: -1, HasRTT: true}, -1},
	{Notes, "05 04 0362796 5", Message{Type: Disconnect, Reason: 4, HasReason: true}, 16},
	{Notes, "06 0300", Message{Type: Notify, MessageID: 3, Bare: true}, 24},
	{Notes, "06 0300 01020304", Message{Type: Notify, MessageID: 3, Bare: true}, 24},
	{Notes, "07 0300 0100 ff", Message{Type: Reliable, Sequence: 3, MessageID: 1}, 40},
	{Notes, "08 0100 0100", Message{Type: Welcome, Sequence: 1, ClientID: 1}, -1},
	{Notes, "09 0200 0200", Message{Type: ClientConnected, Sequence: 2, ClientID: 2}, -1},
	{Notes, "0a 0300 0200", Message{Type: ClientDisconnected, Sequence: 3, ClientID: 2}, -1},
}

func TestParseExamples(t *testing.T) {
	for _, e := range examples {
		b := unhex(t, e.bytes)
		var m Message
		if err := (Codec{Dialect: e.dialect}).Parse(b, len(b), &m); err != nil {
			t.Errorf("%s %s: %v", e.dialect.Name, e.bytes, err)
			continue
		}
		if value, _ := e.dialect.Value(e.want.Type); m.Value != value {
			t.Errorf("%s %s: type value %d, want %d", e.dialect.Name, e.bytes, m.Value, value)
		}
		if e.body >= 0 && (m.BodyBit != e.body || m.BodyBits != len(b)*8-e.body) || e.body < 0 && m.BodyBits != 0 {
			t.Errorf("%s %s: body of %d bits at %d, want it at %d", e.dialect.Name, e.bytes, m.BodyBits, m.BodyBit, e.body)
		}
		m.Value, m.BodyBit, m.BodyBits = 0, 0, 0
		if m != e.want {
			t.Errorf("%s %s:\n got %+v\nwant %+v", e.dialect.Name, e.bytes, m, e.want)
		}
	}
}

// TestAppendExamples writes every example again from its reading.
func TestAppendExamples(t *testing.T) {
	for _, e := range examples {
		b := unhex(t, e.bytes)
		c := Codec{Dialect: e.dialect}
		m := e.want
		if m.Type == Notify && e.dialect == Notes && m.MessageID == 0 {
			c.NotifyHeader = true
		}
		body, n := cut(b, e.body)
		got, err := c.Append([]byte("before"), &m, body, n)
		if err != nil {
			t.Errorf("%s %s: %v", e.dialect.Name, e.bytes, err)
			continue
		}
		if !bytes.Equal(got[len("before"):], b) {
			t.Errorf("%s %s: wrote %x", e.dialect.Name, e.bytes, got[len("before"):])
		}
	}
}

// cut returns the bits of b from bit at on, shifted to the front.
func cut(b []byte, at int) (body []byte, n int) {
	if at < 0 {
		return nil, 0
	}
	n = len(b)*8 - at
	body = make([]byte, (n+7)/8)
	for i := range n {
		body[i/8] |= b[(at+i)/8] >> ((at + i) % 8) & 1 << (i % 8)
	}
	return body, n
}

func TestParseRefuses(t *testing.T) {
	for _, e := range []struct {
		dialect *Dialect
		bytes   string
		kind    error
		field   string
		words   string
	}{
		{V21, "", wire.ErrShort, "type", "type at byte 0"},
		{V21, "0b", wire.ErrRange, "type", "expected 0 to 10, found 11"},
		{V20, "0b", wire.ErrRange, "type", "expected 0 to 10, found 11"},
		{DevD, "0a01000100", wire.ErrRange, "type", "expected 0 to 9, found 10"},
		{V20, "0701", wire.ErrShort, "sequence", "sequence at byte 1"},
		{V21, "3700", wire.ErrShort, "sequence", "sequence at byte 0 bit 4"},
		{V21, "370000", wire.ErrShort, "message_id", "message_id at byte 2 bit 4"},
		{V21, "f0ffff3f00", wire.ErrRange, "message_id", "at most 65535"},
		{V21, "f0ffffffff", wire.ErrRange, "message_id", "at most 65535"},
		{V21, "110010001000"[:10], wire.ErrShort, "ack_cause", "16 bits, as the flag"},
		{V21, "141002", wire.ErrTrailing, "Heartbeat", "expected 2 bytes, found 3"},
		{V21, "180010000000", wire.ErrTrailing, "Welcome", "expected 5 bytes, found 6"},
		{V20, "080100010000", wire.ErrTrailing, "Welcome", "expected 5 bytes, found 6"},
		{V20, "022c00ffff", wire.ErrShort, "ack_cause", "ack_cause at byte 5"},
	} {
		b := unhex(t, e.bytes)
		var m Message
		err := Codec{Dialect: e.dialect}.Parse(b, len(b), &m)
		var p *wire.ParseError
		if !errors.As(err, &p) || !errors.Is(err, e.kind) || p.Field != e.field || !strings.Contains(err.Error(), e.words) {
			t.Errorf("%s %s: %v; want %v of %s saying %q", e.dialect.Name, e.bytes, err, e.kind, e.field, e.words)
		}
	}
}

// TestBigEndian: on hosts with the other byte order, each number of more than one byte is reversed,
// as the notes say.
func TestBigEndian(t *testing.T) {
	c := Codec{Dialect: DevN, BigEndian: true}
	for s, want := range map[string]Message{
		"0700210102":   {Type: Reliable, Sequence: 33, MessageID: 258},
		"0100030007":   {Type: Ack, Last: 3, AckBits: 7, Cause: 3},
		"0401001f":     {Type: Heartbeat, Ping: 1, RTT: 31, HasRTT: true},
		"0600077d0009": {Type: Notify, Last: 7, AckBits: 0x7d, Sequence: 9},
	} {
		b := unhex(t, s)
		var m Message
		if err := c.Parse(b, len(b), &m); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		out, err := c.Append(nil, &m, nil, 0)
		if err != nil || !bytes.Equal(out, b) {
			t.Errorf("%s: written again as %x, %v", s, out, err)
		}
		m.Value, m.BodyBit, m.BodyBits = 0, 0, 0
		if m != want {
			t.Errorf("%s: got %+v, want %+v", s, m, want)
		}
	}
	if got, _ := c.AppendFrame(nil, 4, 9); !bytes.Equal(got, []byte{0, 0, 0, 9}) {
		t.Errorf("prefix %x", got)
	}
	packed := Codec{Dialect: V21, BigEndian: true}
	var m Message
	if err := packed.Parse(unhex(t, "1800100000"), 5, &m); err != nil || m.Sequence != 1 {
		t.Errorf("bit-packed messages do not depend on the byte order: %+v, %v", m, err)
	}
}

func TestNotesNotifyHeader(t *testing.T) {
	c := Codec{Dialect: Notes, NotifyHeader: true}
	var m Message
	b := unhex(t, "0607007d0900aabb")
	if err := c.Parse(b, len(b), &m); err != nil || m.Last != 7 || m.AckBits != 0x7d || m.Sequence != 9 ||
		m.BodyBit != 48 || m.Oddities != NotesHeader {
		t.Errorf("with the library's header: %+v, %v", m, err)
	}
	b = unhex(t, "060300ff")
	if err := c.Parse(b, len(b), &m); err != nil || m.MessageID != 3 || m.BodyBit != 24 || m.Oddities != 0 {
		t.Errorf("too short for the library's header: %+v, %v", m, err)
	}
}

// TestSnapped parses what a snap length left: the header is whole, the body is not.
func TestSnapped(t *testing.T) {
	var m Message
	c := Codec{Dialect: V21}
	if err := c.Parse(unhex(t, "37001000"), 100, &m); err != nil || m.BodyBits != 800-28 {
		t.Errorf("%+v, %v", m, err)
	}
	// By its length on the wire the message has a cause; the capture ends before it.
	if err := c.Parse(unhex(t, "2100300030"), 7, &m); !errors.Is(err, wire.ErrSnapped) {
		t.Errorf("an Ack cut before its cause: %+v, %v", m, err)
	}
}

func TestOddities(t *testing.T) {
	for s, want := range map[string]Oddity{
		"18001000f0": Padding,       // high 4 bits of the last byte
		"100800":     LongID,        // id 1 in two groups: 81 00 from bit 4
		"9300":       UnknownReason, // reject reason 9
		"23000000":   DataUnasked,   // server full, with data
	} {
		b := unhex(t, s)
		var m Message
		if err := (Codec{Dialect: V21}).Parse(b, len(b), &m); err != nil || m.Oddities != want {
			t.Errorf("%s: %+v, %v; want oddities %b", s, m, err, want)
		}
	}
}

func TestWalkCoversTheHeader(t *testing.T) {
	for _, e := range examples {
		b := unhex(t, e.bytes)
		c := Codec{Dialect: e.dialect}
		var m Message
		if err := c.Parse(b, len(b), &m); err != nil {
			t.Fatal(err)
		}
		at := 0
		var word uint64
		c.Walk(b, len(b), func(f Field, bit, width int, value uint64) {
			if bit != at {
				t.Errorf("%s %s: %s at bit %d, want %d", e.dialect.Name, e.bytes, f, bit, at)
			}
			if f == FieldMessageID && e.dialect == V21 {
				value, _ = appendID(uint16(value))
			}
			word |= value << bit
			at += width
		})
		if at != m.BodyBit || word != load(b)&(1<<at-1) {
			t.Errorf("%s %s: fields cover %d bits as %x, the body begins at %d", e.dialect.Name, e.bytes, at, word, m.BodyBit)
		}
	}
}

func TestDialectTables(t *testing.T) {
	for _, d := range Dialects {
		seen := map[Type]bool{}
		for v := range uint8(16) {
			typ, ok := d.TypeOf(v)
			if !ok {
				continue
			}
			if seen[typ] {
				t.Errorf("%s: two values for %s", d.Name, typ)
			}
			seen[typ] = true
			if back, ok := d.Value(typ); !ok || back != v {
				t.Errorf("%s: %s is %d, then %d", d.Name, typ, v, back)
			}
			if d.Layout(typ) == nil {
				t.Errorf("%s: no layout for %s", d.Name, typ)
			}
		}
		if got, ok := Lookup(d.Name); !ok || got != d {
			t.Errorf("%s is not found by its name", d.Name)
		}
		if BuildsOf(d) == 0 {
			t.Errorf("%s: nothing speaks it", d.Name)
		}
	}
	for dialect, reasons := range map[*Dialect][]string{
		Notes: {"NoConnection", "AlreadyConnected", "Pending", "ServerFull", "Rejected", "Custom", ""},
		V20:   {"NoConnection", "AlreadyConnected", "Pending", "ServerFull", "Rejected", "Custom", ""},
		V21:   {"NoConnection", "AlreadyConnected", "ServerFull", "Rejected", "Custom", ""},
		DevN:  {"NoConnection", "AlreadyConnected", "ServerFull", "Rejected", "Custom", ""},
		DevD:  {"NoConnection", "AlreadyConnected", "ServerFull", "Rejected", "Custom", ""},
	} {
		for i, want := range reasons {
			if got := dialect.RejectReason(uint8(i)); got != want {
				t.Errorf("%s: reject reason %d is %q, want %q", dialect.Name, i, got, want)
			}
		}
	}
	if V21.DisconnectReason(80) == "" || V20.DisconnectReason(80) != "" || V21.DisconnectReason(7) != "PoorConnection" ||
		V20.DisconnectReason(7) != "" {
		t.Error("disconnect reasons 80 and 7")
	}
}

func TestBuildSet(t *testing.T) {
	for want, keep := range map[string]func(*Build) bool{
		"2.1.0-2.1.2":                     func(b *Build) bool { return b.Dialect == V21 && b.Cause == CauseAlways },
		"2.2.0-2.2.1, pytide-2.1.0-alpha": func(b *Build) bool { return b.Dialect == V21 && b.Cause == CauseIfOther },
		"2.0.0, pytide-2.0.0":             func(b *Build) bool { return b.Dialect == V20 },
		"2.2.1":                           func(b *Build) bool { return b.Name == "2.2.1" },
		"":                                func(b *Build) bool { return false },
	} {
		if got := Matching(keep).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzMessage checks two laws. Reading fails only by an error. A message read without oddity is
// written again byte for byte.
func FuzzMessage(f *testing.F) {
	for _, e := range examples {
		for i, d := range Dialects {
			if d == e.dialect {
				f.Add(unhex(f, e.bytes), uint8(i), false)
				f.Add(unhex(f, e.bytes), uint8(i), true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, which uint8, other bool) {
		c := Codec{Dialect: Dialects[int(which)%len(Dialects)], BigEndian: other, NotifyHeader: other}
		var m Message
		err := c.Parse(b, len(b), &m)
		if fits := c.Fits(b, len(b), &Message{}); fits != (err == nil) {
			t.Fatalf("Fits %v, Parse %v", fits, err)
		}
		c.Walk(b, len(b), func(Field, int, int, uint64) {})
		if err != nil {
			var p *wire.ParseError
			if !errors.As(err, &p) || p.Error() == "" {
				t.Fatalf("not a ParseError: %v", err)
			}
			return
		}
		if m.Oddities&(LongID|Padding) != 0 {
			return
		}
		if c.Dialect == Notes && m.Type == Notify {
			c.NotifyHeader = m.Oddities&NotesHeader != 0
		}
		at := m.BodyBit
		if m.BodyBits == 0 {
			at = -1
		}
		body, n := cut(b, at)
		out, err := c.Append(nil, &m, body, n)
		if err != nil || !bytes.Equal(out, b) {
			t.Fatalf("%s: %x written again as %x: %v\n%+v", c.Dialect.Name, b, out, err, m)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	c := Codec{Dialect: V21}
	packets := [][]byte{
		unhex(b, "3702008c2b701057"), unhex(b, "21003000300000"), unhex(b, "14100200"),
		unhex(b, "260030300000"),
	}
	var m Message
	for i := 0; b.Loop(); i++ {
		p := packets[i&3]
		if err := c.Parse(p, len(p), &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFitsForeign(b *testing.B) {
	b.ReportAllocs()
	c := Codec{Dialect: V21}
	p := unhex(b, "141002aabbccdd")
	var m Message
	for b.Loop() {
		if c.Fits(p, len(p), &m) {
			b.Fatal("fits")
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	c := Codec{Dialect: V21}
	m := Message{Type: Reliable, Sequence: 4711, MessageID: 300}
	body := make([]byte, 100)
	var dst []byte
	for b.Loop() {
		var err error
		if dst, err = c.Append(dst[:0], &m, body, len(body)*8); err != nil {
			b.Fatal(err)
		}
	}
}
