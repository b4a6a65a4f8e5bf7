package tracker_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestAckAfterLimit: no one reads an Ack that comes after the sender has dropped the connection for
// its quality. The sender's silence shows the drop. An application that lifts the limit goes on
// sending and reading.
func TestAckAfterLimit(t *testing.T) {
	for _, speaksOn := range []bool{false, true} {
		c := &conversation{t: t, codec: wire.Codec{Dialect: wire.V21}}
		c.welcome()
		const first, last, pending = 2, 1 + 65, 2 + 65
		// Each message is sent eight times, and the limit is a mean of five. The limit is reached when
		// the mean is beyond it for 64 Acks in a row. The first two Acks do not count, since the Welcome
		// was sent once.
		for id := uint16(first); id <= last; id++ {
			for range 7 {
				c.reliable(id, false)
			}
			if id == last {
				c.reliable(pending, false)
			}
			c.reliable(id, true)
		}
		c.send(machine.B, wire.Message{Type: wire.Ack, Last: pending, AckBits: 0xffff, Cause: pending})
		for i := range byte(20) {
			c.wait(100 * time.Millisecond)
			if speaksOn {
				c.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 3}, i)
			}
			c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 3}, i)
		}
		config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, "2.2.1"), speaker(t, "2.2.1")}}
		tr := tracker.New(config, machine.Facts{Vantage: machine.VantageA})
		var out machine.Effects
		acked := map[int64]machine.Answer{}
		note := func() {
			for _, m := range out.Messages {
				if m.From == machine.A && m.Mode == machine.ModeReliable {
					acked[m.Sequence64] = m.Acked
				}
			}
			out.Reset()
		}
		for i := range c.out {
			tr.Observe(&c.out[i], &out)
			note()
		}
		tr.Finish(&out)
		note()
		want := machine.No
		if speaksOn {
			want = machine.Yes
		}
		if acked[pending] != want {
			t.Errorf("speaks on %v: message %d acked %v, expected %v", speaksOn, pending, acked[pending], want)
		}
		if acked[last] != machine.Yes {
			t.Errorf("speaks on %v: message %d, acked before the limit: %v", speaksOn, last, acked[last])
		}
	}
}
