package tracker_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestConnectionFindings is TestFindings for how connections begin, stay and end. Both ends are of
// release 2.2.1, and A is the client.
func TestConnectionFindings(t *testing.T) {
	for _, c := range []struct {
		rule    string
		vantage machine.Vantage
		side    machine.Side // the one that causes it
		sure    machine.Certainty
		packets func(c *conversation, bad bool)
	}{
		{"riptide-connect-unanswered", machine.VantageA, machine.A, machine.Certain, func(c *conversation, bad bool) {
			for range 3 {
				c.send(machine.A, wire.Message{Type: wire.Connect})
				c.wait(time.Second)
			}
			if !bad {
				c.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
			}
		}},
		{"riptide-rejected", machine.VantageA, machine.B, machine.Certain, func(c *conversation, bad bool) {
			c.send(machine.A, wire.Message{Type: wire.Connect})
			if bad {
				c.send(machine.B, wire.Message{Type: wire.Reject, Reason: 2})
			} else {
				c.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
			}
		}},
		{"riptide-attempts-high", machine.VantageA, machine.A, machine.Certain, func(c *conversation, bad bool) {
			c.welcome()
			copies := 9
			if bad {
				copies = 12
			}
			for n := range copies {
				c.reliable(2, n == copies-1)
				c.wait(50 * time.Millisecond)
			}
		}},
		{"riptide-attempts-exhausted", machine.VantageA, machine.A, machine.Likely, func(c *conversation, bad bool) {
			c.welcome()
			for n := range 15 { // the limit of the library
				c.reliable(2, !bad && n == 14)
				c.wait(50 * time.Millisecond)
			}
		}},
		{"riptide-heartbeat-late", machine.VantageA, machine.A, machine.Certain, func(c *conversation, bad bool) {
			c.welcome()
			c.beat(0, -1)
			c.wait(time.Second)
			if bad {
				c.wait(2 * time.Second)
			}
			c.beat(1, 20)
		}},
		{"riptide-silent-end", machine.VantageA, machine.A, machine.Likely, func(c *conversation, bad bool) {
			c.welcome()
			c.reliable(2, true)
			for range 8 {
				c.wait(500 * time.Millisecond)
				c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
				if !bad {
					c.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
				}
			}
		}},
		{"riptide-ack-of-nothing", machine.VantageA, machine.B, machine.Likely, func(c *conversation, bad bool) {
			c.welcome()
			c.reliable(2, true)
			if last := uint16(3); bad {
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: last, AckBits: 7, Cause: last})
			} else {
				c.reliable(last, true)
			}
		}},
	} {
		for _, bad := range []bool{true, false} {
			conv := &conversation{t: t, codec: speaker(t, "2.2.1").Codec}
			c.packets(conv, bad)
			config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, "2.2.1"), speaker(t, "2.2.1")}}
			found := conv.found(config, machine.Facts{Vantage: c.vantage, End: conv.at}, c.side)
			sure, is := found[c.rule]
			switch {
			case bad && !is:
				t.Errorf("%s: not found, but %v", c.rule, slices.Sorted(maps.Keys(found)))
			case bad && sure != c.sure:
				t.Errorf("%s: graded %v, expected %v", c.rule, sure, c.sure)
			case !bad && is:
				t.Errorf("%s: found where nothing shows it", c.rule)
			}
		}
	}
}
