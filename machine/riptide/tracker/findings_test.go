package tracker_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// wait lets time pass.
func (c *conversation) wait(d time.Duration) { c.at = c.at.Add(d) }

// welcome begins a connection, with A as the client. Both sides' Welcomes are acked.
func (c *conversation) welcome() {
	first := uint16(1)
	c.send(machine.A, wire.Message{Type: wire.Connect})
	c.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: first, ClientID: 7})
	c.send(machine.A, wire.Message{Type: wire.Ack, Last: first, AckBits: 1, Cause: first})
	c.send(machine.A, wire.Message{Type: wire.Welcome, Sequence: first, ClientID: 7})
	c.send(machine.B, wire.Message{Type: wire.Ack, Last: first, AckBits: 1, Cause: first})
}

// beat adds a heartbeat, and its answer after 20 ms.
func (c *conversation) beat(ping uint8, rtt int16) {
	c.send(machine.A, wire.Message{Type: wire.Heartbeat, Ping: ping, RTT: rtt, HasRTT: true})
	c.wait(10 * time.Millisecond)
	c.send(machine.B, wire.Message{Type: wire.Heartbeat, Ping: ping})
}

// reliable sends a reliable message of A, and B's Ack after a delay unless it is lost.
func (c *conversation) reliable(sequence uint16, answered bool) {
	c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: sequence, MessageID: 3}, byte(sequence),
		byte(sequence>>8))
	if answered {
		c.send(machine.B, wire.Message{Type: wire.Ack, Last: sequence, AckBits: 0xffff, Cause: sequence})
	}
}

// found returns the rules that were reported about a side, with the highest grade of each.
func (c *conversation) found(config riptide.Config, facts machine.Facts,
	side machine.Side,
) map[string]machine.Certainty {
	tr := tracker.New(config, facts)
	var out machine.Effects
	found := map[string]machine.Certainty{}
	take := func() {
		for _, a := range out.Anomalies {
			if a.Side == side {
				found[a.Rule.ID] = max(found[a.Rule.ID], a.Certainty)
			}
		}
		out.Reset()
	}
	for i := range c.out {
		tr.Observe(&c.out[i], &out)
		take()
	}
	tr.Finish(&out)
	take()
	return found
}

func speaker(t *testing.T, build string) riptide.Speaker {
	t.Helper()
	b, ok := wire.LookupBuild(build)
	if !ok {
		t.Fatalf("no build %q", build)
	}
	return riptide.Speaker{
		Codec:  wire.Codec{Dialect: b.Dialect},
		Builds: wire.Matching(func(o *wire.Build) bool { return o == b }),
	}
}

// TestFindings builds a conversation for each rule that no capture shows, or only by chance. A
// harmless variant of it must not be reported.
func TestFindings(t *testing.T) {
	const quiet, loud = false, true
	for _, c := range []struct {
		rule    string
		builds  [2]string // of A, of B
		vantage machine.Vantage
		side    machine.Side // the one that causes it
		sure    machine.Certainty
		packets func(c *conversation, bad bool)
	}{
		{
			"riptide-useless-ack-bits",
			[2]string{"2.1.2", "2.1.2"},
			machine.VantageA, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 2, MessageID: 3}, 1)
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: 2, AckBits: 3, Cause: 2, HasCause: bad})
			},
		},
		{
			"riptide-oversize",
			[2]string{"notes", "notes"},
			machine.VantageA, machine.A,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				body := make([]byte, 1225) // the notes' limit
				if bad {
					body = append(body, 0)
				}
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 2, MessageID: 3}, body...)
			},
		},
		{
			"riptide-last-stuck",
			[2]string{"2.0.0", "2.0.0"},
			machine.VantageB, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				id := uint16(2)
				if bad {
					id = 30 // a jump of 29: the newest stays 1
				}
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, 1)
				if bad {
					c.send(machine.B, wire.Message{Type: wire.AckExtra, Last: 1, AckBits: 1, Cause: id, HasCause: true})
				} else {
					c.send(machine.B, wire.Message{Type: wire.Ack, Last: 2, AckBits: 3, Cause: 2})
				}
			},
		},
		{
			"riptide-stop-reads-80",
			[2]string{"2.2.0", "2.2.0"},
			machine.VantageA, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				reason := uint8(5)
				if bad {
					reason = wire.UnpackedStop
				}
				c.send(machine.B, wire.Message{Type: wire.Disconnect, Reason: reason, HasReason: true})
			},
		},
		{
			"riptide-stale-bits",
			[2]string{"2.1.1", "2.1.1"},
			machine.VantageA, machine.B,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				var data []byte
				if bad {
					data = []byte("\x06kicked\x87\xd6\x12\x00")
				}
				c.send(machine.B, wire.Message{Type: wire.Disconnect, Reason: 4, HasReason: true}, data...)
			},
		},
		{
			"riptide-false-ack",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageB, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				for id := uint16(2); id <= 20; id++ {
					c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
					c.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: 1<<min(id, 16) - 1, Cause: id})
				}
				jump := uint16(22)
				bits := uint16(0xfffe) // 21 has not come: bit 0 is clear
				if bad {
					jump, bits = 20+39, 0xff80 // the bits move by 39 modulo 32 only, as in u210_falseack
				}
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: jump, MessageID: 3}, 9)
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: jump, AckBits: bits, Cause: jump})
			},
		},
		{
			"riptide-window-repaired",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageB, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				for id := uint16(2); id <= 20; id++ {
					c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
					c.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: 1<<min(id, 16) - 1, Cause: id})
				}
				bits := uint16(0xfffe)
				if bad {
					bits = 0 // the jump of 34 has cleared the 16 bits
				}
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 54, MessageID: 3}, 9)
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: 54, AckBits: bits, Cause: 54})
			},
		},
		{
			"riptide-notify-passed-over",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				n := uint16(9)
				if bad {
					n = 12
				}
				for id := uint16(1); id <= n; id++ {
					c.send(machine.A, wire.Message{Type: wire.Notify, Sequence: id}, 1)
				}
				c.send(machine.B, wire.Message{Type: wire.Notify, Sequence: 1, Last: n, AckBits: 0xff}, 1)
			},
		},
		{
			"riptide-notify-jump",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageB, machine.B,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				c.send(machine.A, wire.Message{Type: wire.Notify, Sequence: 1}, 1)
				next := uint16(32)
				if bad {
					next = 33
				}
				c.send(machine.A, wire.Message{Type: wire.Notify, Sequence: next}, 1)
			},
		},
		{
			"riptide-welcome-mismatch",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageB, machine.A,
			machine.Certain, func(c *conversation, bad bool) {
				c.send(machine.A, wire.Message{Type: wire.Connect})
				c.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 7})
				id := uint16(7)
				if bad {
					id = 8
				}
				c.send(machine.A, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: id})
			},
		},
		{
			"riptide-resent-timer-below-rtt",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				for id := uint16(2); id < 9; id++ { // each is answered 110 ms later: the timer is 50 ms
					c.reliable(id, false)
					c.wait(50 * time.Millisecond)
					if bad {
						c.reliable(id, false)
					}
					c.wait(50 * time.Millisecond)
					for range c.copies(id) {
						c.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: 0xffff, Cause: id})
					}
				}
				for id := uint16(20); id < 26; id++ {
					c.reliable(id, false)
					c.wait(100 * time.Millisecond)
					c.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: 0xffff, Cause: id})
				}
			},
		},
		{
			"riptide-resent-peer-stalled",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				for id := uint16(2); id < 9; id++ {
					c.reliable(id, true)
				}
				c.reliable(9, false)
				for range 8 {
					c.wait(20 * time.Millisecond)
					if !bad { // it sends other messages meanwhile: it does not stand still
						c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
					}
				}
				c.reliable(9, true)
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: 9, AckBits: 0xffff, Cause: 9})
			},
		},
		{
			"riptide-resent-message-lost",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				c.reliable(2, false)
				bits := uint16(0b11) // of 3: 2 and 1 have come
				if bad {
					bits = 0b10
				}
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 3, MessageID: 3}, 1)
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: 3, AckBits: bits, Cause: 3})
				c.wait(40 * time.Millisecond)
				c.reliable(2, true)
			},
		},
		{
			"riptide-resent-ack-lost",
			[2]string{"dev-n", "dev-n"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				c.reliable(2, false)
				bits := uint16(0b10)
				if bad {
					bits = 0b11
				}
				c.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 3, MessageID: 3}, 1)
				c.send(machine.B, wire.Message{Type: wire.Ack, Last: 3, AckBits: bits, Cause: 3})
				c.wait(40 * time.Millisecond)
				c.reliable(2, true)
			},
		},
		{
			"riptide-poor-connection",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				n := 14
				if bad {
					n = 15
				}
				for range n {
					c.reliable(2, false)
					c.wait(50 * time.Millisecond)
				}
				c.wait(2 * time.Second)
				c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
			},
		},
		{
			"riptide-timed-out",
			[2]string{"2.2.1", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				last := uint8(6)
				if bad {
					last = 5 // the sixth is due when 5 s are over, and is not sent
				}
				c.beat(0, -1)
				for ping := uint8(1); ping <= last; ping++ {
					c.wait(980 * time.Millisecond)
					c.send(machine.A, wire.Message{Type: wire.Heartbeat, Ping: ping, RTT: 20, HasRTT: true})
					if !bad {
						c.send(machine.B, wire.Message{Type: wire.Heartbeat, Ping: ping})
					}
				}
				c.wait(2 * time.Second)
				c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
			},
		},
		{
			"riptide-pytide-one-id",
			[2]string{"pytide-2.0.0", "2.0.0"},
			machine.VantageA, machine.A,
			machine.Certain, func(c *conversation, bad bool) {
				if bad {
					c.welcome()
				}
			},
		},
		{
			"riptide-pytide-notify",
			[2]string{"2.1.0", "pytide-2.1.0-alpha"},
			machine.VantageB, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				if bad {
					c.send(machine.A, wire.Message{Type: wire.Notify, Sequence: 1}, 1)
				}
			},
		},
		{
			"riptide-pytide-reject-code",
			[2]string{"2.1.0", "pytide-2.1.0-alpha"},
			machine.VantageB, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.send(machine.A, wire.Message{Type: wire.Connect})
				if bad {
					c.send(machine.B, wire.Message{Type: wire.Reject, Reason: 3})
				}
			},
		},
		{
			"riptide-pytide-not-resent",
			[2]string{"pytide-2.1.0-alpha", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				c.reliable(2, !bad)
				c.wait(2 * time.Second)
				c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
			},
		},
		{
			"riptide-pytide-no-timeout",
			[2]string{"2.2.1", "pytide-2.1.0-alpha"},
			machine.VantageB, machine.B,
			machine.Certain, func(c *conversation, bad bool) {
				c.welcome()
				c.wait(4 * time.Second)
				if bad {
					c.wait(4 * time.Second)
				}
				c.send(machine.B, wire.Message{Type: wire.Unreliable, MessageID: 1}, 1)
			},
		},
		{
			"riptide-pytide-ack-error",
			[2]string{"pytide-2.1.0-alpha", "2.2.1"},
			machine.VantageA, machine.A,
			machine.Likely, func(c *conversation, bad bool) {
				c.welcome()
				if bad {
					for id := uint16(2); id < 60; id++ { // it receives nothing, so the acked ids run ahead of that
						c.reliable(id, true)
					}
				}
			},
		},
	} {
		for _, bad := range []bool{loud, quiet} {
			conv := &conversation{t: t, codec: speaker(t, c.builds[0]).Codec}
			c.packets(conv, bad)
			config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, c.builds[0]), speaker(t, c.builds[1])}}
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

// copies returns the number of copies of a reliable message of A.
func (c *conversation) copies(sequence uint16) (n int) {
	var m wire.Message
	for i := range c.out {
		if d := &c.out[i]; d.From == machine.A && c.codec.Fits(d.Bytes, d.Length, &m) && m.Type == wire.Reliable &&
			m.Sequence == sequence {
			n++
		}
	}
	return n
}

// TestValueFaults: a fault that the reader of values finds becomes a finding about the sender.
func TestValueFaults(t *testing.T) {
	for _, c := range []struct {
		fault riptide.ValueFaults
		build string
		rule  string
	}{
		{riptide.ShortArrayLost, "2.1.0", "riptide-short-arrays"},
		{riptide.VarLongWrong, "2.2.1", "riptide-varlong-overflow"},
		{riptide.BoolArrayLost, "pytide-2.1.0-alpha", "riptide-pytide-bool-arrays"},
		{riptide.ValuesMissing, "pytide-2.1.0-alpha", "riptide-pytide-empty-message"},
		{riptide.ValuesMissing, "2.2.1", ""},
		{riptide.BytesThenMore, "2.1.1", "riptide-stale-bits"},
		{riptide.BytesThenMore, "2.1.2", ""},
		{0, "2.1.0", ""},
	} {
		conv := &conversation{t: t, codec: wire.Codec{Dialect: wire.V21}}
		conv.reliable(1, true)
		conv.reliable(1, true) // a copy has the same values
		asked := 0
		config := riptide.Config{
			Senders: [2]riptide.Speaker{speaker(t, c.build), speaker(t, c.build)},
			Values: func(from machine.Side, m *wire.Message, b []byte) riptide.ValueFaults {
				if asked++; from != machine.A || m.MessageID != 3 || len(b) == 0 {
					t.Errorf("asked about side %v, id %d, %d bytes", from, m.MessageID, len(b))
				}
				return c.fault
			},
		}
		found := conv.found(config, machine.Facts{Vantage: machine.VantageA}, machine.A)
		if _, is := found[c.rule]; is != (c.rule != "") || asked != 1 {
			t.Errorf("fault %d of %s: found %v, asked %d times", c.fault, c.build, slices.Sorted(maps.Keys(found)), asked)
		}
	}
}

// TestVersionsProven: a fault of the window names the versions that have that window.
func TestVersionsProven(t *testing.T) {
	for _, c := range []struct{ build, says string }{
		{"2.2.1", "releases 2.1.0 to 2.2.1"},
		{"2.1.0", "releases 2.1.0 to 2.2.1"},
		{"dev-n", "source builds of July to November 2023"},
		{"dev-d", "source builds of February to July 2023"},
	} {
		conv := &conversation{t: t, codec: speaker(t, c.build).Codec}
		conv.welcome()
		for id := uint16(2); id <= 40; id++ {
			conv.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 3}, byte(id))
			conv.send(machine.B, wire.Message{Type: wire.Ack, Last: id, AckBits: 1<<min(id, 16) - 1, Cause: id})
		}
		// The bits move by 37 modulo 32 only. So some of the ids in between look received. This one does
		// too: it is acked and refused.
		conv.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 77, MessageID: 3}, 9)
		conv.send(machine.B, wire.Message{Type: wire.Ack, Last: 77, AckBits: 0xffe0, Cause: 77})
		conv.wait(time.Second)
		conv.send(machine.A, wire.Message{Type: wire.Reliable, Sequence: 78, MessageID: 3}, 9)
		config := riptide.Config{Senders: [2]riptide.Speaker{speaker(t, c.build), speaker(t, c.build)}}
		tr := tracker.New(config, machine.Facts{Vantage: machine.VantageB})
		var out machine.Effects
		for i := range conv.out {
			tr.Observe(&conv.out[i], &out)
		}
		tr.Finish(&out)
		found := false
		for _, a := range out.Anomalies {
			if a.Rule.ID == "riptide-acked-not-delivered" {
				found = true
				if said := a.Rule.Say(1, a.Figures); !strings.HasSuffix(said, ": "+c.says) {
					t.Errorf("%s: %q, expected %q", c.build, said, c.says)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing was acked and not delivered", c.build)
		}
	}
}
