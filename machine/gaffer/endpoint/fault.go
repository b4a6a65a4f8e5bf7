package endpoint

import (
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Fault is one named mistake of an implementation, as a policy of the reference
// endpoint (Options.Fault). Everything else of the endpoint stays right.
type Fault struct {
	machine.Fault

	rules    func(r *gaffer.Rules)
	messages func(o *messages.Options)
	header   func(e *Endpoint, h *wire.Header)
	// drops reports whether a packet is treated as stale.
	drops func(e *Endpoint, sequence uint32) bool
	// fragment changes the order and the headers of outgoing fragments.
	fragment func(pk *wire.Packet) (id int)
	// forgets reports whether all that was received is forgotten before a packet is entered.
	forgets    func(e *Endpoint, number int64) bool
	jumped     func(e *Endpoint, newest uint32) // after a packet that is more than one ahead of newest
	overwrites bool                             // a packet older than the window takes the slot of a newer one
	emptyLast  bool                             // where the size of the data is a multiple, an empty fragment follows
	perPart    bool                             // the sequence number steps with every fragment
	early      bool                             // a packet is received with its first fragment
	ignoreAcks bool                             // acks settle no message
}

const (
	faultEvery = 50  // packets between two slips of faults that happen now and then
	resetAfter = 30  // packets before sequence-reset begins anew
	forgetAt   = 100 // the peer's packet at which received-reset forgets
)

// Faults lists all faults.
var Faults = []*Fault{
	{
		Fault:  machine.Fault{Name: "ack-bit-off-by-one", Doc: "bit n of ack_bits says ack-n-1"},
		header: func(_ *Endpoint, h *wire.Header) { h.AckBits >>= 1 },
	},
	{
		Fault: machine.Fault{Name: "ack-bits-reversed", Doc: "the bits of ack_bits stand in reverse order"},
		header: func(e *Endpoint, h *wire.Header) {
			h.AckBits = bits.Reverse64(h.AckBits) >> (64 - e.state.Rules.AckBits)
		},
	},
	{
		Fault:  machine.Fault{Name: "ack-newest-missing", Doc: "bit 0, the newest packet itself, is never set"},
		header: func(_ *Endpoint, h *wire.Header) { h.AckBits &^= 1 },
	},
	{
		Fault:  machine.Fault{Name: "ack-bits-cut", Doc: "only half of ack_bits is filled"},
		header: func(e *Endpoint, h *wire.Header) { h.AckBits &= 1<<(e.state.Rules.AckBits/2) - 1 },
	},
	{
		Fault: machine.Fault{Name: "ack-last-bit-missing", Doc: "the loop over ack_bits ends one bit early"},
		header: func(e *Endpoint, h *wire.Header) {
			h.AckBits &^= 1 << (e.state.Rules.AckBits - 1)
		},
	},
	{
		Fault:  machine.Fault{Name: "ack-bytes-swapped", Doc: "ack is written with its high byte first"},
		header: func(_ *Endpoint, h *wire.Header) { h.Ack = uint32(bits.ReverseBytes16(uint16(h.Ack))) },
	},
	{
		Fault: machine.Fault{
			Name: "ack-low-byte", Doc: "ack is kept in one byte",
			Scenario: []string{"--rate", "100"},
		},
		header: func(e *Endpoint, h *wire.Header) {
			if h.Ack != e.state.Rules.Mask() {
				h.Ack &= 0xff
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "ack-gaps", Doc: "packets that were lost are acked with those around them",
			Scenario: []string{"--loss", "10%"},
		},
		header: func(e *Endpoint, h *wire.Header) {
			if h.AckBits != 0 {
				h.AckBits |= 1<<(bits.Len64(h.AckBits)-1) - 1
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "ack-last-not-newest", Doc: "ack is the last packet received, not the newest",
			Scenario: []string{"--jitter", "40ms"},
		},
		header: func(e *Endpoint, h *wire.Header) {
			if back := uint(e.state.Rules.Distance(h.Ack, e.last)); back > 0 && back < 32 && e.state.Has(e.last) {
				h.Ack = e.last
				h.AckBits >>= back
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "ack-one-late", Doc: "a header says what was received when the one before it was sent",
			Explained: "an endpoint may read its socket after it sends, and then says just this",
		},
		header: func(e *Endpoint, h *wire.Header) {
			was := e.before
			e.before = *h
			if was != (wire.Header{}) {
				h.Ack, h.AckBits = was.Ack, was.AckBits
			}
		},
	},
	{
		Fault: machine.Fault{
			Name:     "stale-entry-kept",
			Doc:      "a newer sequence does not clear the entries before it: those of one wrap ago come back",
			Scenario: []string{"--loss", "98%", "--rate", "6000", "--payload", "4-4", "--duration", "26s"},
		},
		rules: func(r *gaffer.Rules) { r.NoStaleClear = true },
	},
	{
		Fault: machine.Fault{
			Name: "stale-entry-overwrites", Doc: "a packet older than the window is entered, in the slot of a newer one",
			Scenario: []string{"--rate", "2000", "--payload", "4-4", "--jitter", "0ms/200ms", "--duration", "3s"},
		},
		overwrites: true,
	},
	{
		Fault: machine.Fault{
			Name: "window-clears-one-more", Doc: "a jump of the window clears the newest packet before it as well",
			Scenario: []string{"--loss", "10%"},
		},
		jumped: func(e *Endpoint, newest uint32) { e.state.Withdraw(newest) },
	},
	{
		Fault:   machine.Fault{Name: "received-reset", Doc: "at packet 100 all that was received is forgotten"},
		forgets: func(e *Endpoint, number int64) bool { return e.newest64 < forgetAt && number >= forgetAt },
	},
	{
		Fault: machine.Fault{
			Name: "wrap-forgets", Doc: "all that was received is forgotten when the peer's numbers wrap",
			Scenario: []string{"--first", "65300"},
		},
		forgets: func(e *Endpoint, number int64) bool {
			width := e.state.Rules.SequenceBits
			return e.newest64 >= 0 && number>>width > e.newest64>>width
		},
	},
	{
		Fault: machine.Fault{
			Name: "wrap-compare", Doc: "sequences are compared as plain numbers: behind the wrap all are stale",
			Explained: "its application may have refused all of them",
			Scenario:  []string{"--first", "32000", "--rate", "2000", "--payload", "4-4", "--duration", "20s"},
		},
		drops: func(e *Endpoint, sequence uint32) bool {
			newest := e.state.NewestReceived()
			return e.newest64 >= 0 && newest > sequence && newest-sequence >= uint32(e.state.Rules.Received)
		},
	},
	{
		Fault: machine.Fault{Name: "sequence-skipped", Doc: "now and then the sequence number steps by two"},
		header: func(e *Endpoint, h *wire.Header) {
			h.Sequence = (h.Sequence + uint32(e.next64/faultEvery)) & e.state.Rules.Mask()
		},
	},
	{
		Fault: machine.Fault{
			Name: "sequence-repeated", Doc: "now and then a packet has the number of the one before it",
		},
		header: func(e *Endpoint, h *wire.Header) {
			if e.next64%faultEvery == faultEvery-1 {
				h.Sequence = (h.Sequence - 1) & e.state.Rules.Mask()
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "sequence-reset", Doc: "after 30 packets the numbers begin at 0 again, and nothing else does",
		},
		header: func(e *Endpoint, h *wire.Header) {
			if e.next64 >= resetAfter {
				h.Sequence = (h.Sequence - resetAfter) & e.state.Rules.Mask()
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "fragment-numbers", Doc: "the sequence number steps with every fragment, not with every packet",
			Scenario: []string{"--protocol", "gaffer:reliable", "--payload", "600-3000", "--rate", "30"},
		},
		perPart: true,
		header: func(e *Endpoint, h *wire.Header) {
			h.Sequence = (h.Sequence + e.extraParts) & e.state.Rules.Mask()
		},
	},
	{
		Fault: machine.Fault{
			Name: "fragment-empty-last", Doc: "data that fills its last fragment is followed by an empty one",
			Scenario: []string{"--protocol", "gaffer:reliable", "--payload", "2048-2048", "--rate", "30"},
		},
		emptyLast: true,
	},
	{
		Fault: machine.Fault{
			Name: "fragment-acked-early", Doc: "a packet counts as received with the first of its fragments",
			Scenario: []string{
				"--protocol", "gaffer:reliable", "--payload", "1200-3000", "--rate", "30",
				"--loss", "15%",
			},
		},
		early: true,
	},
	{
		Fault: machine.Fault{
			Name: "fragments-reversed", Doc: "the fragments of a packet leave in reverse order",
			Scenario: []string{"--protocol", "gaffer:reliable", "--payload", "1200-3000", "--rate", "30"},
		},
		fragment: func(pk *wire.Packet) int { return pk.FragmentCount - 1 - pk.FragmentID },
	},
	{
		Fault: machine.Fault{
			Name: "fragment-count", Doc: "fragments name a count that is one too large: no packet is ever whole",
			Scenario: []string{"--protocol", "gaffer:reliable", "--payload", "1200-3000", "--rate", "30"},
		},
		fragment: func(pk *wire.Packet) int {
			if pk.FragmentID == 0 {
				pk.FragmentCount++
			}
			return pk.FragmentID
		},
	},
	{
		Fault: machine.Fault{
			Name: "message-window", Doc: "messages go out that the receiver cannot buffer",
			Scenario: []string{
				"--protocol", "gaffer:messages", "--messages", "400", "--outage", "2s,1500ms,4s",
				"--payload", "0-0",
			},
		},
		messages: func(o *messages.Options) { o.NoWindow = true },
	},
	{
		Fault: machine.Fault{
			Name: "message-resend-early", Doc: "messages are sent again after half the time",
			Scenario: []string{
				"--protocol", "gaffer:messages", "--messages", "20", "--delay", "60ms",
				"--payload", "0-0",
			},
		},
		messages: func(o *messages.Options) { o.Resend.After = 50 * time.Millisecond },
	},
	{
		Fault: machine.Fault{
			Name: "message-resend-late", Doc: "messages are sent again after four times the time",
			Scenario: []string{
				"--protocol", "gaffer:messages", "--messages", "20", "--loss", "30%",
				"--payload", "0-0",
			},
		},
		messages: func(o *messages.Options) { o.Resend.After = 400 * time.Millisecond },
	},
	{
		Fault: machine.Fault{
			Name: "message-resend-slip-early", Doc: "one message in twenty is sent again after half the time of the others",
			Scenario: []string{
				"--protocol", "gaffer:resend", "--messages", "20", "--delay", "60ms",
				"--payload", "0-0",
			},
		},
		messages: func(o *messages.Options) { o.ResendSlip = messages.ResendEarly },
	},
	{
		Fault: machine.Fault{
			Name: "message-resend-slip-never", Doc: "one message in twenty is never sent again",
			Scenario: []string{
				"--protocol", "gaffer:resend", "--messages", "20", "--loss", "30%",
				"--payload", "0-0",
			},
		},
		messages: func(o *messages.Options) { o.ResendSlip = messages.ResendNever },
	},
	{
		Fault: machine.Fault{
			Name: "message-resend-slip-storm", Doc: "one message in twenty goes into every packet until it is acked",
			Scenario: []string{
				"--protocol", "gaffer:resend", "--messages", "20", "--delay", "60ms",
				"--payload", "0-0",
			},
		},
		messages: func(o *messages.Options) { o.ResendSlip = messages.ResendStorm },
	},
	{
		Fault: machine.Fault{
			Name: "message-resend-without-end", Doc: "messages are sent again though they are acked",
			Scenario: []string{"--protocol", "gaffer:messages", "--messages", "5", "--payload", "0-0"},
		},
		ignoreAcks: true,
	},
	{
		Fault: machine.Fault{
			Name: "message-type", Doc: "now and then a message has a type that does not exist",
			Scenario: []string{"--protocol", "gaffer:simple", "--messages", "20", "--payload", "0-0"},
		},
		messages: func(o *messages.Options) { o.TypeSlips = true },
	},
	{
		Fault: machine.Fault{
			Name: "message-run-unbounded", Doc: "a packet carries all unacked messages, however large it gets",
			Explained: "the simple scheme is just this, so its sender breaks no rule: see the finding message-death-spiral",
			Scenario: []string{
				"--protocol", "gaffer:simple", "--messages", "240", "--payload", "0-0",
				"--bandwidth", "600000", "--outage", "2s,1200ms",
			},
		},
		messages: func(o *messages.Options) { o.Budget = 60000 },
	},
	{
		Fault: machine.Fault{
			Name: "duplicate-delivered", Doc: "a packet that comes again is handed over again",
			Unobservable: "what the application is handed is not on the wire",
			Scenario:     []string{"--dup", "10%"},
		},
		rules: func(r *gaffer.Rules) { r.DeliverDuplicates = true },
	},
	{
		Fault: machine.Fault{
			Name: "stale-delivered", Doc: "a packet older than the window is handed over",
			Unobservable: "what the application is handed is not on the wire, and no header speaks of a packet that old",
		},
		rules: func(r *gaffer.Rules) { r.DeliverStale = true },
	},
	{
		Fault: machine.Fault{
			Name: "window-half", Doc: "the received buffer holds half of the entries",
			Unobservable: "headers speak of the newest packets only, and those fit",
		},
		rules: func(r *gaffer.Rules) { r.Received /= 2 },
	},
}

// LookupFault returns the fault of a name. It returns nil if there is none.
func LookupFault(name string) *Fault { return machine.LookupFault(Faults, name) }
