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

// learned runs a tracker over the conversation. It returns what that run learned, and the messages
// of a second run that begins with it.
func (c *conversation) learned(config riptide.Config) (facts machine.Facts, messages []machine.Message) {
	for range 2 {
		tr := tracker.New(config, facts)
		messages = messages[:0]
		var out machine.Effects
		for i := range c.out {
			tr.Observe(&c.out[i], &out)
			messages = append(messages, out.Messages...)
			out.Reset()
		}
		tr.Finish(&out)
		messages = append(messages, out.Messages...)
		facts = tr.Learned()
	}
	return facts, messages
}

// TestVantageDoubted tests that facts are certain only where the capture shows the tap's place.
// Both ends of these conversations have the same address. All times but the one under test are
// alike.
func TestVantageDoubted(t *testing.T) {
	const spacing = 10 * time.Millisecond // between messages
	for _, c := range []struct {
		name    string
		way     time.Duration // from the tap to B and back
		vantage machine.Vantage
		reason  string
		after   func(c *conversation)
	}{
		{"both ends answer at once", time.Millisecond, machine.VantageBoth, "both ends have the same address", nil},
		{
			"a relay with a way behind it", 50 * time.Millisecond, machine.VantageA,
			"a rather than both: b answers after 5", nil,
		},
		{
			"a relay that loses", time.Millisecond, machine.VantageA, "had not reached it when it went on",
			func(c *conversation) {
				for id := uint16(100); id < 110; id += 2 {
					// The first of two messages passes, and is neither answered nor named.
					c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
					c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id + 1, MessageID: 3}, byte(id))
					c.wait(time.Millisecond - spacing)
					c.send(machine.B, wire.Message{Type: wire.Ack, Last: id + 1, AckBits: 0xaaaa, Cause: id + 1})
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			talk := conversation{t: t, codec: speaker(t, "2.2.1").Codec}
			talk.send(machine.A, wire.Message{Type: wire.Connect})
			talk.wait(c.way)
			talk.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
			talk.send(machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
			talk.send(machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
			talk.wait(c.way)
			talk.send(machine.B, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1})
			for id := uint16(2); id < 100; id++ {
				talk.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
				talk.wait(c.way - spacing)
				talk.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: uint16(1<<min(id, 16) - 1), Cause: id})
				talk.wait(20 * time.Millisecond)
				talk.send(machine.B, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
				talk.wait(time.Millisecond - spacing)
				talk.send(machine.A, wire.Message{Type: wire.Ack, Last: id, AckBits: uint16(1<<min(id, 16) - 1), Cause: id})
			}
			if c.after != nil {
				c.after(&talk)
			}
			s := speaker(t, "2.2.1")
			facts, messages := talk.learned(riptide.Config{Senders: [2]riptide.Speaker{s, s}, OneHost: true})
			if facts.Vantage != c.vantage || !strings.Contains(facts.VantageReason, c.reason) {
				t.Errorf("the tap stands at %v (%s), expected %v (…%s…)", facts.Vantage, facts.VantageReason, c.vantage, c.reason)
			}
			for i := range messages {
				m := &messages[i]
				if lost := m.Sequence >= 100 && m.Sequence%2 == 0; lost && m.Delivered == machine.Yes &&
					m.Certainty == machine.Certain {
					t.Errorf("message %d is certain to have been handed over, though no Ack names it", m.Sequence)
				}
				if m.Sequence > 1 && m.Sequence < 90 && (m.Delivered != machine.Yes || m.Certainty != machine.Certain) {
					t.Errorf("message %d of %v is %v, %v; its Ack shows that it came", m.Sequence, m.From, m.Delivered, m.Certainty)
				}
			}
		})
	}
}
