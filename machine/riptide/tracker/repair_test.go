package tracker_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// undecidedJump returns a jump after 40 ids, of which one is missing, and an id that it skips. The Acks of
// release 2.2.1 and of main are the same behind it and behind the id, and only main delivers the id.
func undecidedJump(t *testing.T) (missing, newest, skipped uint16) {
	t.Helper()
	start := func(behaviour string, missing uint16) riptide.Receiver {
		r := riptide.NewReceiver(riptide.LookupBehaviour(behaviour))
		for id := uint16(1); id <= 40; id++ {
			if id != missing {
				r.Take(id)
			}
		}
		return r
	}
	same := func(a, b *riptide.Receiver) bool {
		lastA, bitsA := a.Ack()
		lastB, bitsB := b.Ack()
		return lastA == lastB && bitsA == bitsB && bitsA != 0xffff
	}
	for missing := uint16(2); missing < 40; missing++ {
		for newest := uint16(72); newest < 160; newest++ {
			old, main := start("riptide@2.1.1-2.2.1", missing), start("riptide@main", missing)
			old.Take(newest)
			main.Take(newest)
			if !same(&old, &main) {
				continue
			}
			for id := uint16(41); id < newest; id++ {
				a, b := old.Clone(), main.Clone()
				if delivers, repaired := a.Take(id), b.Take(id); !delivers && repaired && same(&a, &b) {
					return missing, newest, id
				}
			}
		}
	}
	t.Fatal("every jump tells the versions apart at once")
	return 0, 0, 0
}

// TestVersionDoubt: behind a jump, 2.2.1 refuses a message that main delivers, and the Acks so far fit
// both. Then the refusal is likely. When a later jump shows that the side is main, another run over the
// flow starts with that, and is certain of the delivery.
func TestVersionDoubt(t *testing.T) {
	missing, newest, skipped := undecidedJump(t)
	for _, shown := range []bool{false, true} {
		for _, build := range []string{"2.2.1", "2.1.2"} {
			conv := &conversation{t: t, codec: speaker(t, build).Codec}
			conv.welcome()
			conv.out[len(conv.out)-1].At = conv.at
			r := riptide.NewReceiver(riptide.LookupBehaviour("riptide@main"))
			r.Take(1)
			send := func(id uint16) {
				conv.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id), byte(id>>8))
				r.Take(id)
				last, bits := r.Ack()
				conv.send(machine.B, wire.Message{
					Type: wire.Ack, Last: last, AckBits: bits, Cause: id, Flag: id != last,
					HasCause: id != last || build != "2.2.1",
				})
			}
			for id := uint16(2); id <= 40; id++ {
				if id != missing {
					send(id)
				}
			}
			send(newest)
			send(skipped)
			if shown {
				for id := newest + 1; id <= newest+20; id++ {
					send(id)
				}
				send(newest + 20 + riptide.JumpList + 5) // 2.2.1 would name what the jump skips
			}
			conv.wait(2 * time.Second)
			conv.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 3}, 1, 2, 3)

			config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, build), speaker(t, build)}}
			facts := machine.Facts{Vantage: machine.VantageB}
			for reading := range 2 {
				tr := tracker.New(config, facts)
				var out machine.Effects
				for i := range conv.out {
					tr.Observe(&conv.out[i], &out)
				}
				tr.Finish(&out)
				facts = tr.Learned()
				about := func(id uint16) *machine.Message {
					for i := range out.Messages {
						if m := &out.Messages[i]; m.From == machine.A && m.Sequence == uint32(id) {
							return m
						}
					}
					t.Fatalf("no message %d", id)
					return nil
				}
				says := machine.Unknown
				for _, a := range out.Anomalies {
					if a.Rule == riptide.AckedNotDelivered {
						says = max(says, a.Certainty)
					}
				}
				m, delivered, certainty, finding := about(skipped), machine.No, machine.Likely, machine.Likely
				switch {
				case build != "2.2.1" && !shown:
					certainty, finding = machine.Certain, machine.Certain // no release of 2.1.2 is repaired
				case shown && reading == 1:
					delivered, certainty, finding = machine.Yes, machine.Certain, machine.Unknown
				case shown && build != "2.2.1":
					continue
				}
				if m.Delivered != delivered || m.Certainty != certainty || says != finding {
					t.Errorf("%s, shown %t, reading %d: message %d delivered %v (%v), finding %v; expected %v (%v), finding %v",
						build, shown, reading+1, skipped, m.Delivered, m.Certainty, says, delivered, certainty, finding)
				}
			}
		}
	}
}

// TestSenderDoubt: at a jump of the newest acked id, a sender of 2.2.1 takes ids between for acked that no
// Ack names. A sender of main does not. So where the sender can be either, that is likely.
func TestSenderDoubt(t *testing.T) {
	for build, want := range map[string]machine.Certainty{"2.2.1": machine.Likely, "2.1.2": machine.Certain} {
		conv := &conversation{t: t, codec: speaker(t, build).Codec}
		conv.welcome()
		for id := uint16(2); id <= 90; id++ {
			conv.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
			if id <= 40 {
				conv.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: 0xffff, Cause: id})
			}
		}
		conv.send(machine.B, wire.Message{Type: wire.Ack, Last: 90, Cause: 90})
		conv.wait(time.Second)
		conv.send(machine.A, wire.Message{Type: wire.Unreliable, MessageID: 3}, 1, 2, 3)
		config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, build), speaker(t, build)}}
		tr := tracker.New(config, machine.Facts{Vantage: machine.VantageA})
		var out machine.Effects
		for i := range conv.out {
			tr.Observe(&conv.out[i], &out)
		}
		tr.Finish(&out)
		cleared, most := 0, machine.Unknown
		for _, e := range out.Events {
			if e.Kind == machine.EventAcked && e.Side == machine.A && e.Sequence > 40 && e.Sequence < 90 {
				cleared++
				most = max(most, e.Certainty)
			}
		}
		if cleared == 0 || most > want {
			t.Errorf("%s: %d messages between count as acked, %v; expected some, %v at most", build, cleared, most, want)
		}
	}
}
