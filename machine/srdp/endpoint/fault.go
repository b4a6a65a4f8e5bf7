package endpoint

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Fault is one named way in which an implementation goes wrong. Options.Fault
// applies it to the reference endpoint, which does everything else right.
type Fault struct {
	machine.Fault

	// ack changes the acknowledgement of the n-th copy that arrived. It returns
	// how often to send it.
	ack func(pk *wire.Packet, n uint64, fate srdp.Fate) (times int)
	// answer changes the bytes of the n-th copy's acknowledgement. data changes
	// the bytes of a packet's first copy, which later copies repeat.
	answer func(p *wire.Profile, n uint64, b []byte)
	data   func(p *wire.Profile, s *srdp.Sent)
	// copied changes a packet before it is sent again; next is the counter.
	copied  func(p *wire.Profile, s *srdp.Sent, next uint16)
	next    func(id64 int64) int64                   // returns the id of a packet from the counter
	timeout func(chosen time.Duration) time.Duration // changes the timeout after the second copy of a packet

	ignoresAcks    bool // acknowledgements settle nothing
	ignoresRepeats bool // packets that were given up are sent again
	ignoresOrder   bool // ordered packets do not wait for each other
	forgets        bool // the list of received ids stays empty
	samples        bool // packets of several copies are measured, from the first copy
}

const faultEvery = 10 // an occasional fault happens once in so many packets

func slips(n uint64) bool { return n%faultEvery == faultEvery-1 }

// Faults lists all faults of the reference endpoint.
var Faults = []*Fault{
	{
		Fault: machine.Fault{Name: "ack-missing", Doc: "one copy in ten is not acknowledged"},
		ack: func(_ *wire.Packet, n uint64, _ srdp.Fate) int {
			if slips(n) {
				return 0
			}
			return 1
		},
	},
	{
		Fault: machine.Fault{Name: "ack-twice", Doc: "one copy in ten is acknowledged twice"},
		ack: func(_ *wire.Packet, n uint64, _ srdp.Fate) int {
			if slips(n) {
				return 2
			}
			return 1
		},
	},
	{
		Fault: machine.Fault{
			Name: "duplicate-unanswered", Doc: "a copy that is dropped as a duplicate is not acknowledged",
			Scenario: []string{"--services", "dont-duplicate", "--dup", "15%"},
		},
		ack: func(_ *wire.Packet, _ uint64, fate srdp.Fate) int {
			if fate != srdp.Delivered {
				return 0
			}
			return 1
		},
	},
	{
		Fault: machine.Fault{Name: "ack-id-off-by-one", Doc: "one acknowledgement in ten names the id before"},
		ack: func(pk *wire.Packet, n uint64, _ srdp.Fate) int {
			if slips(n) {
				pk.ID = (pk.ID - 1) &^ wire.AckMark
			}
			return 1
		},
	},
	{
		Fault: machine.Fault{
			Name: "ack-mark-missing", Doc: "the top bit of the id is clear in one acknowledgement in ten",
		},
		answer: func(p *wire.Profile, n uint64, b []byte) {
			if slips(n) {
				b[srdp.TopByte(p)] &^= 0x80
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "ack-byte-order", Doc: "acknowledgements have the id in the other byte order",
		},
		answer: func(_ *wire.Profile, _ uint64, b []byte) { b[1], b[2] = b[2], b[1] },
	},
	{
		Fault: machine.Fault{
			Name: "resend-early", Doc: "after its second copy a packet is sent again after half the time",
			Scenario: []string{"--timeout", "400ms", "--loss", "20%"},
		},
		timeout: func(d time.Duration) time.Duration { return d / 2 },
	},
	{
		Fault: machine.Fault{
			Name: "resend-late", Doc: "after its second copy a packet is sent again after four times the time",
			Scenario: []string{"--timeout", "100ms", "--loss", "20%"},
		},
		timeout: func(d time.Duration) time.Duration { return 4 * d },
	},
	{
		Fault: machine.Fault{
			Name: "resend-without-end", Doc: "packets are sent again though they are acknowledged",
			Scenario: []string{"--timeout", "150ms", "--rate", "20"},
		},
		ignoresAcks: true,
	},
	{
		Fault: machine.Fault{
			Name: "repeats-ignored", Doc: "packets that were given up after the last time that was asked for are sent again",
			Scenario: []string{"--repeats", "2", "--timeout", "150ms", "--loss", "40%", "--services", "order"},
		},
		ignoresRepeats: true,
	},
	{
		Fault: machine.Fault{
			Name: "resend-renumbered", Doc: "a packet that is sent again has the id that the next new one has too",
			Scenario: []string{"--loss", "20%", "--timeout", "150ms"},
		},
		copied: func(p *wire.Profile, s *srdp.Sent, next uint16) { renumber(p, s.Datagram, next) },
	},
	{
		Fault: machine.Fault{
			Name: "resend-changed", Doc: "a packet that is sent again has other bytes",
			Scenario: []string{"--loss", "20%", "--timeout", "150ms"},
		},
		copied: func(p *wire.Profile, s *srdp.Sent, _ uint16) {
			if at := p.HeaderLen(); len(s.Datagram) > at {
				s.Datagram[at] ^= uint8(s.Copies)
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "resend-without-flags", Doc: "a packet that is sent again has lost its flags",
			Scenario: []string{"--loss", "20%", "--timeout", "150ms", "--services", "both"},
		},
		copied: func(p *wire.Profile, s *srdp.Sent, _ uint16) { s.Datagram[p.HeaderLen()-1] = 0 },
	},
	{
		Fault: machine.Fault{
			Name: "id-skipped", Doc: "now and then the counter steps by two",
			Explained: "ids are counted for all peers together: those may have gone to another, in a flow that was not captured",
		},
		next: func(id64 int64) int64 {
			if id64%faultEvery == 0 {
				return id64 + 1
			}
			return id64
		},
	},
	{
		Fault: machine.Fault{Name: "id-repeated", Doc: "now and then a packet has the id of the one before it"},
		data: func(p *wire.Profile, s *srdp.Sent) {
			if slips(uint64(s.ID64)) {
				renumber(p, s.Datagram, s.ID-1)
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "wrap-at-16-bits", Doc: "ids go on to 65535: above 32767 data looks like acknowledgements",
			Scenario: []string{"--first", "32700"},
		},
		data: func(p *wire.Profile, s *srdp.Sent) {
			if s.ID64>>15&1 == 1 {
				s.Datagram[srdp.TopByte(p)] |= 0x80
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "order-ignored", Doc: "ordered packets do not wait for each other",
			Scenario: []string{"--services", "order", "--loss", "10%"},
		},
		ignoresOrder: true,
	},
	{
		Fault: machine.Fault{
			Name: "duplicate-delivered", Doc: "a packet that asks to come once is handed over again",
			Unobservable: "what the application is handed is not on the wire, and each copy is acknowledged in any case",
			Scenario:     []string{"--services", "dont-duplicate", "--dup", "15%"},
		},
		forgets: true,
	},
	{
		Fault: machine.Fault{
			Name: "rtt-from-resent", Doc: "delays are measured by packets that were sent more than once",
			Explained: "the document leaves the choice of a timeout to the library, and the application may ask for any",
			Scenario:  []string{"--loss", "30%"},
		},
		samples: true,
	},
}

// LookupFault returns the fault with a name, or nil when there is none.
func LookupFault(name string) *Fault { return machine.LookupFault(Faults, name) }

// renumber writes another id into a data packet.
func renumber(p *wire.Profile, b []byte, id uint16) {
	high, low := byte(id>>8)&0x7f, byte(id)
	b[1], b[2] = high, low
	if p.LittleEndian {
		b[1], b[2] = low, high
	}
}
