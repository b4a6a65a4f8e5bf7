package messages

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ResendLeast is the article's least time between two sends of a message.
// Source: law, the article "Reliable Ordered Messages": a message is sent again after 0.1 s
const ResendLeast = wire.ResendUsual

// Rules lists what tracker.Conversation may report, in addition to gaffer.FindingRules.
var Rules = []*machine.Rule{MessageBeyond, MessageResentEarly, headOfLine, MalformedMessages, MessageSpiral}

// MessageBeyond is the rule "message-beyond-window".
var MessageBeyond = &machine.Rule{
	ID: "message-beyond-window", Severity: machine.Error,
	Summary: "a message was sent that the receiver cannot buffer",
	Explain: `The sender sent a message that the receiver cannot buffer. For example, it sends id 300 while id 40 is unacked, to a receiver with room for 256 messages. The receiver has no place for the message and drops it, but acks the packet that carried it. The sender counts the message as delivered and never sends it again. From then on the receiver waits for it forever, and delivers nothing.

The article calls the rule behind this super important. Never send a message id at or beyond the oldest unacked one plus the size of the receive buffer.

At the sender's own end the finding is certain. Elsewhere it is likely, since the sender may know of acks that the capture does not show.

Check the loop that fills packets: it must stop at oldest unacked + receive buffer. If the profile's receive_queue is not the game's, correct the profile.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the worst %.0f beyond the receive buffer: id %.0f while %.0f was not acked",
			machine.Count(n, "message", "messages"),
			worst[0],
			worst[1],
			worst[2],
		)
	},
}

// MessageResentEarly is the rule "message-resent-early".
var MessageResentEarly = &machine.Rule{
	ID: "message-resent-early", Severity: machine.Note, Resend: "early",
	Summary: "a message was put into another packet sooner than its sender's resend policy allows",
	Explain: `A message was put into another packet sooner than the resend policy of its sender allows. For example, the profile says messages.resend: 100ms, and the message goes out again after 17 ms. Without the wait, a fast sender repeats the same message in every packet, at the cost of others.

If the profile says no policy, ackscope infers it from the sender's other messages. Then the sender is at odds with itself: this message waits less than most others do.

ackscope measures this in a capture taken at the sender. The finding is likely.

Check the time at which each message was last sent before you add it. If the game means another policy, write it into the profile: a time, a multiple of the round trip time such as 1.5rtt, or a back-off. "ackscope state" shows the policy, and docs/resend.md describes it.`,
	// The largest figure is kept, but a sooner copy is the worse one. So the text states
	// the figure as a bound: all early copies came within it.
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s within %.0f ms of the one before", machine.Count(n, "copy", "copies"), worst[0])
	},
}

var headOfLine = &machine.Rule{
	ID: "head-of-line-blocking", Severity: machine.Note,
	Summary: "messages had arrived and waited for an earlier one",
	Explain: `Messages had arrived and waited for an earlier one. Reliable ordered messages are handed over in the order of their ids. For example, ids 11 to 14 waited in the receive buffer while id 10 was missing. The packet of id 10 was lost, and the message came with a later packet.

The finding is as certain as the arrival of the messages. "ackscope messages" shows how long each message waited, and for which id.

The wait ends with the first copy of the missing message that gets through. A shorter resend time shortens it, and so does sending messages twice under loss. Messages that need no order do not belong in this channel.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest %.0f ms: id %.0f for %.0f",
			machine.Count(n, "message waited", "messages waited"),
			worst[0],
			worst[1],
			worst[2],
		)
	},
}

// MalformedMessages is the rule "malformed-messages".
var MalformedMessages = &machine.Rule{
	ID: "malformed-messages", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "a packet's message section cannot be read",
	Explain: `The packet's header is sound, but its message section cannot be read. A count or a type is out of range, the schema does not allow a body, or padding is not zero. The finding is certain for the profile in use.

The article demands that a receiver discards such a packet, and so does not ack it. If it is acked all the same, its messages are lost for good. Or the profile's messages and schema are not the game's: compare them.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest payload %s",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "byte", "bytes"),
		)
	},
}

// MalformedConnection is the rule "malformed-connection-packet".
var MalformedConnection = &machine.Rule{
	ID: "malformed-connection-packet", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "a decrypted packet is no connection packet of the configuration",
	Explain: `A decrypted packet cannot be read to its last bit with the flow's configuration: channels, limits, message types and bodies. The finding is certain for the configuration in use.

yojimbo's own receiver would end the connection over such a packet. So when the connection lives on, the configuration in the profile is not the game's. Leave it out to have ackscope infer it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest payload %s",
			machine.Count(n, "packet", "packets"),
			machine.Count(uint64(worst[0]), "byte", "bytes"),
		)
	},
}

// MessageStuck is the rule "stuck-message".
var MessageStuck = &machine.Rule{
	ID: "stuck-message", Severity: machine.Error, Absence: true,
	Summary: "a message is never sent while later ones are: the channel is stuck behind it",
	Explain: `The sender never sends a message, but goes on with later ones of the same channel. A reliable-ordered channel gives out its ids in order, and the receiver hands messages over in order. So everything behind this message arrives and is held back. After 1,024 ids the sender stops too.

ackscope reports it after at least ten packets and one second in which later ids went out. The finding is certain where the capture has every packet of the sender, and likely otherwise.

The usual cause is a message larger than what the channel may put into a packet. That limit is packetBudget, or maxPacketSize less its headers. The sender skips the message each time. Split such messages, send them as blocks, or raise the budget.`,
	Say: func(n uint64, worst [3]float64) string {
		if worst[1] < 0 {
			return fmt.Sprintf("message %.0f is never sent; %.0f later ids are", worst[0], worst[2])
		}
		return fmt.Sprintf("message %.0f of channel %.0f is never sent; %.0f later ids are", worst[0], worst[1], worst[2])
	},
}

// MessageResentAcked is the rule "message-resent-after-ack".
var MessageResentAcked = &machine.Rule{
	ID: "message-resent-after-ack", Severity: machine.Warn, Resend: "ack-ignored",
	Summary: "a message was sent again although its sender had read the ack of it",
	Explain: `A message was sent again although its sender had read the ack of it. That is bandwidth for nothing.

A packet that carried the message was acked, and a later header of the sender proves that it had read that ack. It sent the message again more than a quarter of a second later. ackscope ignores a copy within a frame or two, which follows from the order of the library's calls. The finding is certain.

Look at how the sender maps acks of packets to the messages that they carried.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s again, up to %.0f ms after the ack",
			machine.Count(n, "message sent", "messages sent"),
			worst[0],
		)
	},
}

// MessageNeedless is the rule "message-resent-needlessly".
var MessageNeedless = &machine.Rule{
	ID: "message-resent-needlessly", Severity: machine.Note, Resend: "needless",
	Summary: "messages were sent again after the copy that arrived",
	Explain: `Messages were sent again after the copy that arrived. A reliable message goes into further packets every messageResendTime (0.1 s unless set) until one of them is acked. If the ack takes longer to come back, copies leave although the first had arrived. For example, at an RTT of 250 ms, further copies leave after 100 and 200 ms.

The finding is as certain as the arrival of the message.

This is the price of the article's fixed resend time. While acks come back within the resend time plus a frame, there are no such copies. Raise the resend time towards the RTT to save bandwidth, or lower it to recover faster.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, one of them in %s after the one that arrived",
			machine.Count(n, "message", "messages"),
			machine.Count(uint64(worst[0]), "packet", "packets"),
		)
	},
}

// BlockSplit is the rule "block-fragment-split".
var BlockSplit = &machine.Rule{
	ID: "block-fragment-split", Severity: machine.Warn,
	Summary: "packets with a block fragment travel as several datagrams each",
	Explain: `Each packet with a block fragment travels as several datagrams, and the loss of one of them loses the fragment. At a loss of p, the loss of a fragment becomes about 2p: 10 % instead of 5 %.

A block is cut into fragments that go one to a packet, so that each is lost and resent alone. With the library's defaults, a full fragment has 1,024 bytes plus headers. The library fragments packets above 1,024 bytes too. So each block fragment travels as two datagrams, the second of which is nearly empty. ackscope counts these datagrams, so the finding is certain.

Set blockFragmentSize some 32 bytes below fragmentPacketsAbove. Or raise fragmentPacketsAbove if the path's MTU allows it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s a block fragment travelled as %s",
			machine.Count(n, "packet with", "packets with"),
			machine.Count(uint64(worst[0]), "datagram", "datagrams"),
		)
	},
}

// BlockStalled is the rule "block-stalled".
var BlockStalled = &machine.Rule{
	ID: "block-stalled", Severity: machine.Warn,
	Summary: "a block transfer stood still",
	Explain: `A block transfer made no progress for a second or more. In that time no fragment came that the receiver did not already have. While the oldest message of a channel is a block, the sender sends nothing else of that channel. So everything behind the block waited too.

ackscope measures the time between fragments that are new to the receiver. The finding is certain.

The sender repeats fragments every blockFragmentResendTime (0.25 s unless set), one to a packet. Heavy loss makes such pauses, and so do packets that are fragmented themselves: see "block-fragment-split".`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest stood still for %.1f s with %.0f of %s there",
			machine.Count(n, "block", "blocks"),
			worst[0],
			worst[1],
			machine.Count(uint64(worst[2]), "fragment", "fragments"),
		)
	},
}
