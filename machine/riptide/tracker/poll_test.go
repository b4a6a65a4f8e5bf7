package tracker_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// orderMatters returns two Acks of ids up to 30 whose order matters to Pytide. It also returns an id that the
// order of the tap clears and the other does not.
func orderMatters(t *testing.T, received uint16) (acks [2]wire.Message, id uint16) {
	t.Helper()
	rng := rand.New(rand.NewPCG(8, 8))
	for range 20000 {
		for i := range acks {
			last := uint16(2 + rng.IntN(29))
			acks[i] = wire.Message{Type: wire.Ack, Last: last, AckBits: uint16(rng.Uint32()), Cause: last}
		}
		clears := func(order ...int) (ids []uint16) {
			s := riptide.NewSender(riptide.LookupBehaviour("pytide@2.1-alpha"))
			s.Received(received)
			for _, i := range order {
				s.Acked(acks[i].Last, acks[i].AckBits, acks[i].Cause, func(id uint16, v riptide.Verdict) {
					if v == riptide.Cleared {
						ids = append(ids, id)
					}
				})
			}
			return ids
		}
		first, other := clears(0, 1), clears(1, 0)
		for _, id := range first {
			if id > 2 && id <= 30 && !slices.Contains(other, id) && id != acks[0].Cause && id != acks[1].Cause {
				return acks, id
			}
		}
	}
	t.Fatal("no two Acks whose order matters")
	return acks, 0
}

// TestPollOrder: Pytide reads the newest of several Acks first, if it finds them in its socket at once. What
// depends on that is likely. Acks that pass a second apart are not read at once.
func TestPollOrder(t *testing.T) {
	acks, id := orderMatters(t, 1)
	for _, c := range []struct {
		apart time.Duration
		want  machine.Certainty
	}{{0, machine.Likely}, {time.Second, machine.Certain}} {
		conv := &conversation{t: t, codec: speaker(t, "2.1.0").Codec}
		conv.send(machine.A, wire.Message{Type: wire.Connect})
		conv.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
		conv.send(machine.A, wire.Message{Type: wire.Ack, Last: 1, AckBits: 1, Cause: 1, HasCause: true})
		for n := uint16(2); n <= 30; n++ {
			m := wire.Message{Type: wire.Reliable, Sequence: n, MessageID: 3, ClientID: 7}
			if n == 2 {
				m.Type = wire.Welcome
			}
			conv.send(machine.A, m, byte(n))
		}
		for i, m := range acks {
			if i == 1 {
				conv.wait(c.apart)
			}
			m.HasCause = true
			conv.send(machine.B, m)
		}
		conv.wait(time.Second)
		conv.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 3}, 1, 2, 3)
		config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, "pytide-2.1.0-alpha"), speaker(t, "2.1.0")}}
		tr := tracker.New(config, machine.Facts{Vantage: machine.VantageA})
		var out machine.Effects
		for i := range conv.out {
			tr.Observe(&conv.out[i], &out)
		}
		tr.Finish(&out)
		found := false
		for i := range out.Messages {
			if m := &out.Messages[i]; m.From == machine.A && m.Sequence == uint32(id) {
				found = true
				if m.Acked != machine.Yes || m.Certainty != c.want {
					t.Errorf("Acks %v apart: message %d acked %v, %v; expected yes, %v", c.apart, id, m.Acked, m.Certainty, c.want)
				}
			}
		}
		if !found {
			t.Errorf("no message %d", id)
		}
	}
}
