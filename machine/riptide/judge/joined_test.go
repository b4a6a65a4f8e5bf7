package judge

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestMergedAtFirst: a server of 2.1.0 is met at messages to several clients, whose ids are OR-ed. Its own
// messages with such an id come later, with other content. Long after the beginning that is a divergence.
func TestMergedAtFirst(t *testing.T) {
	for _, x := range []struct {
		ids  []uint16
		late bool
	}{
		{ids: []uint16{47, 45, 46, 47, 48}},
		{ids: []uint16{11, 14, 15, 15, 16}},
		{ids: []uint16{14, 15, 15}, late: true},
	} {
		c := newTalk(t, machine.VantageB, "riptide@2.1.0")
		c.say(0, machine.A, wire.Message{Type: wire.Heartbeat, Ping: 7, RTT: 20, HasRTT: true})
		c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Heartbeat, Ping: 7})
		for i, id := range x.ids {
			if x.late && i == 1 {
				c.say(joinedTime, machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1})
			}
			c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: uint16(i)})
		}
		if d := c.found(machine.B); (d != nil) != x.late {
			t.Errorf("ids %d, late %t: %+v", x.ids, x.late, d)
		}
	}
}

// TestMergedAhead: a server of 2.1.0 is met right behind its Connect. Its second message has the ids 1 and 2 of two
// clients OR-ed. It waits for an Ack of 2, so the Acks of 3 do not clear it.
func TestMergedAhead(t *testing.T) {
	for _, id := range []uint16{2, 3} {
		c := newTalk(t, machine.VantageB, "riptide@2.1.0")
		c.say(0, machine.A, wire.Message{Type: wire.Heartbeat, Ping: 7, RTT: 20, HasRTT: true})
		c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Heartbeat, Ping: 7})
		for i, id := range []uint16{1, id} {
			c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: uint16(i)})
			c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: id, AckBits: 1, Cause: id})
		}
		c.say(2*clearSlack, machine.B, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 1})
		if d := c.found(machine.B); (d == nil) != (id == 3) {
			t.Errorf("message %d: %+v", id, d)
		}
	}
}

// TestCutHeader: A's Ack is cut by the snap length, so message 2 seems never to be answered. Nothing that rests on
// an absence is held against A. An Ack that contradicts itself still is.
func TestCutHeader(t *testing.T) {
	for _, cut := range []bool{false, true} {
		c := newTalk(t, machine.VantageA, "riptide@2.1.1-2.2.1")
		c.opens(1)
		c.say(0, machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
		c.say(0, machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
		c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
		c.say(0, machine.B, wire.Message{Type: wire.Reliable, Sequence: 2, MessageID: 1})
		if cut {
			c.frame++
			c.judge.Observe(&machine.Datagram{
				At: c.at, Ref: machine.MakeRef(0, c.frame), From: machine.A, Bytes: []byte{1, 0}, Length: 5,
			})
		}
		for range 20 {
			c.say(100*time.Millisecond, machine.A, wire.Message{Type: wire.Unreliable, MessageID: 1})
		}
		if d := c.found(machine.A); (d == nil) != cut {
			t.Errorf("cut %t: %+v", cut, d)
		}
		if !cut {
			continue
		}
		c.say(0, machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 2})
		if d := c.found(machine.A); d == nil || d.RestsOn != machine.RestsOnOwn {
			t.Errorf("an Ack whose newest id is older than the one that it answers: %+v", d)
		}
	}
}

// TestNotifyTwice: a notify message comes again, as it was. At a side that the tap is only supposed to stand at,
// the network may have doubled it. So may one that was overtaken come at the beginning. Another message with an
// id of before is a divergence, and so are both where the tap is shown to be at the side.
func TestNotifyTwice(t *testing.T) {
	for _, x := range []struct {
		name               string
		ids                []uint16
		supposed, diverges bool
		other              bool // the last message differs from the first with its id
	}{
		{name: "doubled", ids: []uint16{7, 8, 8, 9}, supposed: true},
		{name: "overtaken", ids: []uint16{8, 7, 9}, supposed: true},
		{name: "another", ids: []uint16{7, 8, 9, 8}, supposed: true, other: true, diverges: true},
		{name: "doubled, at the side", ids: []uint16{7, 8, 8, 9}, diverges: true},
		{name: "overtaken, at the side", ids: []uint16{8, 7, 9}, diverges: true},
	} {
		c := newTalk(t, machine.VantageA, "riptide@2.1.1-2.2.1")
		c.judge.sides[machine.A].supposed = x.supposed
		for i, id := range x.ids {
			m := wire.Message{Type: wire.Notify, Sequence: id}
			if x.other && i == len(x.ids)-1 {
				m.Last++
			}
			c.say(time.Millisecond, machine.A, m)
		}
		if d := c.found(machine.A); (d != nil) != x.diverges || d != nil && d.Rule != Sequence {
			t.Errorf("%s: %+v", x.name, d)
		}
	}
}

// TestWelcomedAgain: the capture begins at copies of the two Welcomes, and the client goes on with message 3: its
// message 2 passed before. Behind its Connect, or behind message 2, the same is a divergence.
func TestWelcomedAgain(t *testing.T) {
	for _, x := range []struct {
		name     string
		connect  bool
		ids      []uint16
		diverges bool
	}{
		{name: "copies", ids: []uint16{3, 4}},
		{name: "behind its Connect", connect: true, ids: []uint16{3}, diverges: true},
		{name: "behind message 2", ids: []uint16{2, 4}, diverges: true},
	} {
		c := newTalk(t, machine.VantageA, "riptide@2.1.1-2.2.1")
		if x.connect {
			c.say(0, machine.A, wire.Message{Type: wire.Connect})
		}
		c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
		c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
		c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
		for i, id := range x.ids {
			c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: uint16(i)})
		}
		if d := c.found(machine.A); (d != nil) != x.diverges || d != nil && d.Rule != Sequence {
			t.Errorf("%s: %+v", x.name, d)
		}
	}
}

// TestAnswerFirst: the capture begins at the server's Connect, which answers the client's. The server is the side
// that welcomes first. So its message to several clients may have their ids OR-ed.
func TestAnswerFirst(t *testing.T) {
	c := newTalk(t, machine.VantageA, "riptide@2.1.0")
	c.say(0, machine.A, wire.Message{Type: wire.Connect})
	c.say(10*time.Millisecond, machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 2})
	c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
	c.say(time.Millisecond, machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 2})
	c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
	c.say(time.Millisecond, machine.A, wire.Message{Type: wire.Reliable, Sequence: 3, MessageID: 1})
	if l := &c.judge.connection; l.client != machine.B || l.asked {
		t.Errorf("the client is %v, its Connect has passed: %t; expected B, false", l.client, l.asked)
	}
	if d := c.found(machine.A); d != nil {
		t.Errorf("%+v", d)
	}
}
