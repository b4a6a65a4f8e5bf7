package srdp

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Findings lists the rules that the tracker can report.
var Findings = []*machine.Rule{
	OrderBroken, OrderPassed, OutOfTurn, IDReuse, WrapInFlight, AckIgnored, AckOfNothing, AckMissing, GaveUp,
	SpuriousEarly, SpuriousAckLost, ResentLoss,
	DeliveredAgain, PromiseForgotten, Oversize, CommandByte, UnknownFlags, ForeignDatagram, IDsMissing,
}

// OrderBroken is the rule "srdp-order-broken".
var OrderBroken = &machine.Rule{
	ID: "srdp-order-broken", Severity: machine.Error, Absence: true,
	Summary: "an ordered packet was sent while another one to the same receiver was in flight",
	Explain: `A sender sent an ordered packet while another one to the same receiver was in flight. SRDP_ORDER promises that packets are received in the order sent. By the document's method, one such packet is in flight to a receiver at a time. The next one waits until the first is acknowledged or given up. Here it did not wait. If packet 10 is lost and sent again, the receiver hands over packet 11 before it.

The finding is certain where the capture was taken at the sender and the first packet was sent again after the second. In a capture taken elsewhere that is likely, since the network may have delayed a copy. It is also likely where the capture was taken at the sender and the second packet came within a millisecond. That is sooner than any timeout, so the sender had not given the first one up. Where it may have, the finding is "srdp-order-passed".

Keep a queue of ordered packets for each receiver. Send the next one when the acknowledgement of the one in flight is read, or when that one is given up.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, id %.0f overtaken after %.1f ms", machine.Count(n, "time", "times"), worst[0], worst[1])
	},
}

// OrderPassed is the rule "srdp-order-passed".
var OrderPassed = &machine.Rule{
	ID: "srdp-order-passed", Severity: machine.Warn, Absence: true,
	Summary: "an ordered packet was sent, and the one before it had no acknowledgement yet",
	Explain: `A sender sent an ordered packet, and the capture has no earlier acknowledgement of the ordered packet before it. An ordered packet waits until the one before it is acknowledged or given up. So the sender had given that one up, which is correct, or it broke the order ("srdp-order-broken"). Either way the order can be lost. If packet 10 was given up and still arrives late, its receiver hands it over after packet 11.

The finding is possible at most. The wire does not show when a sender gives up. It may do so at any time, for example after one copy and a short timeout. Nothing proves that the first packet was sent again after the second, and the wait was shorter than a usual timeout or answer.

Raise the repeats or the timeout of the call if the order matters more than the delay.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, id %.0f had no acknowledgement after %.1f ms: given up, or sent out of order",
			machine.Count(n, "time", "times"),
			worst[0],
			worst[1],
		)
	},
}

// OutOfTurn is the rule "srdp-out-of-order".
var OutOfTurn = &machine.Rule{
	ID: "srdp-out-of-order", Severity: machine.Warn,
	Summary: "an ordered packet reached its receiver after a later one",
	Explain: `An ordered packet reached its receiver after a later one. The receiver has no means to put them in order, so it handed them over in that order. Either the sender had both in flight ("srdp-order-broken"), or it gave the first one up and went on ("srdp-order-passed"). The network then delivered the first one after all.

ackscope compares the first copies that arrived. At the receiver's own end, the capture proves the order. Elsewhere it is possible, since acknowledgements can overtake each other too.

With a limit to the repeats, the promise of order cannot be kept. Do not limit the repeats of packets whose order matters.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, id %.0f the furthest behind: %s",
			machine.Count(n, "packet", "packets"),
			worst[1],
			machine.Count(uint64(worst[0]), "id", "ids"),
		)
	},
}

// IDReuse is the rule "srdp-id-reuse".
var IDReuse = &machine.Rule{
	ID: "srdp-id-reuse", Severity: machine.Error,
	Summary: "a packet id was used for other bytes than before",
	Explain: `A packet id was used for other bytes than before. A packet that is sent again has the same id and the same bytes. Here the same id came with other bytes. The acknowledgement of one packet takes the other out of the sent queue. A receiver that filters duplicates throws the second one away, unread.

The sender's ids had not gone all round in between: by the distance and the time, the id is not that of the next round. The first packet still waited for its acknowledgement, or the capture was taken at the sender and has all of its ids. Otherwise the finding is possible. The ids of a busy sender go round in packets to others, which this capture need not have.

A sender that begins anew on the same port numbers from its start again. That is no fault. The finding is certain only where its later ids show that it did not begin anew. It is possible where they show that it did, or where too few ids tell. It is likely while the capture is read for the first time, as live: later ids are not known yet.

Give each new packet the next id, and keep the bytes of a packet until it is acknowledged.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, id %.0f again after %.0f ms", machine.Count(n, "time", "times"), worst[1], worst[2])
	},
}

// WrapInFlight is the rule "srdp-wrap-in-flight".
var WrapInFlight = &machine.Rule{
	ID: "srdp-wrap-in-flight", Severity: machine.Warn,
	Summary: "the ids went all round while a packet still waited for its acknowledgement",
	Explain: `The ids went all round while a packet still waited for its acknowledgement. Packet ids have 15 bits, for all peers together, so an id comes again after 32,768 packets. If the old packet of that id is still in the sent queue, an acknowledgement can no longer distinguish the two. That happens with repeats without end to a peer that does not answer.

ackscope found the old packet unacknowledged when its id came again. The finding is likely.

Limit the repeats, or skip ids that are still in the queue.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, id %.0f again %.0f ms after its last copy",
			machine.Count(n, "time", "times"),
			worst[1],
			worst[2],
		)
	},
}

// AckIgnored is the rule "srdp-ack-ignored".
var AckIgnored = &machine.Rule{
	ID: "srdp-ack-ignored", Severity: machine.Warn, Resend: "ack-ignored",
	Summary: "a packet was sent again although its acknowledgement had reached the sender",
	Explain: `A packet was sent again although its acknowledgement had reached the sender.

The capture was taken at the sender, and has the acknowledgement. The copy came much later than an application takes to look at its socket: more than 60 ms. The finding is likely.

The sender may not find the id in its sent queue, because it does not take off the top bit or reads another byte order. Or its application stalled. Or its socket's buffer was full and dropped the acknowledgement.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, one in %s, the last %.0f ms after its acknowledgement",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "copy", "copies"),
			worst[2],
		)
	},
}

// AckOfNothing is the rule "srdp-ack-of-nothing".
var AckOfNothing = &machine.Rule{
	ID: "srdp-ack-of-nothing", Severity: machine.Warn, Absence: true,
	Summary: "an acknowledgement names an id that was not sent to who acknowledges it",
	Explain: `An acknowledgement names an id that was not sent to the side that acknowledges it. No packet of that id was captured in the other direction of this flow. ackscope leaves out packets from before the capture.

The finding is certain where the capture was taken at the side that would have sent the packet, and the id is far ahead of all ids that it sent. Otherwise the capture may lack a few packets, and the finding is likely. It is possible near the capture's beginning, where the packet may be from before. It is also possible where no data of that direction was seen before.

Either the capture lost the packet, or it went to another peer, or the receiver acknowledges what did not come. In the last case, look for a wrong byte order or a wrong id.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the highest id %.0f", machine.Count(n, "acknowledgement", "acknowledgements"), worst[0])
	},
}

// AckMissing is the rule "srdp-ack-missing".
var AckMissing = &machine.Rule{
	ID: "srdp-ack-missing", Severity: machine.Warn, Absence: true,
	Summary: "copies of packets reached their receiver and were not acknowledged",
	Explain: `Copies of packets reached their receiver and were not acknowledged. A receiver must acknowledge every copy of a data packet, duplicates too: otherwise its sender goes on sending.

The capture was taken at the receiver. Fewer acknowledgements left than copies came, and the receiver was still there more than a second later. The finding is likely.

The receiver filters duplicates before it acknowledges, or it lost datagrams in its socket's buffer, or what came was not SRDP. Acknowledge each copy first, and filter afterwards.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, of one %s",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "copy", "copies"),
		)
	},
}

// GaveUp is the rule "srdp-gave-up".
var GaveUp = &machine.Rule{
	ID: "srdp-gave-up", Severity: machine.Warn, Absence: true,
	Summary: "a packet was never acknowledged, and its sender stopped sending it",
	Explain: `A packet was never acknowledged, and its sender stopped sending it. The sender has reached its limit of repeats, or its application gave the packet up. Whether the packet arrived is not known, since the acknowledgements may have been lost.

No acknowledgement was captured, and the next copy did not come when it was due. At the sender this is likely. Away from the sender it is possible, since further copies may have been lost before they were captured.

"ackscope state" shows the timeout, and the repeats that follow from such ends. Raise one of them if packets are given up on a path that works. If a share p of copies or acknowledgements is lost, k copies all fail with probability p^k. For example, at 20 % loss three copies fail in 0.8 % of cases.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, at most after %s in %.0f ms",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "copy", "copies"),
			worst[2],
		)
	},
}

// SpuriousEarly is the rule "srdp-spurious-early".
var SpuriousEarly = &machine.Rule{
	ID: "srdp-spurious-early", Severity: machine.Note, Resend: "late-ack",
	Summary: "packets were sent again while their acknowledgement was on its way",
	Explain: `Packets were sent again while their acknowledgement was on its way. The copy and the acknowledgement of an earlier one crossed in the network. Nothing was lost: the timeout was shorter than what the packet and its acknowledgement took together. It costs bandwidth, and a receiver without SRDP_DONTDUPLICATE hands the packet over twice.

ackscope recognises it in two ways. The acknowledgement came sooner after the copy than any answer to it could. Or in the end there were as many acknowledgements as copies. The finding is certain where both ends were captured on one host. It is possible where the distance from the place of capture to the sender is not clear. Otherwise it is likely.

Give a longer timeout, or leave it to the library (0). The library takes the longest delay that it has observed of the address.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, one with %s too many, sent after %.0f ms",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "copy", "copies"),
			worst[2],
		)
	},
}

// SpuriousAckLost is the rule "srdp-spurious-ack-lost".
var SpuriousAckLost = &machine.Rule{
	ID: "srdp-spurious-ack-lost", Severity: machine.Note, Resend: "ack-lost",
	Summary: "packets were sent again because their acknowledgements were lost",
	Explain: `A packet was sent again because its acknowledgement was captured and then lost on its way to the sender. That is what repeats are for. A receiver without SRDP_DONTDUPLICATE hands the packet over twice.

The packet had arrived, since its acknowledgement is in the capture. The copy came later than a copy that had crossed the acknowledgement could. The finding is certain where both ends were captured on one host. It is possible where the distance from the place of capture to the sender is not clear. Otherwise it is likely.

If a second delivery does harm, set SRDP_DONTDUPLICATE.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, of one %s",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "acknowledgement", "acknowledgements"),
		)
	},
}

// ResentLoss is the rule "srdp-resent-loss".
var ResentLoss = &machine.Rule{
	ID: "srdp-resent-loss", Severity: machine.Note, Resend: "lost", Absence: true,
	Summary: "packets were sent again because copies of them or their acknowledgements were lost",
	Explain: `A packet was sent again because a copy of it or its acknowledgement was lost. The capture has fewer acknowledgements than copies. For each missing acknowledgement, the copy or its acknowledgement was lost where this capture does not show it. The finding is likely.

Only a capture at the receiver shows which of the two was lost: there every copy that arrives is acknowledged. Repeats are made for such losses, so a few of them need no action.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, one in %s",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "copy", "copies"),
		)
	},
}

// DeliveredAgain is the rule "srdp-delivered-again".
var DeliveredAgain = &machine.Rule{
	ID: "srdp-delivered-again", Severity: machine.Note,
	Summary: "packets without SRDP_DONTDUPLICATE arrived, and were handed over, more than once",
	Explain: `A packet arrived and was handed over more than once. Each copy that arrives is handed to the application, unless the packet asks for SRDP_DONTDUPLICATE. Copies come from needless repeats ("srdp-spurious-early", "srdp-spurious-ack-lost") or from the network.

Each acknowledgement shows that a copy arrived. The finding is certain at the receiver's own end, and likely elsewhere.

If the data must not take effect twice, set the flag. Or put a number into the data by which the application knows that it was done.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, one %s",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "time", "times"),
		)
	},
}

// PromiseForgotten is the rule "srdp-duplicate-late".
var PromiseForgotten = &machine.Rule{
	ID: "srdp-duplicate-late", Severity: machine.Warn,
	Summary: "a copy of a packet with SRDP_DONTDUPLICATE came when the receiver may have forgotten its id",
	Explain: `A copy of a packet with SRDP_DONTDUPLICATE may have been handed over again. A receiver recognises duplicates by a bounded list of recently received ids. This copy came behind so many other ids, or so much later, that the list no longer has its id. The profile describes that list (recent, remember): by default 64 ids for 30 s.

Whether the copy was handed over does not show on the wire, so the finding is possible.

Make the receiver's list longer. If it is longer already, correct the profile.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, of id %.0f after %.0f ms", machine.Count(n, "copy", "copies"), worst[1], worst[2])
	},
}

// Oversize is the rule "srdp-oversize".
var Oversize = &machine.Rule{
	ID: "srdp-oversize", Severity: machine.Warn,
	Summary: "a packet carries more bytes than the document allows",
	Explain: `A packet carries more bytes than the document allows. SRDP does not fragment: a packet must fit in 576 bytes, the least that every IPv4 host takes whole. Less 20 of IP and 8 of UDP, that leaves 548 bytes, the limit of the call. The header takes 4 of them in the direct form, which leaves 544. It takes 16 in the proxied form, which leaves 532, the document's own figure. A receiver that keeps to the document need not take this packet.

ackscope reads the size from the datagram, so the finding is certain.

Send smaller packets. If the application allows larger ones, set the profile's max_payload.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the largest with %s, where %.0f are allowed",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "byte", "bytes"),
			worst[1],
		)
	},
}

// CommandByte is the rule "srdp-command-byte".
var CommandByte = &machine.Rule{
	ID: "srdp-command-byte", Severity: machine.Warn,
	Summary: "a command byte contradicts the packet id",
	Explain: `A command byte contradicts the packet id. The top bit of the id decides whether a packet is data or an acknowledgement, and the command byte says otherwise here. ackscope reads the packet by its id. The contradiction is certain.

If the sender writes one command byte for both, describe it by a profile with ack_command equal to data_command.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the command 0x%02x", machine.Count(n, "packet", "packets"), uint8(worst[0]))
	},
}

// UnknownFlags is the rule "srdp-unknown-flags".
var UnknownFlags = &machine.Rule{
	ID: "srdp-unknown-flags", Severity: machine.Note,
	Summary: "the flags have bits that the document does not know",
	Explain: `The flags have bits that the document does not know. The document names SRDP_DONTDUPLICATE and SRDP_ORDER without values: by default, ackscope reads them as 0x01 and 0x02. Other bits ask for services that a receiver by the document does not have (SRDP_NOTIMP). Or this application has other values.

The bits are in the packet, so the finding is certain. ackscope reports it once for each side.

If the application has other values, set the profile's dont_duplicate and order.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("bits 0x%02x", uint8(worst[0]))
	},
}

// ForeignDatagram is the rule "srdp-foreign".
var ForeignDatagram = &machine.Rule{
	ID: "srdp-foreign", Severity: machine.Note,
	Summary: "datagrams of another protocol share the flow",
	Explain: `Datagrams of another protocol share the flow. SRDP is made to share its port: the command byte distinguishes its packets from others. ackscope keeps these datagrams out of all state.

The finding is certain where a datagram has another first byte, or cannot be a packet. It is likely for a datagram that looks like unacknowledged data, with an id or flags that do not fit the rest.

No action is needed if the application sends such datagrams. If they should be SRDP, check the profile.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest %s",
			machine.Count(n, "datagram", "datagrams"),
			machine.Count(uint64(worst[0]), "byte", "bytes"),
		)
	},
}

// IDsMissing is the rule "srdp-ids-missing".
var IDsMissing = &machine.Rule{
	ID: "srdp-ids-missing", Severity: machine.Note, Absence: true,
	Summary: "ids of an endpoint captured here are in none of its flows",
	Explain: `Some ids of an endpoint captured here are in none of its flows. An endpoint numbers its packets to all peers by one counter, so over all of its flows together the ids rise by one. For example, ids 40 and 42 were captured, and 41 is in no flow.

The capture dropped packets, a capture filter left flows out, or the endpoint also sends over another interface. The finding is likely.

Capture on all interfaces, without a filter.`,
	Say: func(_ uint64, worst [3]float64) string {
		return machine.Count(uint64(worst[0]), "id", "ids")
	},
}
