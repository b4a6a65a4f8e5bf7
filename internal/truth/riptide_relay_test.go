package truth

import (
	"fmt"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestRiptideRelay: ackscope finds the messages that the server relayed to
// clients, according to the clients' logs, and no others. In these runs all
// messages with id 31 are relayed, and no other messages.
func TestRiptideRelay(t *testing.T) {
	passed, held := 0, 0
	ripCaptures(t, []string{"u2", "t2"}, func(t *testing.T, c *ripCapture) {
		for _, x := range c.connections(t) {
			for _, s := range []machine.Side{machine.A, machine.B} {
				relays, fault := c.relay(&x, s)
				if fault != "" {
					t.Error(fault)
				}
				if relays {
					passed++
				} else {
					held++
				}
			}
		}
	})
	if passed < 10 || held < 100 {
		t.Errorf("%d ends relay, %d do not: too few for a result", passed, held)
	}
}

// relay reports whether the side's log shows that it passed messages on to the other,
// and says what the findings have otherwise.
func (c *ripCapture) relay(x *connection, s machine.Side) (relays bool, fault string) {
	for _, l := range x.lines[s.Other()] {
		relays = relays ||
			x.sides[s] == "server" && l.Event == "receive" && l.MessageID != nil && *l.MessageID == relayedID && l.T > c.first
	}
	found := false
	for _, f := range x.flow.Findings() {
		if f.Rule.ID != "riptide-relay" || f.Side != s {
			continue
		}
		if found = true; f.Figures[0] != relayedID {
			fault = fmt.Sprintf("%s: %s", x.sides[s], f.Message())
		}
	}
	switch {
	case found && !relays:
		fault = fmt.Sprintf("%s is said to pass messages on to %s, whose log has none", x.sides[s], x.sides[s.Other()])
	case relays && !found:
		fault = fmt.Sprintf("%s passed messages on to %s, and no finding says so", x.sides[s], x.sides[s.Other()])
	}
	return relays, fault
}
