package messages

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// ResendLeast is the article's resend time.
// Source: law, the article "Reliable Ordered Messages": a message is sent again after 0.1 s
const ResendLeast = 100 * time.Millisecond

// Rules lists what tracker.Conversation may report, in addition to gaffer.FindingRules.
var Rules = []*machine.Rule{MessageBeyond, MessageResentEarly, headOfLine, MalformedMessages}

// MessageBeyond is the rule "message-beyond-window".
var MessageBeyond = &machine.Rule{
	ID: "message-beyond-window", Severity: machine.Error,
	Summary: "a message was sent that the receiver cannot buffer",
	Explain: `The article calls this rule super important: never send a message id at or beyond the oldest unacked one plus the size of the receive buffer. The receiver has no place for such a message and drops it, but acks the packet that carried it. The sender takes the message for delivered and never sends it again: from then on the receiver waits for it for ever, and delivers nothing.

Look at the loop that fills packets: it must stop at oldest unacked + receive buffer. If the profile's receive_queue is not the game's, correct the profile.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, the worst %.0f beyond the receive buffer: id %.0f while %.0f was not acked", n,
			worst[0], worst[1], worst[2])
	},
}

// MessageResentEarly is the rule "message-resent-early".
var MessageResentEarly = &machine.Rule{
	ID: "message-resent-early", Severity: machine.Note, Resend: "early",
	Summary: "a message was put into another packet sooner than the article's resend time",
	Explain: `The article sends a message again at the earliest 0.1 s after it was last sent. Here copies follow each other sooner: at high packet rates that is the same message over and over, at the cost of others. It may be meant: the resend time can be a multiple of the round trip time, or grow with each copy.`,
	// The largest figure is kept, but a sooner copy is the worse one. So the text states
	// the figure as a bound: all early copies came within it.
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d copies within %.0f ms of the one before", n, worst[0])
	},
}

var headOfLine = &machine.Rule{
	ID: "head-of-line-blocking", Severity: machine.Note,
	Summary: "messages had arrived and waited for an earlier one",
	Explain: `Reliable ordered messages are handed over in the order of their ids. These lay complete in the receive buffer while an earlier id was missing: its packet was lost, and it came with a later one. "ackscope messages" shows for each how long it waited and for which.

The wait ends with the first copy of the blocker that gets through: a shorter resend time, or sending messages twice under loss, shortens it. What need not be in order does not belong into this channel.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages waited, the longest %.0f ms: id %.0f for %.0f", n, worst[0], worst[1], worst[2])
	},
}

// MalformedMessages is the rule "malformed-messages".
var MalformedMessages = &machine.Rule{
	ID: "malformed-messages", Severity: machine.Warn,
	Summary: "a packet's message section cannot be read",
	Explain: `The packet's header is sound, but its message section is not: a count or a type out of range, a body that the schema does not allow, padding that is not zero. The article demands that such a packet is discarded, and so not acked. If it is acked all the same, its messages are lost for good; or the profile's messages and schema are not the game's.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, the longest payload %.0f bytes", n, worst[0])
	},
}

// MalformedConnection is the rule "malformed-connection-packet".
var MalformedConnection = &machine.Rule{
	ID: "malformed-connection-packet", Severity: machine.Warn,
	Summary: "a decrypted packet is no connection packet of the configuration",
	Explain: `The packet's payload cannot be read to its last bit with the flow's configuration: channels, limits, message types and bodies. yojimbo's own receiver would end the connection over it, so when the connection lives on, the configuration in the profile is not the game's. Leave it out to have it inferred.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, the longest payload %.0f bytes", n, worst[0])
	},
}

// MessageStuck is the rule "stuck-message".
var MessageStuck = &machine.Rule{
	ID: "stuck-message", Severity: machine.Error, Absence: true,
	Summary: "a message is never sent while later ones are: the channel is stuck behind it",
	Explain: `Ids of a reliable-ordered channel are given out in order, and the receiver hands messages over in order. The sender goes on with later ids, but no packet carries this one. The usual cause: the message is larger than what the channel may put into a packet (packetBudget, or maxPacketSize less its headers), so it is passed over each time. Everything behind it arrives, is held back, and after 1,024 ids the sender stops too.

Split such messages, send them as blocks, or raise the budget.`,
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
	Explain: `A packet that carried this message was acked, and a later header of the sender proves that it had read that ack. It sent the message again all the same, a quarter of a second or more later (within a frame or two that is the order of the library's calls): bandwidth for nothing. Look at how acks of packets are taken to the messages that they carried.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages sent again, up to %.0f ms after the ack", n, worst[0])
	},
}

// MessageNeedless is the rule "message-resent-needlessly".
var MessageNeedless = &machine.Rule{
	ID: "message-resent-needlessly", Severity: machine.Note, Resend: "needless",
	Summary: "messages were sent again after the copy that arrived",
	Explain: `A reliable message is put into further packets every messageResendTime (0.1 s unless set) until one of them is acked. Where an ack takes longer than that to come back, copies leave although the first had arrived. That is the price of the article's fixed resend time: below an RTT of it plus a frame there are none. Raise the resend time towards the RTT to save the bandwidth; lower it to recover faster.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, one of them in %.0f packets after the one that arrived", n, worst[0])
	},
}

// BlockSplit is the rule "block-fragment-split".
var BlockSplit = &machine.Rule{
	ID: "block-fragment-split", Severity: machine.Warn,
	Summary: "packets with a block fragment travel as several datagrams each",
	Explain: `A block is cut into fragments that go one to a packet, so that each is lost and resent alone. But with the library's defaults a full fragment (1,024 bytes) and its headers exceed the size above which the packet itself is fragmented (1,024 too): each block fragment travels as two datagrams, and losing either loses it. At a loss of p the loss of a fragment becomes about 2p, and the second datagram is nearly empty.

Set blockFragmentSize some 32 bytes below fragmentPacketsAbove, or raise the latter if the path's MTU allows.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets with a block fragment travelled as %.0f datagrams", n, worst[0])
	},
}

// BlockStalled is the rule "block-stalled".
var BlockStalled = &machine.Rule{
	ID: "block-stalled", Severity: machine.Warn,
	Summary: "a block transfer stood still",
	Explain: `For this long no fragment came that the receiver did not have already. While the oldest message of a channel is a block, nothing else of the channel is sent, so everything behind it waited too. Fragments are sent again every blockFragmentResendTime (0.25 s unless set), one to a packet: heavy loss, or packets that are fragmented themselves, make such holes.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d blocks, the longest stood still for %.1f s with %.0f of %.0f fragments there", n, worst[0],
			worst[1], worst[2])
	},
}
