package tracker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestVantageContradicted: both sides answer at once, and messages to one of them are lost,
// duplicated or left out. So the tap is at the other.
func TestVantageContradicted(t *testing.T) {
	const spacing = 10 * time.Millisecond // between messages
	beat := func(c *conversation, from machine.Side, id uint8, rtt bool) {
		m := wire.Message{Type: wire.Heartbeat, Ping: id, HasRTT: rtt}
		c.send(from, m)
		c.wait(2*time.Millisecond - spacing)
	}
	for _, x := range []struct {
		name    string
		vantage machine.Vantage
		reason  string
		then    func(c *conversation)
	}{
		{"nothing", machine.VantageBoth, "at both", func(*conversation) {}},
		{"a message towards b is lost", machine.VantageA, "at a rather than", func(c *conversation) {
			c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 40, MessageID: 3}, 40)
			c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 41, MessageID: 3}, 41)
			c.wait(2*time.Millisecond - spacing)
			c.send(machine.B, wire.Message{Type: wire.Ack, Last: 41, AckBits: 0xfffe, Cause: 41})
		}},
		{"a message towards b is doubled", machine.VantageA, "at a rather than", func(c *conversation) {
			c.send(machine.B, wire.Message{Type: wire.Ack, Last: 39, AckBits: 0xffff, Cause: 39})
		}},
		{"a message from b is lost", machine.VantageA, "at a rather than", func(c *conversation) {
			c.send(machine.B, wire.Message{Type: wire.Reliable, Sequence: 41, MessageID: 3}, 41)
		}},
		{"a heartbeat from a is lost", machine.VantageB, "at b rather than", func(c *conversation) {
			for _, id := range []uint8{0, 1, 3} {
				beat(c, machine.A, id, true)
				beat(c, machine.B, id, false)
			}
		}},
		{"an answer from b is lost", machine.VantageA, "at a rather than", func(c *conversation) {
			for id := range uint8(3) {
				beat(c, machine.A, id, true)
				if id != 1 {
					beat(c, machine.B, id, false)
				}
			}
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := conversation{t: t, codec: speaker(t, "2.2.1").Codec}
			c.send(machine.A, wire.Message{Type: wire.Connect})
			c.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
			c.send(machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
			c.send(machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
			c.send(machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
			for id := uint16(2); id < 40; id++ {
				for side := range machine.Side(2) {
					c.send(side, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
					c.wait(2*time.Millisecond - spacing)
					c.send(side.Other(), wire.Message{Type: wire.Ack, Last: id, AckBits: uint16(1<<min(id, 16) - 1), Cause: id})
				}
			}
			x.then(&c)
			var facts machine.Facts
			tr := tracker.New(riptide.Config{Senders: [2]riptide.Speaker{speaker(t, "2.2.1"), speaker(t, "2.2.1")}}, facts)
			var out machine.Effects
			for i := range c.out {
				tr.Observe(&c.out[i], &out)
				out.Reset()
			}
			tr.Finish(&out)
			if facts = tr.Learned(); facts.Vantage != x.vantage || !strings.Contains(facts.VantageReason, x.reason) {
				t.Errorf("the tap stands at %v (%s), expected %v (…%s…)", facts.Vantage, facts.VantageReason, x.vantage, x.reason)
			}
		})
	}
}
