package tracker_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// conversation writes datagrams with the encoder.
type conversation struct {
	t     *testing.T
	codec wire.Codec
	at    machine.Instant
	out   []machine.Datagram
}

func (c *conversation) send(from machine.Side, m wire.Message, body ...byte) {
	c.t.Helper()
	b, err := c.codec.Append(nil, &m, body, len(body)*8)
	if err != nil {
		c.t.Fatal(err)
	}
	c.at = c.at.Add(10 * time.Millisecond)
	c.out = append(c.out, machine.Datagram{
		At: c.at, Ref: machine.MakeRef(0, uint64(len(c.out))+1), From: from, Bytes: b,
		Length: len(b),
	})
}

// both returns a configuration whose two ends use one codec.
func both(c wire.Codec) riptide.Config {
	s := riptide.Speaker{Codec: c, Builds: wire.BuildsOf(c.Dialect)}
	return riptide.Config{Senders: [2]riptide.Speaker{s, s}}
}

func run(c *conversation) (events []machine.Event, messages []machine.Message, tr machine.Tracker) {
	tr = tracker.New(both(c.codec), machine.Facts{Vantage: machine.VantageA})
	var out machine.Effects
	for i := range c.out {
		out.Reset()
		tr.Observe(&c.out[i], &out)
		events, messages = append(events, out.Events...), append(messages, out.Messages...)
	}
	out.Reset()
	tr.Finish(&out)
	return append(events, out.Events...), append(messages, out.Messages...), tr
}

func kinds(events []machine.Event, k machine.EventKind) (out []uint32) {
	for _, e := range events {
		if e.Kind == k {
			out = append(out, e.Sequence)
		}
	}
	return out
}

// TestCopiesAndAcks: a message that is lost once is sent again. A bit in the Ack of a later message
// names it, and its own Ack answers it.
func TestCopiesAndAcks(t *testing.T) {
	c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V21}}
	c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 65535, MessageID: 7}, 1)
	c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 0, MessageID: 7}, 2)
	c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 1, MessageID: 8}, 3)
	c.send(machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 2, Cause: 1}) // 1 and, by bit 1, 65535
	c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 0, MessageID: 7}, 2)
	c.send(machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 3, Flag: true, Cause: 0, HasCause: true})
	c.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 9}, 4)
	events, messages, tr := run(c)
	if got := kinds(events, machine.EventSent); len(got) != 3 || got[1] != 0 {
		t.Errorf("sent %v", got)
	}
	if got := kinds(events, machine.EventResent); len(got) != 1 || got[0] != 0 {
		t.Errorf("resent %v", got)
	}
	if got := kinds(events, machine.EventAcked); len(got) != 3 || got[0] != 1 || got[1] != 65535 || got[2] != 0 {
		t.Errorf("acked %v", got)
	}
	if len(messages) != 4 || messages[3].Mode != machine.ModeUnreliable || messages[3].ID != 9 {
		t.Fatalf("%+v", messages)
	}
	second := messages[1]
	if second.Attempts != 2 || second.Sequence64 != 65536 || second.Acked != machine.Yes ||
		second.Frames[1].Frame() != 5 || second.AckedBy.Frame() != 6 {
		t.Errorf("%+v", second)
	}
	if s := tr.Summary(machine.A); s.Packets != 5 || s.Acked != 3 || s.Resends != 1 || s.WireRTT <= 0 {
		t.Errorf("%+v", s)
	}
}

// TestSameIDTwice: two messages with one id stay two (Pytide 2.0.0, broadcasts of 2.1.0).
func TestSameIDTwice(t *testing.T) {
	c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V20}}
	for i := range byte(3) {
		c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 1, MessageID: 2}, i)
		c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 1, MessageID: 2}, i)
	}
	_, messages, _ := run(c)
	if len(messages) != 3 || messages[0].Attempts != 2 || messages[2].Attempts != 2 {
		t.Errorf("%+v", messages)
	}
}

// TestNotify: an id is acked if a header of the other side names it, and lost if not. The library
// settles each id when the header passes it.
func TestNotify(t *testing.T) {
	c := &conversation{t: t, codec: wire.Codec{Dialect: wire.DevN}}
	for i := range uint16(12) {
		c.send(machine.A, wire.Message{Type: wire.Notify, Sequence: i + 1}, 1)
	}
	c.send(machine.B, wire.Message{Type: wire.Notify, Sequence: 1, Last: 12, AckBits: 0x81}, 1) // 12, 11, 4
	events, messages, _ := run(c)
	if got := kinds(events, machine.EventAcked); len(got) != 3 {
		t.Errorf("acked %v", got)
	}
	if got := kinds(events, machine.EventLost); len(got) != 9 || got[2] != 3 || got[8] != 10 {
		t.Errorf("lost %v", got)
	}
	answers := map[machine.Answer]int{}
	for _, m := range messages {
		answers[m.Acked]++
	}
	if answers[machine.Yes] != 3 || answers[machine.No] != 9 || answers[machine.Unanswered] != 1 {
		t.Errorf("%v", answers)
	}
}

// TestNewSession: a Connect after the end opens another session.
func TestNewSession(t *testing.T) {
	c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V21}}
	c.send(machine.A, wire.Message{Type: wire.Connect})
	c.send(machine.A, wire.Message{Type: wire.Connect})
	c.send(machine.A, wire.Message{Type: wire.Disconnect})
	tr := tracker.New(both(c.codec), machine.Facts{})
	var out machine.Effects
	for i := range c.out {
		if tr.Observe(&c.out[i], &out); out.NewSession {
			t.Fatal("a repeated Connect is no new session")
		}
	}
	if tr.Observe(&c.out[0], &out); !out.NewSession || tr.Summary(machine.A).Packets != 3 {
		t.Error("a Connect after the end is one, and is not entered")
	}
}

// TestInspectOpening: the state of both sides can be drawn while the vantage is open. Drawing it
// changes nothing.
func TestInspectOpening(t *testing.T) {
	c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V21}}
	c.welcome()
	c.reliable(2, true)
	c.reliable(3, false)
	tr, plain := tracker.New(both(c.codec), machine.Facts{}), tracker.New(both(c.codec), machine.Facts{})
	var out, expected machine.Effects
	for i := range c.out {
		tr.Observe(&c.out[i], &out)
		plain.Observe(&c.out[i], &expected)
		var v machine.View
		tr.Inspect(machine.A, &v)
		if i < 4 {
			continue
		}
		if len(v.Windows) == 0 || v.Windows[0].Name != "reliable sent" || len(v.Tables) == 0 {
			t.Fatalf("after message %d: %+v", i, v)
		}
		for _, w := range v.Windows {
			if w.Grade == machine.Certain {
				t.Errorf("after message %d: %q is certain", i, w.Name)
			}
		}
	}
	tr.Finish(&out)
	plain.Finish(&expected)
	if len(out.Events) == 0 || !reflect.DeepEqual(out.Events, expected.Events) ||
		!reflect.DeepEqual(out.Messages, expected.Messages) {
		t.Errorf("%v\nexpected %v", out.Events, expected.Events)
	}
}

// TestBehind: a message behind a hole of its stream that is never filled has not reached its
// receiver. Neither have its acks.
func TestBehind(t *testing.T) {
	c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V21}}
	c.welcome()
	c.reliable(2, true)
	c.send(machine.B, wire.Message{Type: wire.Reliable, Sequence: 2, MessageID: 3}, 1)
	behind := len(c.out)
	c.send(machine.A, wire.Message{Type: wire.Ack, Last: 2, AckBits: 3, Cause: 2})
	c.reliable(3, false)
	c.send(machine.A, wire.Message{Type: wire.Notify, Sequence: 1}, 1)
	c.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 5}, 1)
	for _, hole := range []bool{false, true} {
		config := both(c.codec)
		config.Stream = true
		tr := tracker.New(config, machine.Facts{})
		var out machine.Effects
		for i, d := range c.out {
			d.Behind = hole && i >= behind
			tr.Observe(&d, &out)
		}
		tr.Finish(&out)
		told := 0
		for _, m := range out.Messages {
			switch late := m.At >= c.out[behind].At; {
			case late && m.Mode == machine.ModeReliable:
				told++
				if m.Delivered == machine.Yes {
					t.Errorf("hole %v: id %d is reported as delivered, and was never acked", hole, m.Sequence)
				}
			case late:
				told++
				if (m.Delivered == machine.Yes) == hole || hole && m.Certainty != machine.Unknown {
					t.Errorf("hole %v: a %v message is reported as %v, %v", hole, m.Mode, m.Delivered, m.Certainty)
				}
			case m.From == machine.B && m.Sequence == 2:
				told++
				if (m.Acked == machine.Yes) == hole {
					t.Errorf("hole %v: acked %v", hole, m.Acked)
				}
			}
		}
		if told != 4 {
			t.Errorf("hole %v: %d messages are reported", hole, told)
		}
	}
}

// TestTakenAgain: a message is certain to have been delivered once only if no other copy waits that
// the window would take again.
func TestTakenAgain(t *testing.T) {
	for _, jump := range []bool{false, true} {
		c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V20}}
		c.welcome()
		id := uint16(2)
		if jump {
			id = 100 // beyond 80 ids release 2.0.0 keeps nothing
		}
		c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, 1)
		if jump {
			c.send(machine.B, wire.Message{Type: wire.AckExtra, Last: 1, AckBits: 1, Cause: id, HasCause: true})
		} else {
			c.send(machine.B, wire.Message{Type: wire.Ack, Last: 2, AckBits: 3, Cause: 2})
		}
		c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, 1)
		tr := tracker.New(both(c.codec), machine.Facts{Vantage: machine.VantageB})
		var out machine.Effects
		for i := range c.out {
			tr.Observe(&c.out[i], &out)
		}
		tr.Finish(&out)
		for _, m := range out.Messages {
			if m.Mode == machine.ModeReliable &&
				(m.Delivered != machine.Yes || m.Deliveries != 1 || (m.Certainty == machine.Certain) == jump) {
				t.Errorf("id %d: %v, %d times, %v", m.Sequence, m.Delivered, m.Deliveries, m.Certainty)
			}
		}
	}
}

// TestBounded sends without end and without an ack: memory stays bounded.
func TestBounded(t *testing.T) {
	codec := wire.Codec{Dialect: wire.V21}
	tr := tracker.New(both(codec), machine.Facts{})
	var out machine.Effects
	told := 0
	for i := range 20_000 {
		m := wire.Message{Type: wire.Reliable, Sequence: uint16(i), MessageID: 1}
		b, err := codec.Append(nil, &m, []byte{byte(i)}, 8)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		tr.Observe(&machine.Datagram{At: machine.Instant(i), Bytes: b, Length: len(b)}, &out)
		told += len(out.Messages)
	}
	if told < 15_000 || tr.Size() > 4<<20 {
		t.Errorf("%d reported, %d bytes", told, tr.Size())
	}
}

// TestLaws checks the laws of every tracker.
func TestLaws(t *testing.T) {
	for _, d := range wire.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			c := &conversation{t: t, codec: wire.Codec{Dialect: d}}
			for i := range uint16(120) {
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: i + 1, MessageID: 3}, byte(i), 2)
				if i%7 == 3 {
					c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: i, MessageID: 3}, byte(i-1), 2)
				}
				if i%5 != 4 {
					c.send(machine.B, wire.Message{Type: wire.Ack, Last: i + 1, AckBits: 0xffff, Cause: i + 1})
				}
				if _, has := d.Value(wire.Notify); has {
					c.send(machine.B, wire.Message{Type: wire.Notify, Sequence: i + 1, Last: i, AckBits: 0xff}, 9)
				}
				c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 4}, byte(i))
			}
			config := both(c.codec)
			machinetest.Tracker(t, func() machine.Tracker { return tracker.New(config, machine.Facts{}) }, c.out)
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	codec := wire.Codec{Dialect: wire.V21}
	tr := tracker.New(both(codec), machine.Facts{})
	var out machine.Effects
	b.ReportAllocs()
	at := machine.Instant(0)
	for i := 0; b.Loop(); i++ {
		at = at.Add(10 * time.Millisecond)
		m := wire.Message{Type: wire.Reliable, Sequence: uint16(i), MessageID: 1}
		from := machine.A
		if i&1 == 1 {
			m, from = wire.Message{Type: wire.Ack, Last: uint16(i - 1), AckBits: 0xffff, Cause: uint16(i - 1)}, machine.B
		}
		var buf [16]byte
		p, _ := codec.Append(buf[:0], &m, nil, 0)
		out.Reset()
		tr.Observe(&machine.Datagram{At: at, From: from, Bytes: p, Length: len(p)}, &out)
	}
}
