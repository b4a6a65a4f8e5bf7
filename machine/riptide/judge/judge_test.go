package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// talk is a conversation in dialect 2.1 that a judge hears. A is the client.
type talk struct {
	t     *testing.T
	judge *Judge
	codec wire.Codec
	at    machine.Instant
	frame uint64
}

func newTalk(t *testing.T, v machine.Vantage, behaviour string) *talk {
	t.Helper()
	c := &talk{t: t, codec: wire.Codec{Dialect: wire.V21}, at: machine.Instant(time.Hour)}
	speaker := riptide.Speaker{Codec: c.codec, Builds: wire.BuildsOf(wire.V21)}
	j, err := New(riptide.Config{Senders: [2]riptide.Speaker{speaker, speaker}}, machine.Facts{Vantage: v},
		[2]string{behaviour, behaviour})
	if err != nil {
		t.Fatal(err)
	}
	c.judge = j
	return c
}

// say sends a message some time after the one before.
func (c *talk) say(after time.Duration, from machine.Side, m wire.Message) {
	c.t.Helper()
	if m.Type == wire.Ack {
		m.Flag, m.HasCause = m.Cause != m.Last, m.Cause != m.Last
	}
	b, err := c.codec.Append(nil, &m, nil, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	c.at = c.at.Add(after)
	c.frame++
	c.judge.Observe(&machine.Datagram{At: c.at, Ref: machine.MakeRef(0, c.frame), From: from, Bytes: b, Length: len(b)})
}

// opens lets A connect, with an RTT of 20 ms.
func (c *talk) opens(first uint16) {
	c.say(0, machine.A, wire.Message{Type: wire.Connect})
	c.say(10*time.Millisecond, machine.B, wire.Message{Type: wire.Welcome, Sequence: first, ClientID: 1})
}

// found returns what the judge found of a side, and expects that no more is undecided than was compared.
func (c *talk) found(x machine.Side) *machine.Divergence {
	c.t.Helper()
	c.judge.Finish()
	o := c.judge.Opinion(x)
	if o.Undecided > o.Compared {
		c.t.Errorf("%s: %d of %d packets could not be decided", x, o.Undecided, o.Compared)
	}
	return o.Divergence
}

// TestAckContradictsItself: an Ack names the id that it answers. One that does not is wrong at any tap, for certain. So
// it is in a capture that begins in the middle.
func TestAckContradictsItself(t *testing.T) {
	for _, v := range []machine.Vantage{
		machine.VantageUnknown, machine.VantageA, machine.VantageB, machine.VantageBetween, machine.VantageBoth,
	} {
		for _, begins := range []bool{true, false} {
			for _, m := range []wire.Message{
				{Type: wire.Ack, Last: 0, Cause: 1},
				{Type: wire.Ack, Last: 3, AckBits: 0b01, Cause: 1},
			} {
				name := fmt.Sprintf("vantage %s, begins %v, newest %d", v, begins, m.Last)
				c := newTalk(t, v, "riptide@2.1.1-2.2.1")
				if begins {
					c.opens(1)
				} else {
					c.say(0, machine.B, wire.Message{Type: wire.Reliable, Sequence: 1, MessageID: 1})
				}
				c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: 2, MessageID: 1})
				c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: 3, MessageID: 1})
				c.say(time.Millisecond, machine.A, m)
				d := c.found(machine.A)
				if d == nil || d.Ref.Frame() != c.frame || d.Rule != AckWrong || d.RestsOn != machine.RestsOnOwn {
					t.Errorf("%s: %+v, expected rule ack at frame %d, certain", name, d, c.frame)
				}
				if d := c.found(machine.B); d != nil {
					t.Errorf("%s: B diverges: %s", name, d.Because)
				}
			}
		}
	}
}

// TestWrongIsDecided: a message that is wrong does not count as undecided as well.
func TestWrongIsDecided(t *testing.T) {
	c := newTalk(t, machine.VantageB, "riptide@2.1.1-2.2.1")
	c.opens(1)
	c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: 9, AckBits: 0xffff, Cause: 9})
	if d := c.found(machine.A); d == nil || d.Rule != AckUnsent {
		t.Fatalf("%+v, expected rule ack-unsent", d)
	}
	if o := c.judge.Opinion(machine.A); o.Undecided != 0 {
		t.Errorf("%d of %d packets undecided, expected none", o.Undecided, o.Compared)
	}
}

// TestAnswerNotRead: an answer that passed within a frame before a heartbeat need not be read when the heartbeat is
// sent. Then the heartbeat repeats the RTT that was told before. Pytide reads the answer behind it, and takes it for
// that to the new heartbeat.
func TestAnswerNotRead(t *testing.T) {
	for _, test := range []struct {
		behaviour string
		answer    time.Duration // from the second heartbeat to its answer
		told      int16         // by the third heartbeat
		then      int16         // by the fourth, whose answer came after 20 ms
		wrong     uint64        // the heartbeat that diverges; 0 for none
	}{
		{"riptide@2.1.1-2.2.1", 990 * time.Millisecond, 20, 20, 0},
		{"riptide@2.1.1-2.2.1", 990 * time.Millisecond, 990, 20, 0},
		{"riptide@2.1.1-2.2.1", 400 * time.Millisecond, 20, 20, 3}, // a frame of 600 ms
		{"riptide@2.1.1-2.2.1", 990 * time.Millisecond, 10, 20, 3},
		{"pytide@2.1-alpha", 990 * time.Millisecond, 20, 20, 0},
		{"pytide@2.1-alpha", 990 * time.Millisecond, 20, 400, 0}, // Pytide: a copy of the answer may have come later
		{"pytide@2.1-alpha", 400 * time.Millisecond, 20, 20, 3},
		{"pytide@2.1-alpha", 990 * time.Millisecond, 263, 20, 3},
	} {
		c := newTalk(t, machine.VantageA, test.behaviour)
		b := riptide.LookupBehaviour(test.behaviour)
		ping := func(n uint8) uint8 {
			if b.Port {
				return 1
			}
			return n
		}
		none := int16(-1)
		if b.Port {
			none = 0
		}
		c.opens(b.First)
		c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: b.First, AckBits: ackBits(b), Cause: b.First})
		c.say(0, machine.A, wire.Message{Type: wire.Welcome, Sequence: b.First, ClientID: 1})
		var frames []uint64
		beat := func(after time.Duration, n uint8, rtt int16) {
			c.say(after, machine.A, wire.Message{Type: wire.Heartbeat, Ping: ping(n), RTT: rtt, HasRTT: true})
			frames = append(frames, c.frame)
		}
		answer := func(after time.Duration, n uint8) {
			c.say(after, machine.B, wire.Message{Type: wire.Heartbeat, Ping: ping(n)})
		}
		beat(100*time.Millisecond, 0, none)
		answer(20*time.Millisecond, 0)
		beat(980*time.Millisecond, 1, 20)
		answer(test.answer, 1)
		beat(time.Second-test.answer, 2, test.told)
		answer(20*time.Millisecond, 2)
		beat(980*time.Millisecond, 3, test.then)
		d := c.found(machine.A)
		got := uint64(0)
		if d != nil {
			for i, f := range frames {
				if f == d.Ref.Frame() && d.Rule == WrongRTT {
					got = uint64(i + 1)
				}
			}
			if got == 0 {
				t.Errorf("%s: %s at frame %d: %s", test.behaviour, d.Rule.ID, d.Ref.Frame(), d.Because)
			}
		}
		if got != test.wrong {
			t.Errorf("%s, answer after %v, told %d and %d: heartbeat %d is wrong, expected %d", test.behaviour, test.answer,
				test.told, test.then, got, test.wrong)
		}
	}
}

// ackBits returns the bits of the Ack that answers a connection's first message.
func ackBits(b *riptide.Behaviour) uint16 {
	r := riptide.NewReceiver(b)
	r.Take(b.First)
	_, bits := r.Ack()
	return bits
}

// TestWindowOverrun: main ends the connection when its window of 1024 ids is too short for one that
// never came. A server that acks that message and is silent then conforms. One that goes on does not.
func TestWindowOverrun(t *testing.T) {
	for _, test := range []struct {
		behaviour string
		newest    uint16
		goesOn    bool
		wrong     bool
	}{
		{"riptide@main", 1025, false, false},
		{"riptide@main", 1025, true, false},
		{"riptide@main", 1026, false, false},
		{"riptide@main", 1026, true, true},
		{"riptide@2.1.1-2.2.1", 1026, true, false},
	} {
		c := newTalk(t, machine.VantageB, test.behaviour)
		c.opens(1)
		r := riptide.NewReceiver(riptide.LookupBehaviour(test.behaviour))
		send := func(id uint16, kind wire.Type) {
			c.say(time.Millisecond, machine.A, wire.Message{Type: kind, Sequence: id, MessageID: 1, ClientID: 1})
			r.Take(id)
			last, bits := r.Ack()
			c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Ack, Last: last, AckBits: bits, Cause: id})
		}
		send(1, wire.Welcome)
		send(test.newest, wire.Reliable)
		c.say(1100*time.Millisecond, machine.A, wire.Message{Type: wire.Unreliable, MessageID: 1})
		if test.goesOn {
			c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1})
		}
		d := c.found(machine.B)
		if (d != nil) != test.wrong || d != nil && (d.Rule != AfterTheEnd || d.Ref.Frame() != c.frame) {
			t.Errorf("%s, newest %d, goes on: %t: %+v, expected a divergence: %t", test.behaviour, test.newest, test.goesOn, d,
				test.wrong)
		}
	}
}

// TestMetInHandshake: a capture that begins behind the server's Welcome has the client's alone. That does not
// begin the connection: the message that the first Ack answers passed before.
func TestMetInHandshake(t *testing.T) {
	for _, v := range []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBoth} {
		for _, ack := range []bool{true, false} {
			c := newTalk(t, v, "riptide@2.1.1-2.2.1")
			r := riptide.NewReceiver(riptide.LookupBehaviour("riptide@2.1.1-2.2.1"))
			r.Take(1)
			answer := func(from machine.Side, id uint16) {
				r.Take(id)
				last, bits := r.Ack()
				c.say(time.Millisecond, from, wire.Message{Type: wire.Ack, Last: last, AckBits: bits, Cause: id})
			}
			if ack {
				answer(machine.A, 1)
			}
			c.say(0, machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
			c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
			for id := uint16(2); id < 5; id++ {
				c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 1})
				answer(machine.A, id)
			}
			for _, s := range []machine.Side{machine.A, machine.B} {
				if d := c.found(s); d != nil {
					t.Errorf("vantage %s, Ack %t: %s diverges in frame %d: %s: %s", v, ack, s, d.Ref.Frame(), d.Rule.ID, d.Because)
				}
			}
		}
	}
}

// TestAckOfBefore: a message from before the capture is sent again. An Ack of a newer one from before it
// comes then. That one was sent too.
func TestAckOfBefore(t *testing.T) {
	for _, late := range []bool{false, true} {
		c := newTalk(t, machine.VantageA, "riptide@2.1.1-2.2.1")
		c.say(0, machine.A, wire.Message{Type: wire.Reliable, Sequence: 11, MessageID: 1})
		if late {
			c.say(3*time.Second, machine.A, wire.Message{Type: wire.Unreliable, MessageID: 1})
		}
		c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Ack, Last: 12, AckBits: 0xfffe, Cause: 12})
		if d := c.found(machine.B); (d != nil) != late {
			t.Errorf("late %t: %+v", late, d)
		}
	}
}

// TestJumpOfBefore: messages from before the capture are sent again first. The ids between them and the first
// new one were acked before the capture. Later, a jump is a divergence.
func TestJumpOfBefore(t *testing.T) {
	for _, late := range []bool{false, true} {
		c := newTalk(t, machine.VantageA, "riptide@2.1.1-2.2.1")
		c.say(0, machine.A, wire.Message{Type: wire.Heartbeat, Ping: 7, RTT: 20, HasRTT: true})
		c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Heartbeat, Ping: 7})
		for _, id := range []uint16{11, 15, 14, 20, 21} {
			c.say(10*time.Millisecond, machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: id})
		}
		last := uint16(22)
		if late {
			c.say(11*time.Second, machine.A, wire.Message{Type: wire.Unreliable, MessageID: 1})
			last = 24
		}
		c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Reliable, Sequence: last, MessageID: 1})
		if d := c.found(machine.A); (d != nil) != late || d != nil && d.Ref.Frame() != c.frame {
			t.Errorf("late %t: %+v", late, d)
		}
	}
}
