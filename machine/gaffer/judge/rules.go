package judge

import "github.com/ackscope/ackscope/machine"

// Rules lists every rule of headers and messages that a side can break: the rules of
// the divergences that the judges of this package find.
var Rules = []*machine.Rule{
	AckNeverArrived, AckUnsent, AckOmitted, AckRefused, AckWithdrawn, AckForgotten, AckWentBack, AckOrder, AckWithoutBit,
	Sequence, SequenceReuse, Fragments, HeaderForm, Unreadable,
	MessageType, MessageBeyondWindow, MessageResentEarly, MessageResentLate, MessageResentAcked, MessageResentAfterAck,
	StuckMessage,
}

// AckNeverArrived is the rule "ack-never-arrived".
var AckNeverArrived = &machine.Rule{
	ID: "ack-never-arrived", Severity: machine.Error, Anywhere: true,
	Summary: "a header acks a packet that had not arrived",
	Explain: `A header names a packet that its sender cannot have received by then. For example, ack is 556 and bit 14 names packet 542, but no packet 542 was captured. The peer takes packet 542 for delivered. What it carried is never sent again, and is lost for good.

The capture was taken at the sender of the header. The report gives the reason. No packet of that number was captured, or only some of its fragments were. Or its peer had not sent it yet, or it came too late and was dropped. Or one of its messages has a type out of range. An ack of slices breaks this rule where it names a slice that was not captured, wherever the capture was taken. A capture that lacks the packet shows the same, so the divergence is likely, unless the file counts dropped packets and counted none. One case is certain in any file: the header names 339, and afterwards the peer's packets 84, 85 and so on are captured one by one. So 339 had not been sent.

Look at the code that builds ack_bits. It may set a bit only if the entry of the buffer holds exactly that sequence. When a newer packet moves the window, clear the entries in between: the article's first listing forgets that. "ackscope replay --matrix" shows whether the side behaves as gaffer@no-stale-clear.`,
}

// AckUnsent is the rule "ack-unsent".
var AckUnsent = &machine.Rule{
	ID: "ack-unsent", Severity: machine.Error,
	Summary: "a header acks a packet that was not captured on its way to this side",
	Explain: `The capture was not taken at the sender of the header. All that this side received was captured on its way, and a packet that the header names was not. For example, ack is 90, and the newest packet of its peer is 88.

Packets from before the capture do not count, nor do those that were too old to be kept. Where a side restarts, its peer may still ack the packets of the session before. A capture that lacks the packet shows the same. But where the peer's later packets have lower numbers, the packet had not been sent, and the divergence is certain. The same holds for a packet older than packet 0 of a peer that began in the capture.

Look at the code that builds ack and ack_bits, as for ack-never-arrived. A profile that gives the bits another meaning shows this too: bit n can stand for ack - n or for ack - n - 1. "ackscope protocols gaffer" prints the profiles.`,
}

// AckOmitted is the rule "ack-omitted".
var AckOmitted = &machine.Rule{
	ID: "ack-omitted", Severity: machine.Error,
	Summary: "a header leaves out a packet that its sender had read",
	Explain: `The side had read the packet before it sent this header, and the header does not name it. For example, packets 10 and 11 arrive in this order, and the header names 11 but not 10. A socket is read in order, so packet 10 was read first. The peer takes it for lost and sends its contents again.

An application may refuse a packet, and then no header ever names it. So this is reported in two cases only. In the first, no refusal leads to the header. In the second, a later header names the packet although no second copy of it was captured; a capture that lacks that copy shows the same. For acks of slices the second case holds.

Enter a packet into the buffer before you build the next header. Check that ack_bits begin at bit 0 and end at the last one. A thread that receives and a thread that sends need one lock for both.`,
}

// AckRefused is the rule "ack-refused".
var AckRefused = &machine.Rule{
	ID: "ack-refused", Severity: machine.Error,
	Summary: "a header acks a packet that earlier headers had left out",
	Explain: `The packet arrived, and two headers or more spoke of it without naming it. Now a header names it, although no second copy came. For example, the headers of frames 30 and 31 leave out packet 12, and that of frame 32 names it.

Headers that leave a packet out say that the side did not take it: its application refused it, or it was dropped. Such a packet stays unacked until another copy arrives. A capture that lacks that copy shows the same.

Ask the application before the packet enters the buffer, not after. An application that takes a packet later must not ack it later: its peer has long sent the contents again.`,
}

// AckWithdrawn is the rule "ack-withdrawn".
var AckWithdrawn = &machine.Rule{
	ID: "ack-withdrawn", Severity: machine.Error,
	Summary: "a packet that an earlier header acked is not acked any more",
	Explain: `What was received stays received. As long as ack_bits reach back to a packet, its bit can turn from 0 to 1 and never back. For example, a header with ack 40 names packet 38, and the next one with ack 41 does not. The same holds for the slices that an ack of a block names.

The two headers contradict each other. No packet that the capture lacks explains that.

Look for an entry that is cleared one too many. Look for two packets that share an entry: the size of the buffer must divide the range of the sequence numbers. Look for a header that is built while another thread changes the buffer.`,
}

// AckForgotten is the rule "ack-forgotten".
var AckForgotten = &machine.Rule{
	ID: "ack-forgotten", Severity: machine.Error,
	Summary: "of two headers the later one says that less was received",
	Explain: `The headers of a side, in the order of their sequence numbers, show a set of packets that only grows. Here the later header lacks what the earlier one has. For example, packet 70 acks packet 55. Packet 71 reaches back to 55 and leaves it out.

The capture was not taken at the side, so headers can overtake each other. They are compared by their numbers, not by the order in which they were captured. The two contradict each other, and no packet that the capture lacks explains that.

The causes are those of ack-withdrawn. An entry is cleared one too many, or two packets share an entry. Or a header is built while another thread changes the buffer.`,
}

// AckWentBack is the rule "ack-went-back".
var AckWentBack = &machine.Rule{
	ID: "ack-went-back", Severity: machine.Error,
	Summary: "ack is older than in the header before it",
	Explain: `ack is the newest sequence number that a side has received. From one header to the next it stays or grows. For example, a header with ack 120 cannot follow one with ack 131. Nor can a header that says that nothing was received follow one that names packets.

The capture was taken at the side, so the headers are in the order in which they were sent. The two contradict each other, and no packet that the capture lacks explains that.

Store a sequence number as the newest only if it is newer by the half-range rule: (int16)(sequence - newest) > 0 for 16 bits. A side that stores the last one instead goes back whenever the network reorders packets. One that compares with a plain > stands still once the numbers wrap.`,
}

// AckOrder is the rule "ack-order".
var AckOrder = &machine.Rule{
	ID: "ack-order", Severity: machine.Error,
	Summary: "no order of what arrived leads to this header",
	Explain: `The header names some packets and leaves out others, and no way to read the socket gives just that. For example, ack is 20, and a fragment of packet 21 had come before packet 20. A first fragment moves ack, so it should be 21.

The capture was taken at the side. ackscope lets the reference read the captured packets in their order, for as long as the header may still come out right. It allows for packets that the application refused. A capture that lacks packets shows the same.

Compare the two states of the report bit by bit. A buffer whose size does not divide the range of the sequence numbers mixes up two packets. A header that is built from a buffer that is half updated shows this as well.`,
}

// AckWithoutBit is the rule "ack-without-bit".
var AckWithoutBit = &machine.Rule{
	ID: "ack-without-bit", Severity: machine.Error,
	Summary: "ack names a packet that ack_bits leave out",
	Explain: `ack is the newest packet that was received, and bit 0 of ack_bits stands for the same packet. Here bit 0 is not set. For example, ack is 75 and ack_bits is 0xfffffffe. The peer takes packet 75 for lost.

A packet that comes in fragments moves ack with its first fragment, and sets its bit with the last one. This packet was captured whole, so fragments are not the reason.

Bit n must stand for packet ack - n. Code that lets bit 0 stand for ack - 1 is off by one. If the whole engine means it so, its packets need a profile that says so.`,
}

// Sequence is the rule "sequence".
var Sequence = &machine.Rule{
	ID: "sequence", Severity: machine.Error,
	Summary: "a sequence number does not follow the one before it",
	Explain: `A side numbers its packets one by one. Here another number came than the next. For example, packet 44 follows packet 41. A number that is left out counts as a lost packet at the peer, and shortens what its ack_bits cover. A number that comes back makes the peer drop a packet as a duplicate.

The capture was taken at the side, so all of its packets should be there, in order. Where the number lies ahead, 44 after 41, a capture that lacks 42 and 43 shows the same. Where it lies behind, 40 after 41, no packet that the capture lacks explains it.

Step the counter once for each packet that goes to the socket, and take the number and send under one lock. If the number lies ahead, check first whether the capture has gaps: see the finding capture-loss.`,
}

// SequenceReuse is the rule "sequence-reuse".
var SequenceReuse = &machine.Rule{
	ID: "sequence-reuse", Severity: machine.Error,
	Summary: "two different packets have the same sequence number",
	Explain: `The network may copy a packet, and a copy is the same to the last bit. Here a second packet has the number of an earlier one, and other acks or other contents. For example, packet 300 is captured with ack 210, and later another packet 300 with ack 214. The receiver keeps one and drops the other as a duplicate. An ack of 300 does not say which.

The two packets contradict each other. No packet that the capture lacks explains that.

Give each packet a new number, also one that carries messages again: messages are sent again, packets never. Check that the counter is stepped on every path that sends, and that it is not set back when a connection goes on.`,
}

// Fragments is the rule "fragments".
var Fragments = &machine.Rule{
	ID: "fragments", Severity: machine.Error,
	Summary: "the fragments of a packet do not fit together",
	Explain: `The fragments of a packet name one count, leave together in their order, and have one size but for the last. The last one has at least one byte. For example, a packet of 2,500 bytes leaves as fragments 0, 1 and 2, with 1,024, 1,024 and 452 bytes. Each of them says "of 3". The receiver finds the place of each fragment by its number times the size, so a fragment of another size lands in the wrong place.

Sizes and counts contradict each other in any capture, wherever it was taken. The order shows only in a capture taken at the side. A fragment that lies ahead of the one that is due may be the next after some that the capture lacks.

Compute the count once, by (length + size - 1) / size, and use it for all fragments of the packet. Send them in one loop, without another packet in between.`,
}

// Unreadable is the rule "unreadable".
var Unreadable = &machine.Rule{
	ID: "unreadable", Severity: machine.Error,
	Summary: "a datagram that cannot be read took the place of a packet",
	Explain: `A datagram of this side is no packet of the profile, and the packet behind it leaves out just one number. For example, packet 17 is captured, then a datagram that cannot be read, then packet 19. So the datagram was meant as packet 18, and the peer drops it. For slices, what is left out is a slice of the round.

Another program may share the port, so a datagram that cannot be read is no divergence by itself. The capture was taken at the side. A capture that lacks packet 18 shows the same if something else sent the datagram.

Look at the first bytes in the report. A header that is written in part, a field of the wrong width, and a prefix that is too short are the usual causes. "ackscope packets -V" shows how far the datagram can be read.`,
}

// MessageType is the rule "message-type".
var MessageType = &machine.Rule{
	ID: "message-type", Severity: machine.Error,
	Summary: "a message has a type that the game does not have",
	Explain: `A message's type takes as many bits as the largest type needs, so some values are no type. Here a message has one of them. For example, a game has the types 0 to 2 in two bits, and a message has type 3. The article has the receiver discard such a packet, because it may be malicious. So none of its messages arrive, and the packet is not acked.

The packet itself shows it, wherever the capture was taken. No packet that the capture lacks explains it. The profile says how many types there are. Without a schema of the messages, only the first message of a packet can be read.

Check what writes the type, and that both ends were built with the same list of types. If the game has more types than the profile, correct the profile's messages.types.`,
}

// MessageBeyondWindow is the rule "message-beyond-window".
var MessageBeyondWindow = &machine.Rule{
	ID: "message-beyond-window", Severity: machine.Error,
	Summary: "a message was sent that the receiver cannot buffer",
	Explain: `The receiver has room for so many messages from the oldest one that it waits for. A message beyond that is dropped, but the packet that carried it is acked. For example, message 100 is not acked, the receiver buffers 256, and message 356 leaves. The sender takes message 356 for delivered, and the receiver waits for it for ever.

A message counts as acked once any ack of its packet was captured on its way to the sender, whether it was read or not. So this holds wherever the capture was taken. A capture that lacks such an ack shows the same.

Stop filling packets at the oldest unacked message plus the receive queue. If the profile's receive_queue is not that of the game, correct the profile.`,
}

// MessageResentEarly is the rule "message-resent-early".
var MessageResentEarly = &machine.Rule{
	ID: "message-resent-early", Severity: machine.Warn,
	Summary: "a message was sent again before its resend time had passed",
	Explain: `A message left again sooner than the resend policy of its sender allows. For example, the policy is 100 ms, and message 12 leaves at 0 ms and again at 33 ms. Such copies take the place of other messages in the packet.

The profile says the policy: messages.resend. Without it, the policy is inferred from the other messages of the side. The divergence then says that the side is at odds with itself, and it is likely at most. The capture was taken at the side, so its times are those of the sender, but for small errors of the capturing clock.

Keep for each message the time when it was last sent, and set that time with every copy. If the game means another policy than the profile says, correct the profile.`,
}

// MessageResentLate is the rule "message-resent-late".
var MessageResentLate = &machine.Rule{
	ID: "message-resent-late", Severity: machine.Warn,
	Summary: "a message was due and would have fitted, and the packet leaves it out",
	Explain: `A message that is not acked is due again when the resend policy of its sender says so. Here a packet leaves without it, although it is long due and larger packets were sent. For example, the policy is 100 ms, message 7 left 240 ms ago, and the packet carries only newer messages. Everything behind message 7 waits at the receiver.

The profile says the policy: messages.resend. Without it, the policy is inferred from the other messages of the side, and the divergence is likely at most. A wait that no other message shows counts as unknown, not as late. The capture was taken at the side. The message counts as open only if no ack of it was captured on its way to the side. 50 ms are allowed for a long frame. A capture that lacks the ack, or the copy, shows the same.

Fill packets from the oldest unacked message on, and do not end the loop at the first message that is not due.`,
}

// MessageResentAcked is the rule "message-resent-acked".
var MessageResentAcked = &machine.Rule{
	ID: "message-resent-acked", Severity: machine.Warn,
	Summary: "a message was sent again although its sender had read the ack of it",
	Explain: `The packet that carried the message was acked, and the sender had read that ack. It sends the message again all the same. For example, packet 50 carries message 9. The peer's packet 61 acks 50. The next packet of the side acks 61, so it has read it, and carries message 9 once more.

The header of the packet itself proves what its sender had read, so this holds wherever the capture was taken. No packet that the capture lacks explains it.

Keep, for each packet sent, the messages that it carried. When the packet is acked, take all of them out of the send queue before the next packet is filled.`,
}

// MessageResentAfterAck is the rule "message-resent-after-ack".
var MessageResentAfterAck = &machine.Rule{
	ID: "message-resent-after-ack", Severity: machine.Warn,
	Summary: "a yojimbo message was sent again although its sender had read the ack of it",
	Explain: `The packet that carried the message was acked, and a later header of the sender names the packet with that ack. So the sender had read the ack, and it sends the message again a quarter of a second later or more. For example, a packet names the ack of message 9 at 1.0 s, and message 9 leaves again at 1.4 s. Within a frame or two the order of the library's calls explains such a copy.

The capture was taken at the side, and the headers of the side prove what it had read. No packet that the capture lacks explains it.

In yojimbo, process the acks of reliable before the channels fill the next packet. Check that the entry of the sent packet still holds the ids of its messages when the ack comes.`,
}

// StuckMessage is the rule "stuck-message".
var StuckMessage = &machine.Rule{
	ID: "stuck-message", Severity: machine.Error,
	Summary: "a message is never sent while later ones are",
	Explain: `The ids of a channel are given out in order, and the receiver hands the messages over in order. Here packets carry later ids, and no packet carries this one. For example, messages 41 to 90 leave and 40 never does. The receiver holds back all of them, and the sender stops once its window is full.

The capture was taken at the side. A capture that lacks the packets with that message shows the same.

The usual cause is a message that is larger than what the channel may put into a packet. The sender skips it each time. Split it, send it as a block, or raise the channel's packet budget.`,
}
