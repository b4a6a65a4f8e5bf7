package judge

import "github.com/ackscope/ackscope/machine"

// Rules lists every rule that a side can break: the rules of the divergences that the
// judge finds.
var Rules = []*machine.Rule{
	AckMissing, AckUnasked, AckUnsent, AckMark, WrongCommand,
	Sequence, IDReuse, IDRange, ResendEarly, ResendLate, RepeatAfterAck, RepeatOnStream, OutOfOrder,
}

// AckMissing is the rule "ack-missing".
var AckMissing = &machine.Rule{
	ID: "ack-missing", Severity: machine.Error,
	Summary: "a copy of a packet was not acknowledged",
	Explain: `A receiver acknowledges each copy of a packet once, in the order in which it reads them. Here one copy was left out. For example, packets 8 and 9 arrive, and only 9 is acknowledged. The sender sends packet 8 again until it gives it up.

The capture was taken at the receiver. A copy counts as left out when a later one is acknowledged, or after a second in which the side sent other things. Packets with unknown flags, and such as are too large, need no answer. A capture that lacks the acknowledgement shows the same.

Acknowledge before you filter duplicates: a copy comes because the first acknowledgement was lost.`,
}

// AckUnasked is the rule "ack-unasked".
var AckUnasked = &machine.Rule{
	ID: "ack-unasked", Severity: machine.Error,
	Summary: "an acknowledgement answers no copy of a packet",
	Explain: `Each copy of a packet is acknowledged once. Here an acknowledgement leaves for which no copy was captured, or a second one for the same copy. For example, packet 8 arrives once and is acknowledged twice.

The capture was taken at the side. What came before the capture is left open. A capture that lacks the copy shows the same.

Send the acknowledgement from one place, where a packet is read. Check that the id is that of this packet, and not of the one before.`,
}

// AckUnsent is the rule "ack-unsent".
var AckUnsent = &machine.Rule{
	ID: "ack-unsent", Severity: machine.Error,
	Summary: "an acknowledgement names a packet that had not been sent",
	Explain: `The capture was not taken at this side. All that it received was captured on its way, and no packet of this id was. For example, an acknowledgement of 300 is captured, and the newest packet of the peer is 298. The peer takes a later packet 300 for acknowledged as soon as it sends it.

Where the capture was taken at the peer, one such id may be the peer's own fault, so two different ones are needed. A capture that lacks the packet shows the same.

Copy the id from the packet that is answered. Check the byte order of the id, and that only its top bit is added.`,
}

// AckMark is the rule "ack-mark".
var AckMark = &machine.Rule{
	ID: "ack-mark", Severity: machine.Error,
	Summary: "an acknowledgement cannot be read as one",
	Explain: `An acknowledgement has the id of the packet, with the top bit set as its mark. Here one lacks the mark, has the two bytes of its id in the wrong order, or has another command byte. For example, packet 5 is acknowledged by 00 05, and 80 05 is expected. The peer reads it as data that is too short and drops it.

The capture was taken at the side. If all other bytes are those of the acknowledgement that is due, the datagram itself shows the fault. Otherwise it has only the command or the id of an acknowledgement, and no other acknowledgement left. In that case a capture that lacks the right one shows the same.

Add the mark to the number, id | 0x8000, and then write it in the byte order of the profile: the high byte first, unless the profile says otherwise.`,
}

// WrongCommand is the rule "command".
var WrongCommand = &machine.Rule{
	ID: "command", Severity: machine.Error,
	Summary: "the command byte and the mark in the id say different things",
	Explain: `The top bit of the id tells an acknowledgement from data, and the command byte tells the same. Here they differ. For example, the command is that of data, and the id is 0x8005. Receivers that look at the command first read another packet than those that look at the id.

The packet contradicts itself, in any capture, wherever it was taken.

Write both from one value. If the game has other command bytes, a profile says which: data_command and ack_command.`,
}

// Sequence is the rule "sequence".
var Sequence = &machine.Rule{
	ID: "sequence", Severity: machine.Error,
	Summary: "a new packet has an older id than the packets before it",
	Explain: `A sender numbers its packets upwards, for all of its peers with one counter, and after 32,767 comes 0. Gaps are no fault: those ids went to other peers. Here a new packet has an id below the newest one. For example, packet 40 follows packet 45. A receiver that remembers ids may drop it as a duplicate.

The capture was taken at the sender, or the sender is the client of a TCP proxy, whose stream shows all that it wrote. Ordered packets may leave later than they were numbered, so they are exempt, and so is a sender that begins anew near 0. The packet may be a copy of one that the capture lacks.

Step the counter under a lock when packets are sent from several threads.`,
}

// IDReuse is the rule "id-reuse".
var IDReuse = &machine.Rule{
	ID: "id-reuse", Severity: machine.Error,
	Summary: "two different packets have the same id",
	Explain: `A packet that is sent again has the same id and the same bytes. Here the bytes differ within 30 seconds. For example, packet 12 carries one message in frame 20 and another one in frame 31. The acknowledgement of the one takes the other out of the sent queue, and a receiver that filters duplicates drops it.

The two packets contradict each other, wherever the capture was taken, and no packet that the capture lacks explains that.

Keep the bytes as they were sent, and send those again. Flags are a part of them: a copy keeps its flags.`,
}

// IDRange is the rule "id-range".
var IDRange = &machine.Rule{
	ID: "id-range", Severity: machine.Error,
	Summary: "data has an id beyond 15 bits",
	Explain: `The top bit of the id is the mark of acknowledgements, so ids have 15 bits and go round after 32,767. Here data goes on with 32,768. For example, the ids are 0x7ffe, 0x7fff, 0x8000. The peer takes the last one for an acknowledgement of packet 0.

Only a sender whose ids were near the end can mean this. So no packet that the capture lacks explains it.

Step the counter by id = (id + 1) & 0x7fff.`,
}

// ResendEarly is the rule "resend-early".
var ResendEarly = &machine.Rule{
	ID: "resend-early", Severity: machine.Warn,
	Summary: "a copy of a packet came sooner than the copies before it",
	Explain: `The copies of one packet follow each other at one interval, which the application chooses. Here one came sooner. For example, the second copy of packet 14 comes 300 ms after the first, and the third after 200 ms.

The capture was taken at the sender. Which interval it should be is unknown, so the copies of a packet are compared with each other. What the side sent in between shows that it was not held up. A capture that lacks a copy shows the same: the gap before looks twice as long.

Set the time of the next copy from the time of the last one, and keep the interval with the packet.`,
}

// ResendLate is the rule "resend-late".
var ResendLate = &machine.Rule{
	ID: "resend-late", Severity: machine.Warn,
	Summary: "a copy of a packet came later than the copies before it",
	Explain: `The copies of one packet follow each other at one interval, which the application chooses. Here one came later, although the side sent other things meanwhile. For example, the second copy of packet 14 comes 200 ms after the first, and the third after 500 ms.

The capture was taken at the sender. 100 ms are allowed for a timer that is looked at late. A capture that lacks a copy shows the same: the gap looks twice as long.

An interval that grows with each copy is sensible on the Internet, but it is not the document's. Look otherwise for a queue in which packets wait behind others that are not due.`,
}

// RepeatAfterAck is the rule "repeat-after-ack".
var RepeatAfterAck = &machine.Rule{
	ID: "repeat-after-ack", Severity: machine.Warn,
	Summary: "a packet was sent again although its acknowledgement had been read",
	Explain: `An acknowledged packet leaves the sent queue and is not sent again. Here it was. For example, the acknowledgement of packet 20 is in frame 60, and packet 20 leaves again 900 ms later.

The capture was taken at the sender. The acknowledgement counts as read once something that came after it was answered, or after half a second. It is in the capture, so no packet that the capture lacks explains the copy.

Take off the mark before you look the id up: 0x8014 acknowledges packet 0x0014. Check the byte order as well.`,
}

// RepeatOnStream is the rule "repeat-on-stream".
var RepeatOnStream = &machine.Rule{
	ID: "repeat-on-stream", Severity: machine.Warn,
	Summary: "a packet was sent again over TCP",
	Explain: `Over TCP nothing is lost between an endpoint and its proxy. So the endpoint sends each packet once, and the proxy sends it again where it must. Here the endpoint sends a copy. For example, packet 7 stands in the stream twice.

The two copies are in the stream, wherever it was captured, and no packet that the capture lacks explains them. The other side is the proxy, since it acknowledges and this side does not.

Switch the repeats off for packets that leave over TCP.`,
}

// OutOfOrder is the rule "order".
var OutOfOrder = &machine.Rule{
	ID: "order", Severity: machine.Error,
	Summary: "an ordered packet was sent again after a later ordered packet",
	Explain: `A sender has one packet with SRDP_ORDER on its way to a receiver at a time. The next one leaves once the first is acknowledged or given up, and then the first is not sent again. Here it was. For example, ordered packets 30 and 31 leave, and then a copy of 30. If the first copy of 30 was lost, the receiver hands 31 over before 30.

The capture was taken at the sender, so the order is its own. The packets contradict each other, and no packet that the capture lacks explains that.

Keep a queue of ordered packets for each receiver. Send the next one when the one on its way is acknowledged or given up.`,
}
