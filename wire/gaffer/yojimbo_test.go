package gaffer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// widths is bodies with a fixed width for each type.
type widths []int

func (b widths) Skip(kind uint32, r *bits.Reader) error {
	for n := b[kind]; n > 0; n -= 64 {
		if _, ok := r.Bits(min(n, 64)); !ok {
			return &wire.ParseError{Field: "body", Bit: r.Pos(), Err: wire.ErrShort}
		}
	}
	return nil
}

// defaultYojimbo returns the library's defaults for that many channels, all
// reliable-ordered.
func defaultYojimbo(channels, messageTypes int) *Yojimbo {
	return &Yojimbo{Channels: make([]YojimboChannel, channels), MessageTypes: messageTypes}
}

func validYojimbo(t testing.TB, y *Yojimbo) *Yojimbo {
	t.Helper()
	if err := y.Validate(); err != nil {
		t.Fatal(err)
	}
	return y
}

// TestConnectionPacketWorked parses the first payload that the server of yojimbo-clean
// sent. It has 24 bytes: 32 bits, then a body of 160 bits.
func TestConnectionPacketWorked(t *testing.T) {
	y := defaultYojimbo(2, 5)
	y.Channels[1].Type, y.Bodies = UnreliableUnordered, widths{55, 0, 160, 16, 0}
	validYojimbo(t, y)
	b := append([]byte{0x11, 0x00, 0x00, 0x40}, bytes.Repeat([]byte{0xa5}, 20)...)
	var p ConnectionPacket
	if err := y.Parse(b, &p); err != nil {
		t.Fatal(err)
	}
	want := ConnectionPacket{
		Entries:  []ChannelEntry{{Channel: 0, Bit: 2, First: 0, Count: 1}},
		Messages: []ConnectionMessage{{ID: 0, Type: 2, Bit: 29, Body: 32, End: 192, Read: true}},
		End:      192,
	}
	p.r = bits.Reader{}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("read\n%+v, expected\n%+v", p, want)
	}
	if got := y.Append(nil, &p, b); !bytes.Equal(got, b) {
		t.Errorf("appending gives % x", got)
	}
	if err := y.Parse([]byte{0}, &p); err != nil || len(p.Entries) != 0 {
		t.Errorf("the empty packet: %v, %d entries", err, len(p.Entries))
	}
	y.Bodies = nil
	if err := y.Parse(b, &p); !errors.Is(err, ErrOpaque) || p.Messages[0].ID != 0 || p.Messages[0].Type != 2 ||
		p.Messages[0].Read {
		t.Errorf("without bodies: %v %+v", err, p)
	}
}

// TestRelativeIDs checks ids by hand: both ends of each step, and the wrap.
func TestRelativeIDs(t *testing.T) {
	for _, c := range []struct {
		before, id uint16
		bits       string // in the order in which they are written
	}{
		{5, 6, "1"},
		{5, 7, "01 000"},
		{5, 11, "01 001"},
		{5, 12, "001 00000"},
		{5, 28, "001 00001"},
		{5, 29, "0001 000000000"},
		{5, 285, "0001 000000001"},
		{5, 286, "00001 0000000000000"},
		{65535, 0, "1"},
		{65534, 1, "01 100"},
	} {
		y := validYojimbo(t, &Yojimbo{Channels: []YojimboChannel{{}}, MessageTypes: 1, Bodies: widths{0}})
		p := ConnectionPacket{
			Entries:  []ChannelEntry{{Count: 2}},
			Messages: []ConnectionMessage{{ID: c.before}, {ID: c.id}},
		}
		b := y.Append(nil, &p, nil)
		var text strings.Builder
		for i := range len(b) * 8 {
			fmt.Fprint(&text, b[i/8]>>(i%8)&1)
		}
		// entries 1, block 1, has 1, count 8, id 16: the second id begins at bit 27
		want := strings.ReplaceAll(c.bits, " ", "")
		if got := text.String()[27 : 27+len(want)]; !sameLadder(got, want) {
			t.Errorf("%d after %d is written %s, expected %s", c.id, c.before, got, want)
		}
		var back ConnectionPacket
		if err := y.Parse(b, &back); err != nil || back.Messages[1].ID != c.id {
			t.Errorf("%d after %d reads back as %+v, %v", c.id, c.before, back.Messages, err)
		}
	}
}

// sameLadder compares the flags of the steps. Reading back compares the offsets.
func sameLadder(got, want string) bool {
	n := strings.IndexByte(want, '1') + 1
	return len(got) == len(want) && got[:n] == want[:n]
}

// TestRelativeIDsAll: every distance between two ids reads back, in a sample of pairs.
func TestRelativeIDsAll(t *testing.T) {
	y := validYojimbo(t, &Yojimbo{Channels: []YojimboChannel{{}}, MessageTypes: 1, Bodies: widths{0}})
	var back ConnectionPacket
	for step := 1; step <= 65535; step++ {
		before := uint16(step * 40503)
		p := ConnectionPacket{
			Entries:  []ChannelEntry{{Count: 2}},
			Messages: []ConnectionMessage{{ID: before}, {ID: before + uint16(step)}},
		}
		if err := y.Parse(y.Append(nil, &p, nil), &back); err != nil || back.Messages[1].ID != before+uint16(step) {
			t.Fatalf("a step of %d from %d reads back as %+v, %v", step, before, back.Messages, err)
		}
	}
}

// randomPacket returns a packet that y could send. Its bodies are in source.
func randomPacket(r *rand.Rand, y *Yojimbo, w widths, source []byte) *ConnectionPacket {
	p := &ConnectionPacket{}
	body := func(kind uint32) (int, int) {
		at := r.IntN(64)
		return at, at + w[kind]
	}
	for channel := range y.Channels {
		c := &y.Channels[channel]
		if r.IntN(4) == 0 {
			continue
		}
		e := ChannelEntry{Channel: channel, First: len(p.Messages)}
		if c.Type == ReliableOrdered && r.IntN(3) == 0 && !c.DisableBlocks {
			f := &e.Fragment
			e.Block = true
			f.ID, f.Count = uint16(r.Uint32()), 1+r.IntN(c.MaxFragments())
			f.Index, f.Size, f.Offset = r.IntN(f.Count), 1+r.IntN(c.BlockFragmentSize), r.IntN(64)
			if f.Index == 0 {
				f.Type = uint32(r.IntN(y.MessageTypes))
				f.Body, f.End = body(f.Type)
			}
		} else {
			e.Count = r.IntN(min(c.MaxMessages, 9) + 1)
			id := uint16(r.Uint32())
			for range e.Count {
				m := ConnectionMessage{Type: uint32(r.IntN(y.MessageTypes))}
				m.Body, m.End = body(m.Type)
				if c.Type == ReliableOrdered {
					m.ID = id
					id += 1 + uint16(r.ExpFloat64()*300)
				} else if y.CarriesBlock(m.Type) {
					m.BlockLen, m.BlockOffset = 1+r.IntN(min(c.MaxBlockSize, 3000)), r.IntN(64)
				}
				p.Messages = append(p.Messages, m)
			}
		}
		p.Entries = append(p.Entries, e)
	}
	return p
}

// TestConnectionPacketRoundTrip: what is appended reads back the same, with
// configurations of every shape. A shorter or longer packet is refused.
func TestConnectionPacketRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 19))
	source := make([]byte, 8192)
	for i := range source {
		source[i] = byte(r.Uint32())
	}
	for range 3000 {
		w := make(widths, 1+r.IntN(9))
		for i := range w {
			w[i] = r.IntN(200)
		}
		y := &Yojimbo{Channels: make([]YojimboChannel, 1+r.IntN(5)), MessageTypes: len(w), Bodies: w, BlockTypes: []uint32{0}}
		for i := range y.Channels {
			y.Channels[i] = YojimboChannel{
				Type: ChannelType(r.IntN(2)), DisableBlocks: r.IntN(4) == 0, MaxMessages: 1 + r.IntN(256),
				BlockFragmentSize: 1 + r.IntN(1024), MaxBlockSize: 1 + r.IntN(40000),
			}
		}
		validYojimbo(t, y)
		p := randomPacket(r, y, w, source)
		b := y.Append(nil, p, source)
		var got ConnectionPacket
		if err := y.Parse(b, &got); err != nil {
			t.Fatalf("%+v\nof %+v: %v", p, y, err)
		}
		if len(got.Entries) != len(p.Entries) || len(got.Messages) != len(p.Messages) {
			t.Fatalf("%+v reads back as %+v", p, got)
		}
		if again := y.Append(nil, &got, b); !bytes.Equal(again, b) {
			t.Fatalf("%s\nreads and appends as\n%s", hex.EncodeToString(b), hex.EncodeToString(again))
		}
		for i := range p.Messages {
			if m, n := p.Messages[i], got.Messages[i]; m.ID != n.ID || m.Type != n.Type || m.BlockLen != n.BlockLen ||
				!bytes.Equal(source[m.BlockOffset:m.BlockOffset+m.BlockLen], b[n.BlockOffset:n.BlockOffset+n.BlockLen]) {
				t.Fatalf("message %+v reads back as %+v", m, n)
			}
		}
		for i := range p.Entries {
			if e, g := &p.Entries[i], &got.Entries[i]; e.Channel != g.Channel || e.Block != g.Block ||
				e.Fragment.ID != g.Fragment.ID || e.Fragment.Index != g.Fragment.Index || e.Fragment.Count != g.Fragment.Count ||
				e.Fragment.Size != g.Fragment.Size {
				t.Fatalf("entry %+v reads back as %+v", e, g)
			}
		}
		if err := y.Parse(append(b, 0), &got); !errors.Is(err, wire.ErrTrailing) {
			t.Fatalf("one byte more: %v", err)
		}
		if err := y.Parse(b[:len(b)-1], &got); err == nil {
			t.Fatal("one byte less is taken for a packet")
		}
	}
}

func TestYojimboValidate(t *testing.T) {
	for _, c := range []struct {
		y    Yojimbo
		want string
	}{
		{Yojimbo{MessageTypes: 1}, "channels: expected 1 to 64, found 0"},
		{Yojimbo{Channels: make([]YojimboChannel, 1)}, "message_types"},
		{
			Yojimbo{Channels: make([]YojimboChannel, 1), MessageTypes: 2, BlockTypes: []uint32{2}},
			"block_types: expected types below 2, found 2",
		},
		{Yojimbo{Channels: []YojimboChannel{{}, {MaxMessages: -1}}, MessageTypes: 1}, "channels[1].max_messages_per_packet"},
		{
			Yojimbo{Channels: []YojimboChannel{{MaxBlockSize: 1 << 20, BlockFragmentSize: 1}}, MessageTypes: 1},
			"channels[0].max_block_size",
		},
	} {
		if err := c.y.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected %q", c.y, err, c.want)
		}
	}
	y := validYojimbo(t, defaultYojimbo(1, 1))
	if c := y.Channels[0]; c.MaxMessages != 256 || c.MaxBlockSize != 262144 || c.BlockFragmentSize != 1024 ||
		c.MaxFragments() != 256 || c.ResendTime != 0.1 || c.BlockResendTime != 0.25 {
		t.Errorf("defaults are %+v", c)
	}
	var p ConnectionPacket
	if err := (&Yojimbo{}).Parse(nil, &p); err == nil {
		t.Error("a configuration that was not validated parses")
	}
}

func FuzzConnectionPacket(f *testing.F) {
	w := widths{55, 0, 160, 16, 1}
	y := defaultYojimbo(2, 5)
	y.Channels[1].Type, y.Bodies, y.BlockTypes = UnreliableUnordered, w, []uint32{3}
	validYojimbo(f, y)
	r := rand.New(rand.NewPCG(1, 2))
	source := make([]byte, 8192)
	for range 20 {
		f.Add(y.Append(nil, randomPacket(r, y, w, source), source))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q ConnectionPacket
		if err := y.Parse(b, &p); err != nil {
			var pe *wire.ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("error %v is no ParseError", err)
			}
			return
		}
		again := y.Append(nil, &p, b)
		if err := y.Parse(again, &q); err != nil || len(q.Messages) != len(p.Messages) {
			t.Fatalf("%x appends as %x: %v", b, again, err)
		}
	})
}

func BenchmarkConnectionPacket(b *testing.B) {
	w := widths{55, 0, 160, 16, 1}
	y := defaultYojimbo(2, 5)
	y.Channels[1].Type, y.Bodies, y.BlockTypes = UnreliableUnordered, w, []uint32{3}
	validYojimbo(b, y)
	r := rand.New(rand.NewPCG(1, 2))
	source := make([]byte, 8192)
	var data []byte
	for len(data) < 100 {
		data = y.Append(nil, randomPacket(r, y, w, source), source)
	}
	var p ConnectionPacket
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := y.Parse(data, &p); err != nil {
			b.Fatal(err)
		}
	}
}
