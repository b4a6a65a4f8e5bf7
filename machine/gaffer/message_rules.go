package gaffer

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// resendLeast is the article's resend time.
const resendLeast = 100 * time.Millisecond

// MessageRules lists what a Conversation may report beside FindingRules.
var MessageRules = []*machine.Rule{messageBeyond, messageResentEarly, headOfLine, malformedMessages}

var messageBeyond = &machine.Rule{
	ID: "message-beyond-window", Severity: machine.Error,
	Summary: "a message was sent that the receiver cannot buffer",
	Explain: `The article calls this rule super important: never send a message id at or beyond the oldest unacked one plus the size of the receive buffer. The receiver has no place for such a message and drops it, but acks the packet that carried it. The sender takes the message for delivered and never sends it again: from then on the receiver waits for it for ever, and delivers nothing.

Look at the loop that fills packets: it must stop at oldest unacked + receive buffer. If the profile's receive_queue is not the game's, correct the profile.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, the worst %.0f beyond the receive buffer: id %.0f while %.0f was not acked", n, worst[0], worst[1], worst[2])
	},
}

var messageResentEarly = &machine.Rule{
	ID: "message-resent-early", Severity: machine.Note, Resend: "early",
	Summary: "a message was put into another packet sooner than the article's resend time",
	Explain: `The article sends a message again at the earliest 0.1 s after it was last sent. Here copies follow each other sooner: at high packet rates that is the same message over and over, at the cost of others. It may be meant: the resend time can be a multiple of the round trip time, or grow with each copy.`,
	// The worst is kept by the largest figure; sooner is worse here, so the text
	// gives the latest of the early ones as what it is.
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

var malformedMessages = &machine.Rule{
	ID: "malformed-messages", Severity: machine.Warn,
	Summary: "a packet's message section cannot be read",
	Explain: `The packet's header is sound, but its message section is not: a count or a type out of range, a body that the schema does not allow, padding that is not zero. The article demands that such a packet is discarded, and so not acked. If it is acked all the same, its messages are lost for good; or the profile's messages and schema are not the game's.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, the longest payload %.0f bytes", n, worst[0])
	},
}
