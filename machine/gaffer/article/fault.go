package article

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Fault is one named mistake of an implementation, as a policy of one of the package's
// references (the options' Fault). Everything else of the endpoint stays right.
type Fault struct {
	machine.Fault

	of program

	// Of slices.
	blocks    func(o *BlockOptions)
	slice     func(b *Blocks, pk *wire.Packet, data []byte) []byte // changes what is sent
	backwards bool                                                 // the round goes from the last slice to the first
	early     bool                                                 // the next block begins with one slice not acked
	skips     bool                                                 // a number of a block is left out
	ack       func(b *Blocks, c *sliceClaim)                       // changes an ack
	// Of fragments.
	reversed bool // a packet's fragments leave from the last to the first
	fragment func(pk *wire.Packet)
	whole    int               // packets of up to so many fragments leave whole
	always   bool              // packets that fit into a datagram leave as one fragment
	number   func(int64) int64 // the sequence that a packet is sent under
	// Of the handshake.
	connect    func(o *ConnectOptions)
	salts      func(l *link, pk *wire.Packet) // changes a packet's salts
	asksOn     bool                           // a client goes on asking after it was challenged
	unanswered bool                           // a server takes a client in before it answers the challenge
	restless   bool                           // a side that has left goes on sending
}

// program is one of the series' programs.
type program uint8

const (
	programSlices program = iota
	programFragments
	programConnect
)

// programOf returns the program whose packets a profile reads.
func programOf(p *wire.Profile) program {
	switch {
	case p.Slices > 0:
		return programSlices
	case p.Handshake:
		return programConnect
	}
	return programFragments
}

// Fits reports whether a fault is one of the reference that speaks a profile.
func (f *Fault) Fits(p *wire.Profile) bool { return f.of == programOf(p) }

// rightAll is the fault of endpoints that do everything right.
var rightAll = &Fault{}

// slipEvery is how many packets or blocks lie between two slips of faults that happen
// now and then. A receiver may not recover from a slip, so the first of them comes once
// the run is well under way.
//
// Source: bound, slips of a run with a fault
const slipEvery = 8

// slips reports whether number n is one of those.
func slips(n int64) bool { return n%slipEvery == slipEvery-1 }

func shows(flags ...string) []string { return flags }

// Faults lists all faults.
var Faults = []*Fault{
	{
		Fault: machine.Fault{
			Name: "slice-resent-early", Doc: "slices are sent again after half the time",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "500-4000", "--delay", "60ms"),
		},
		of: programSlices, blocks: func(o *BlockOptions) { o.Resend /= 2 },
	},
	{
		Fault: machine.Fault{
			Name: "slice-order-reversed", Doc: "the slices of a block leave from the last to the first",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "500-12000"),
		},
		of: programSlices, backwards: true,
	},
	{
		Fault: machine.Fault{
			Name: "slice-count-differs", Doc: "every other slice names a count that is one too large",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "500-12000"),
		},
		of: programSlices, slice: func(b *Blocks, pk *wire.Packet, data []byte) []byte {
			if pk.SliceID%2 == 1 && pk.SliceID < pk.SliceCount-1 && pk.SliceCount < b.options.Profile.Slices {
				pk.SliceCount++
			}
			return data
		},
	},
	{
		Fault: machine.Fault{
			Name: "slice-changed", Doc: "a slice that is sent again has another content",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "500-4000", "--delay", "60ms"),
		},
		of: programSlices, slice: func(b *Blocks, pk *wire.Packet, data []byte) []byte {
			if !b.send.round.sent.has(pk.SliceID) {
				return data
			}
			changed := append([]byte(nil), data...)
			changed[0] ^= 1
			return changed
		},
	},
	{
		Fault: machine.Fault{
			Name: "block-early", Doc: "now and then a block begins though one slice of the block before is not acked",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "2000-12000"),
		},
		of: programSlices, early: true,
	},
	{
		Fault: machine.Fault{
			Name: "block-skipped", Doc: "now and then the number of a block steps by two",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "500-4000"),
		},
		of: programSlices, skips: true,
	},
	{
		Fault: machine.Fault{
			Name: "slice-ack-reversed", Doc: "now and then a block's acks have their bits in reverse order",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "4000-20000"),
		},
		of: programSlices, ack: func(_ *Blocks, c *sliceClaim) {
			came := sliceSet{}
			for k := range c.count {
				if c.came.has(c.count - 1 - k) {
					came.add(k)
				}
			}
			c.came = came
		},
	},
	{
		Fault: machine.Fault{
			Name: "slice-ack-gaps", Doc: "now and then a block's lost slices are acked with those behind them",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "4000-20000", "--loss", "10%"),
		},
		of: programSlices, ack: func(_ *Blocks, c *sliceClaim) {
			for k, filled := c.count-1, false; k >= 0; k-- {
				if filled = filled || c.came.has(k); filled {
					c.came.add(k)
				}
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "slice-ack-forgets", Doc: "now and then a block's acks name only the slices that came since the last ack",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "12000-30000"),
		},
		of: programSlices, ack: func(b *Blocks, c *sliceClaim) {
			now := c.came
			if b.receive.saidOf == c.chunk && c.came != allSlices(c.count) {
				c.came = c.came.less(&b.receive.said)
			}
			if c.came == (sliceSet{}) {
				c.came = now
			}
			b.receive.saidOf, b.receive.said = c.chunk, now
		},
	},
	{
		Fault: machine.Fault{
			Name: "slice-ack-early", Doc: "acks of slices go out more than twice as often",
			Scenario: shows("--protocol", "gaffer:article-slices", "--block", "12000-30000"),
		},
		of: programSlices, blocks: func(o *BlockOptions) { o.AckEvery = 40 * time.Millisecond },
	},
	{
		Fault: machine.Fault{
			Name: "fragment-order-reversed", Doc: "the fragments of a packet leave from the last to the first",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "500-4000"),
		},
		of: programFragments, reversed: true,
	},
	{
		Fault: machine.Fault{
			Name: "fragment-count-differs", Doc: "the first fragment of a packet names a count that is one too large",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "500-4000"),
		},
		of: programFragments, fragment: func(pk *wire.Packet) {
			if pk.FragmentID == 0 {
				pk.FragmentCount++
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "fragment-number-differs", Doc: "now and then the fragments of a packet bear the number of the next packet",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "500-4000"),
		},
		of: programFragments, fragment: func(pk *wire.Packet) {
			if slips(int64(pk.Sequence)) {
				pk.Sequence = (pk.Sequence + 1) & 0xffff
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "packet-too-large", Doc: "a packet of up to two fragments leaves whole",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "500-4000"),
		},
		of: programFragments, whole: 2,
	},
	{
		Fault: machine.Fault{
			Name: "fragment-needless", Doc: "a packet that fits into a datagram leaves as its only fragment",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "200-1000"),
		},
		of: programFragments, always: true,
	},
	{
		Fault: machine.Fault{
			Name: "packet-skipped", Doc: "now and then the number of a packet steps by two",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "200-2000"),
		},
		of: programFragments, number: func(n int64) int64 { return n + n/slipEvery },
	},
	{
		Fault: machine.Fault{
			Name: "packet-repeated", Doc: "now and then a packet has the number of the one before it",
			Scenario: shows("--protocol", "gaffer:article-fragments", "--payload", "200-2000"),
		},
		of: programFragments, number: func(n int64) int64 {
			if slips(n) {
				return n - 1
			}
			return n
		},
	},
	{
		Fault: machine.Fault{
			Name: "connect-early", Doc: "requests and responses are sent again after half the time",
			Scenario: shows("--protocol", "gaffer:article-connect", "--stay", "1s", "--delay", "80ms"),
		},
		of: programConnect, connect: func(o *ConnectOptions) { o.Every /= 2 },
	},
	{
		Fault: machine.Fault{
			Name: "connect-keep-alive-early", Doc: "keep-alives are sent more than twice as often",
			Scenario: shows("--protocol", "gaffer:article-connect"),
		},
		of: programConnect, connect: func(o *ConnectOptions) { o.KeepAlive = 400 * time.Millisecond },
	},
	{
		Fault: machine.Fault{
			Name: "connect-timeout-ignored", Doc: "a client never gives up on a silent server",
			Scenario: shows("--protocol", "gaffer:article-connect", "--outage", "3s,1h", "--duration", "20s"),
		},
		of: programConnect, connect: func(o *ConnectOptions) { o.Timeout = 1000 * time.Hour },
	},
	{
		Fault: machine.Fault{
			Name: "connect-farewells", Doc: "a client sends 20 disconnects when it leaves",
			Scenario: shows("--protocol", "gaffer:article-connect", "--stay", "1s"),
		},
		of: programConnect, connect: func(o *ConnectOptions) { o.Farewells = 20 },
	},
	{
		Fault: machine.Fault{
			Name: "connect-after-farewell", Doc: "a client that has left goes on sending keep-alives",
			Scenario: shows("--protocol", "gaffer:article-connect", "--stay", "1s"),
		},
		of: programConnect, restless: true,
	},
	{
		Fault: machine.Fault{
			Name: "connect-asks-on", Doc: "a client that was challenged goes on sending requests",
			Scenario: shows("--protocol", "gaffer:article-connect", "--stay", "1s", "--delay", "120ms"),
		},
		of: programConnect, asksOn: true,
	},
	{
		Fault: machine.Fault{
			Name: "connect-salts-combined", Doc: "a response bears the XOR of both salts in place of the server's",
			Scenario: shows("--protocol", "gaffer:article-connect", "--stay", "1s"),
		},
		of: programConnect, salts: func(l *link, pk *wire.Packet) {
			if pk.Handshake == wire.ConnectResponse {
				pk.ChallengeSalt = l.client ^ l.server
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "connect-salts-swapped", Doc: "a response has both salts in the other order",
			Scenario: shows("--protocol", "gaffer:article-connect", "--duration", "20s"),
		},
		of: programConnect, salts: func(l *link, pk *wire.Packet) {
			if pk.Handshake == wire.ConnectResponse {
				pk.ClientSalt, pk.ChallengeSalt = l.server, l.client
			}
		},
	},
	{
		Fault: machine.Fault{
			Name: "connect-unanswered", Doc: "a server takes a client in before it answers the challenge",
			Scenario: shows("--protocol", "gaffer:article-connect", "--stay", "1s", "--faulty", "b"),
		},
		of: programConnect, unanswered: true,
	},
	{
		Fault: machine.Fault{
			Name: "connect-slots-ignored", Doc: "a server takes in more clients than it has slots",
			Unobservable: "how many slots a server has is not on the wire",
			Scenario:     shows("--protocol", "gaffer:article-connect", "--faulty", "b"),
		},
		of: programConnect, connect: func(o *ConnectOptions) { o.Slots += 1000 },
	},
}

// LookupFault returns the fault of a name. It returns nil if there is none.
func LookupFault(name string) *Fault { return machine.LookupFault(Faults, name) }
