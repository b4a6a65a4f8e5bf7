package judge

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

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
