package endpoint

import (
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Fault is one named way in which an implementation goes wrong. Options.Fault applies it to a
// reference endpoint. Everything else in the endpoint stays right.
type Fault struct {
	machine.Fault

	behaviour func(b *riptide.Behaviour)
	// ack changes the n-th Ack of its connection. It returns how often the Ack is sent.
	ack          func(m *wire.Message, n int, fresh bool) (times int)
	notify       func(m *wire.Message)
	sequence     func(sequence uint16) uint16
	resend       func(after time.Duration) time.Duration
	ping         func(m *wire.Message)
	interval     time.Duration // between heartbeats; 0: the library's
	ignoresAcks  bool          // Acks clear nothing
	noLimit      bool          // messages are never given up
	noTimeout    bool          // a silent peer is never given up
	ignoresPings bool          // heartbeats get no answer
}

const faultEvery = 10 // messages between two errors of an occasional fault

var lossy = []string{"--loss", "10%"}

// Faults lists all of them.
var Faults = []*Fault{
	{
		Fault: machine.Fault{Name: "ack-bit-off-by-one", Doc: "bit i of an Ack says last-i", Scenario: lossy},
		ack:   func(m *wire.Message, _ int, _ bool) int { m.AckBits = m.AckBits<<1 | 1; return 1 },
	},
	{
		Fault: machine.Fault{
			Name: "ack-bits-reversed", Doc: "the bits of an Ack stand in reverse order",
			Scenario: lossy,
		},
		ack: func(m *wire.Message, _ int, _ bool) int { m.AckBits = bits.Reverse16(m.AckBits); return 1 },
	},
	{
		Fault: machine.Fault{
			Name: "ack-newest-missing", Doc: "an Ack names the newest id but one",
			Scenario: lossy,
		},
		ack: func(m *wire.Message, _ int, _ bool) int { m.Last--; return 1 },
	},
	{
		Fault: machine.Fault{Name: "ack-missing", Doc: "one message in ten is not answered"},
		ack: func(_ *wire.Message, n int, _ bool) int {
			if n%faultEvery == faultEvery-1 {
				return 0
			}
			return 1
		},
	},
	{
		Fault: machine.Fault{Name: "ack-twice", Doc: "one message in ten is answered twice"},
		ack: func(_ *wire.Message, n int, _ bool) int {
			if n%faultEvery == faultEvery-1 {
				return 2
			}
			return 1
		},
	},
	{
		Fault: machine.Fault{
			Name: "duplicate-unanswered", Doc: "a message that came before is not answered again",
			Scenario: []string{"--dup", "15%"},
		},
		ack: func(_ *wire.Message, _ int, fresh bool) int {
			if fresh {
				return 1
			}
			return 0
		},
	},
	{
		Fault: machine.Fault{
			Name: "window-shift",
			Doc:  "the list of received ids keeps whole words at jumps of 32 and more: the library's own fault up to 2.2.1",
			Scenario: []string{
				"--protocol", "riptide:main", "--messages", "100", "--delay", "150ms",
				"--mix", "100/0/0", "--outage", "3s,500ms,4s", "--no-limits",
			},
		},
		behaviour: func(b *riptide.Behaviour) { b.ShiftFault = true },
	},
	{
		Fault: machine.Fault{
			Name: "newest-stays",
			Doc:  "the newest id stays where it is at jumps of 17 to 80: what release 2.0.0 makes of the notes' window",
			Scenario: []string{
				"--protocol", "riptide:notes", "--messages", "100", "--delay", "150ms",
				"--mix", "100/0/0", "--outage", "3s,400ms,2s",
			},
		},
		behaviour: func(b *riptide.Behaviour) {
			if b.Receive == riptide.ReceiveNotes {
				b.Receive = riptide.ReceiveWindow
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "older-ack-one-bit",
			Doc:  "an Ack older than the newest sets one bit, as in release 2.0.0: the notes add its 16 bits too",
			Scenario: []string{
				"--protocol", "riptide:notes", "--messages", "60", "--loss", "20%", "--delay", "60ms",
				"--jitter", "60ms", "--mix", "100/0/0",
			},
		},
		behaviour: func(b *riptide.Behaviour) {
			if b.Send == riptide.SendNotes {
				b.Send = riptide.SendOldestBit
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "merged-sequences",
			Doc:  "a message to several goes out with their sequences OR-ed: the library's own fault in 2.1.0",
			Scenario: []string{
				"--protocol", "riptide:2.2.1", "--clients", "4", "--messages", "40",
				"--faulty", "b", "--tap", "b",
			},
		},
		behaviour: func(b *riptide.Behaviour) { b.MergedSequences = true },
	},
	{
		Fault: machine.Fault{
			Name: "sequence-skipped", Doc: "now and then the sequence of reliable messages steps by two",
		},
		sequence: func(s uint16) uint16 { return s + s/faultEvery },
	},
	{
		Fault: machine.Fault{
			Name: "sequence-repeated", Doc: "now and then a message has the sequence of the one before it",
		},
		sequence: func(s uint16) uint16 {
			if s%faultEvery == faultEvery-1 {
				return s - 1
			}
			return s
		},
	},
	{
		Fault: machine.Fault{
			Name: "resend-early", Doc: "messages are sent again after half the time",
			Scenario: []string{"--loss", "15%", "--delay", "80ms", "--messages", "40", "--no-limits"},
		},
		resend: func(after time.Duration) time.Duration { return after / 2 },
	},
	{
		Fault: machine.Fault{
			Name: "resend-late", Doc: "messages are sent again a second too late",
			Scenario: []string{"--loss", "20%"},
		},
		resend: func(after time.Duration) time.Duration { return after + time.Second },
	},
	{
		Fault: machine.Fault{
			Name: "resend-without-end", Doc: "messages are sent again though they are acked",
			Scenario: []string{"--no-limits", "--messages", "5"},
		},
		ignoresAcks: true, noLimit: true,
	},
	{
		Fault: machine.Fault{
			Name: "attempts-ignored", Doc: "a message is sent again for ever",
			Scenario: []string{"--protocol", "riptide:2.0", "--outage", "3s,3s"},
		},
		noLimit: true,
	},
	{
		Fault:    machine.Fault{Name: "heartbeat-early", Doc: "heartbeats go out twice as often"},
		interval: riptide.HeartbeatInterval / 2,
	},
	{
		Fault: machine.Fault{Name: "ping-stays", Doc: "all heartbeats have the same id"},
		ping:  func(m *wire.Message) { m.Ping = 1 },
	},
	{
		Fault: machine.Fault{
			Name: "rtt-doubled", Doc: "the RTT that heartbeats tell is twice the measured one",
			Scenario: []string{"--delay", "200ms"},
		},
		ping: func(m *wire.Message) {
			if m.RTT > 0 {
				m.RTT *= 2
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "heartbeat-unanswered", Doc: "a server does not answer heartbeats",
			Scenario: []string{"--faulty", "b", "--tap", "b"},
		},
		ignoresPings: true,
	},
	{
		Fault: machine.Fault{
			Name: "timeout-ignored", Doc: "a silent peer is never given up",
			Scenario: []string{"--outage", "4s,14s", "--no-limits", "--duration", "20s"},
		},
		noTimeout: true, noLimit: true,
	},
	{
		Fault: machine.Fault{
			Name: "notify-bits-reversed", Doc: "the bits of notify headers stand in reverse order",
			Scenario: lossy,
		},
		notify: func(m *wire.Message) { m.AckBits = uint16(bits.Reverse8(uint8(m.AckBits))) },
	},
	{
		Fault: machine.Fault{
			Name: "notify-newest-missing", Doc: "a notify header names the newest id but one",
			Scenario: lossy,
		},
		notify: func(m *wire.Message) {
			if m.Last > 0 {
				m.Last--
				m.AckBits >>= 1
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "duplicate-delivered", Doc: "a message that came before is handed over again",
			Unobservable: "what the application is handed is not on the wire, and the Ack is the same",
			Scenario:     []string{"--dup", "15%"},
		},
	},
	{
		Fault: machine.Fault{
			Name: "bool-array-order", Doc: "the bits of bool arrays stand in reverse order",
			Unobservable: "no message says which of its values are bools: only a schema and the application tell",
		},
	},
}

// LookupFault returns the fault with a name, or nil.
func LookupFault(name string) *Fault { return machine.LookupFault(Faults, name) }
