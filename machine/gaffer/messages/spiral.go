package messages

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// PacketMost is the largest UDP payload in bytes that fits one IPv4 packet on Ethernet.
// That is 1,500 bytes less 20 of IPv4 header and 8 of UDP header.
//
// Source: law, RFC 894: an Ethernet frame carries an IP packet of at most 1,500 bytes
const PacketMost = 1500 - 20 - 8

// MessageSpiral is the rule "message-death-spiral".
var MessageSpiral = &machine.Rule{
	ID: "message-death-spiral", Severity: machine.Warn,
	Summary: "packets exceed the MTU because each of them carries all unacked messages",
	Explain: `Packets exceed 1,472 bytes of payload because they carry unacked messages again. For example, no ack comes for a second, and the sender has 60 new messages of 40 bytes. In the article's simple scheme each packet carries all of them, so it has grown to 2,400 bytes. IP cuts it in two, and the loss of either part loses the packet. So larger packets are lost more often, fewer messages are acked, and the next packet is larger still. The article calls it a potential death spiral.

ackscope adds up the messages that an earlier packet had carried. It reports a packet that would fit one IPv4 packet on Ethernet without them. The finding is certain where the profile has a schema of the messages. Without one, ackscope takes all messages of a packet for equally large, and the finding is likely.

Bound the messages of a packet: the oldest n, or what fits 1,200 bytes. Better, give each message an id, and send it again only after a resend time.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s above %s, the largest %s: %s, %.0f of them sent before",
			machine.Count(n, "packet", "packets"),
			machine.Count(PacketMost, "byte", "bytes"),
			machine.Count(uint64(worst[0]), "byte", "bytes"),
			machine.Count(uint64(worst[1]), "message", "messages"),
			worst[2],
		)
	},
}

// run is the run of messages that one packet of the simple scheme carries.
type run struct {
	count  int         // messages
	again  int         // of them, those that an earlier packet carried
	bits   int         // of these; -1 if some were not read
	before machine.Ref // the newest earlier packet with one of them
}

// add counts a message. If only its id is known, m is nil.
func (r *run) add(c *Lane, id uint16, m *wire.Message) {
	r.count++
	l := c.find(c.Unwrap(id))
	if !c.Started || l == nil || l.sends.count == 0 {
		return
	}
	r.again++
	r.before = max(r.before, l.sends.lastRef)
	switch {
	case m == nil || m.End < 0:
		r.bits = -1
	case r.bits >= 0:
		r.bits += m.End - m.Bit
	}
}

// report reports a packet that exceeds PacketMost by messages that were sent before.
func (r *run) report(c *Lane, k *Carrier, out *machine.Effects) {
	if k.Length <= PacketMost || r.again == 0 {
		return
	}
	again, sure := r.bits/8, machine.Certain
	if r.bits < 0 {
		again, sure = len(k.Payload)*r.again/r.count, machine.Likely
	}
	if k.Length-again > PacketMost {
		return // too large without them
	}
	out.At(k.At, k.Ref).Report(MessageSpiral, c.From, sure, r.before, float64(k.Length), float64(r.count),
		float64(r.again))
}
