package srdp

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Findings lists the rules that the tracker can report.
var Findings = []*machine.Rule{
	OrderBroken, OutOfTurn, IDReuse, WrapInFlight, AckIgnored, AckOfNothing, AckMissing, GaveUp, SpuriousEarly,
	SpuriousAckLost, ResentLoss,
	DeliveredAgain, PromiseForgotten, Oversize, CommandByte, UnknownFlags, ForeignDatagram, IDsMissing,
}

// OrderBroken is the rule "srdp-order-broken".
var OrderBroken = &machine.Rule{
	ID: "srdp-order-broken", Severity: machine.Error, Absence: true,
	Summary: "an ordered packet was sent while another one to the same receiver was in flight",
	Explain: `SRDP_ORDER promises that packets are received in the order sent. The way that the document gives for it is to have one such packet in flight to a receiver at a time: the next one waits until the first is acknowledged. Here it did not wait. If the first one is lost and sent again, the receiver hands over the second before it.

It is certain where the first packet was sent again after the second. Where it was not, its sender may have given it up: that is unlikely within a quarter of the time that an answer takes, from its first copy on, and possible later.

Keep a queue of ordered packets for each receiver, and send the next one when the acknowledgement of the one in flight is read, or when it is given up.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, id %.0f overtaken after %.1f ms", n, worst[0], worst[1])
	},
}

// OutOfTurn is the rule "srdp-out-of-order".
var OutOfTurn = &machine.Rule{
	ID: "srdp-out-of-order", Severity: machine.Warn,
	Summary: "an ordered packet reached its receiver after a later one",
	Explain: `The first copy of a packet with SRDP_ORDER that arrived came behind a later one's: the receiver, which has no means to put them in order, handed them over so. Either the sender had both in flight (see "srdp-order-broken"), or it gave the first one up, went on, and the network delivered it after all: with a limit to the repeats the promise cannot be kept.

At the receiver's own end the capture proves it. Elsewhere it is possible: acknowledgements can overtake each other too.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, id %.0f the furthest behind: %.0f ids", n, worst[1], worst[0])
	},
}

// IDReuse is the rule "srdp-id-reuse".
var IDReuse = &machine.Rule{
	ID: "srdp-id-reuse", Severity: machine.Error,
	Summary: "a packet id was used for other bytes than before",
	Explain: `A packet that is sent again has the same id and the same bytes. Here the same id came with other bytes, and the sender's ids had not gone all round in between: by the distance and the time, it is the same id and not that of the next round. The acknowledgement of the one takes the other out of the sent queue; a receiver that filters duplicates throws the second away, unread.

It is certain where the first packet still waited for its acknowledgement, or where the tap is at the sender and has seen all of its ids. Otherwise it is possible: the ids of a busy sender go round in packets to others, which this capture need not have.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, id %.0f again after %.0f ms", n, worst[1], worst[2])
	},
}

// WrapInFlight is the rule "srdp-wrap-in-flight".
var WrapInFlight = &machine.Rule{
	ID: "srdp-wrap-in-flight", Severity: machine.Warn,
	Summary: "the ids went all round while a packet still waited for its acknowledgement",
	Explain: `Packet ids have 15 bits, for all peers together. After 32,768 packets an id comes again; if the old packet of that id is still in the sent queue (a peer that does not answer, repeats without end), an acknowledgement can no longer tell the two apart.

Limit the repeats, or skip ids that are still in the queue.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, id %.0f again %.0f ms after its last copy", n, worst[1], worst[2])
	},
}

// AckIgnored is the rule "srdp-ack-ignored".
var AckIgnored = &machine.Rule{
	ID: "srdp-ack-ignored", Severity: machine.Warn, Resend: "ack-ignored",
	Summary: "a packet was sent again although its acknowledgement had reached the sender",
	Explain: `The tap is at the sender: the acknowledgement passed it, and much later than an application takes to look at its socket the packet was sent again. The sender does not find the id in its sent queue (the top bit not taken off? another byte order?), its application stood still, or its socket's buffer was full and dropped the acknowledgement.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, one in %.0f copies, the last %.0f ms after its acknowledgement", n,
			worst[0], worst[2])
	},
}

// AckOfNothing is the rule "srdp-ack-of-nothing".
var AckOfNothing = &machine.Rule{
	ID: "srdp-ack-of-nothing", Severity: machine.Warn, Absence: true,
	Summary: "an acknowledgement names an id that was not sent to who acknowledges it",
	Explain: `No packet of that id has passed the tap in the other direction of this flow. Either the capture lost it, or it was sent to another peer, or the receiver acknowledges what did not come (byte order, a wrong id). Packets from before the capture are left out of this.

It is certain where the tap is at the side that would have sent the packet.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d acknowledgements, the highest id %.0f", n, worst[0])
	},
}

// AckMissing is the rule "srdp-ack-missing".
var AckMissing = &machine.Rule{
	ID: "srdp-ack-missing", Severity: machine.Warn, Absence: true,
	Summary: "copies of packets reached their receiver and were not acknowledged",
	Explain: `The tap is at the receiver. A receiver acknowledges every copy of a data packet, duplicates too: otherwise its sender goes on sending. Here fewer acknowledgements left than copies came, and the receiver was still there. It filters duplicates before it acknowledges, it lost datagrams in its socket's buffer, or what came was not SRDP.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, of one %.0f copies", n, worst[0])
	},
}

// GaveUp is the rule "srdp-gave-up".
var GaveUp = &machine.Rule{
	ID: "srdp-gave-up", Severity: machine.Warn, Absence: true,
	Summary: "a packet was never acknowledged, and its sender stopped sending it",
	Explain: `No acknowledgement passed the tap, and the next copy did not come when it was due: the sender has reached its limit of repeats, or its application gave the packet up. Whether it arrived is not known, since the acknowledgements may have been lost. Away from the sender it is possible only: further copies may have been lost before the tap.

"ackscope state" shows the repeats that follow from such ends, and the timeout. Raise one of them if packets are given up on a path that works: with a share p of copies or acknowledgements lost, k copies all fail with p to the power of k.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, at most after %.0f copies in %.0f ms", n, worst[0], worst[2])
	},
}

// SpuriousEarly is the rule "srdp-spurious-early".
var SpuriousEarly = &machine.Rule{
	ID: "srdp-spurious-early", Severity: machine.Note, Resend: "late-ack",
	Summary: "packets were sent again while their acknowledgement was on its way",
	Explain: `The copy and the acknowledgement of an earlier one crossed in the network: nothing was lost, the timeout was shorter than what the packet and its acknowledgement took together. It costs bandwidth, and a receiver without SRDP_DONTDUPLICATE hands the packet over twice.

It is told by the acknowledgement coming sooner after the copy than any answer to it could, or by as many acknowledgements as copies in the end. Give a longer timeout, or leave it to the library (0), which takes the longest delay that it has observed of the address.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, one with %.0f copies too many, sent after %.0f ms", n, worst[0], worst[2])
	},
}

// SpuriousAckLost is the rule "srdp-spurious-ack-lost".
var SpuriousAckLost = &machine.Rule{
	ID: "srdp-spurious-ack-lost", Severity: machine.Note, Resend: "ack-lost",
	Summary: "packets were sent again because their acknowledgements were lost",
	Explain: `The packet had arrived: its acknowledgement passed the tap, and the copy came later than one that had crossed it could. So the acknowledgement was lost between the tap and the sender. That is what repeats are for; a receiver without SRDP_DONTDUPLICATE hands the packet over twice.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, of one %.0f acknowledgements", n, worst[0])
	},
}

// ResentLoss is the rule "srdp-resent-loss".
var ResentLoss = &machine.Rule{
	ID: "srdp-resent-loss", Severity: machine.Note, Resend: "lost", Absence: true,
	Summary: "packets were sent again because copies of them or their acknowledgements were lost",
	Explain: `Fewer acknowledgements passed the tap than copies: of each copy that is missing one, the copy or its acknowledgement was lost beyond the tap. Which of the two, only a capture at the receiver tells: there every copy that arrives is acknowledged.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, one in %.0f copies", n, worst[0])
	},
}

// DeliveredAgain is the rule "srdp-delivered-again".
var DeliveredAgain = &machine.Rule{
	ID: "srdp-delivered-again", Severity: machine.Note,
	Summary: "packets without SRDP_DONTDUPLICATE arrived, and were handed over, more than once",
	Explain: `Each copy of a packet that arrives is handed to the application, unless the packet asks for SRDP_DONTDUPLICATE. Copies come from needless repeats ("srdp-spurious-early", "srdp-spurious-ack-lost") or from the network. If doing it twice matters, set the flag, or let the data carry what tells that it was done.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, one %.0f times", n, worst[0])
	},
}

// PromiseForgotten is the rule "srdp-duplicate-late".
var PromiseForgotten = &machine.Rule{
	ID: "srdp-duplicate-late", Severity: machine.Warn,
	Summary: "a copy of a packet with SRDP_DONTDUPLICATE came when the receiver may have forgotten its id",
	Explain: `A receiver knows duplicates by a list of recently received ids, which is bounded. This copy came behind so many other ids, or so much later, that the list that the profile describes (recent, remember) no longer has it: it may have been handed over again. Whether it was does not show on the wire.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d copies, of id %.0f after %.0f ms", n, worst[1], worst[2])
	},
}

// Oversize is the rule "srdp-oversize".
var Oversize = &machine.Rule{
	ID: "srdp-oversize", Severity: machine.Warn,
	Summary: "a packet carries more bytes than the document allows",
	Explain: `SRDP does not fragment: a packet is to fit in 576 bytes, the least that every IPv4 host takes whole. Less 20 of IP and 8 of UDP that leaves 548 (the limit of the call), of which the header takes 4 in the direct form (544) and 16 in the proxied one (532, the document's own figure). A receiver that keeps to the document need not take this one.

The profile's max_payload says otherwise for applications that do otherwise.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, the largest with %.0f bytes, where %.0f are allowed", n, worst[0], worst[1])
	},
}

// CommandByte is the rule "srdp-command-byte".
var CommandByte = &machine.Rule{
	ID: "srdp-command-byte", Severity: machine.Warn,
	Summary: "a command byte contradicts the packet id",
	Explain: `The top bit of the packet id decides what a packet is; the command byte says otherwise here. The packet is read by its id. A sender that writes one command byte for both is best described by a profile: ack_command equal to data_command.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, the command 0x%02x", n, uint8(worst[0]))
	},
}

// UnknownFlags is the rule "srdp-unknown-flags".
var UnknownFlags = &machine.Rule{
	ID: "srdp-unknown-flags", Severity: machine.Note,
	Summary: "the flags have bits that the document does not know",
	Explain: `The document names SRDP_DONTDUPLICATE and SRDP_ORDER, and gives no values; by default they are 0x01 and 0x02. Other bits ask for services that a receiver by the document does not have (SRDP_NOTIMP), or this application has other values: the profile's dont_duplicate and order say so. Told once for each side.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("bits 0x%02x", uint8(worst[0]))
	},
}

// ForeignDatagram is the rule "srdp-foreign".
var ForeignDatagram = &machine.Rule{
	ID: "srdp-foreign", Severity: machine.Note,
	Summary: "datagrams of another protocol share the flow",
	Explain: `SRDP is made to share its port: the command byte is there to tell its packets from others. These datagrams have another first byte, or cannot be packets, or look like data that nobody ever acknowledged and whose id or flags do not fit the rest (then it is likely, not certain). They enter no state.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams, the longest %.0f bytes", n, worst[0])
	},
}

// IDsMissing is the rule "srdp-ids-missing".
var IDsMissing = &machine.Rule{
	ID: "srdp-ids-missing", Severity: machine.Note, Absence: true,
	Summary: "ids of an endpoint at the tap are in none of its flows",
	Explain: `An endpoint numbers its packets to all peers by one counter, so over all of its flows together the ids rise by one. These ids passed the tap in no flow, though the tap is at the endpoint: the capture dropped packets, a capture filter left flows out, or the endpoint sends over another interface too.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f ids", worst[0])
	},
}
