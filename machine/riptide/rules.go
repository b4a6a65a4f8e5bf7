package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Rules lists every rule that the tracker can report.
var Rules = []*machine.Rule{
	AckedNotDelivered, DeliveredTwice, WindowJump, FalseAck, WindowRepaired, MergedSequences, AckOfNothing,
	ResentMessageLost, ResentAckLost, ResentLoss, ResentLate, ResentTimer, ResentStalled, AttemptsNear, AttemptsLimit,
	NoAnswer, Rejected, WelcomeMismatch, HeartbeatLate, HeartbeatUnanswered, QualityNear, QualityLimit, PoorEnd,
	TimedOut, SilentEnd,
	NotifyPassed, NotifyJump, ShortArrays, VarLong, StaleBits, UselessCause, StopReads80, LastStuck, Oversize, Malformed,
	PortPytide, PortOneID, PortLost, PortResent, PortThrows, PortNotify, PortRejects, PortNoTimeout, PortBools,
	PortRelay, Relayed,
}

// count formats a number of things: "1 message", "3 messages".
func count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// AckedNotDelivered is the rule "riptide-acked-not-delivered".
var AckedNotDelivered = &machine.Rule{
	ID: "riptide-acked-not-delivered", Severity: machine.Error, Absence: true,
	Summary: "a message was acked and never handed to the application",
	Explain: `The receiver answered the message with an Ack, so its sender counts it as delivered; but the receiver's window took it for one that it had already, and threw it away. It is the window fault of releases 2.1.0 to 2.2.1 and of source builds since February 2023: when the newest sequence id jumps by 32 or more, whole words of the window's bits stay where they are, and then stand for ids that have not come yet.

At the receiver's own end the capture proves it. Seen from the other end it is likely: its Acks show the jump, and the refusal follows from how the library is built.

A jump of 32 needs that many reliable messages on their way at once: send fewer, put several into one message, or take a version of the library with the repaired window (after August 2026).`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the newest with id %.0f: %s", count(n, "message"), worst[0], windowOf(worst[1]))
	},
}

// DeliveredTwice is the rule "riptide-delivered-twice".
var DeliveredTwice = &machine.Rule{
	ID: "riptide-delivered-twice", Severity: machine.Warn,
	Summary: "a reliable message was handed to the application more than once",
	Explain: `Copies of a reliable message are sent until an Ack comes, and the receiver's window is to hand over the first only. Here it let another one in. After a jump of 32 or more ids the window of 2.1.0 to 2.2.1 loses bits (the other face of "riptide-acked-not-delivered"); release 2.0.0 has no memory of ids more than 80 behind; Pytide 2.0.0 filters nothing.

What the message does should not be done twice: let it carry an id of your own, and check that.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times too often, one message %.0f times: %s", n, worst[0], windowOf(worst[1]))
	},
}

// WindowJump is the rule "riptide-window-jump".
var WindowJump = &machine.Rule{
	ID: "riptide-window-jump", Severity: machine.Warn, Absence: true,
	Summary: "the newest reliable id jumped further than the library's window stands",
	Explain: `From a jump of 32 ids on (17 in release 2.0.0) the library's window of received ids is not reliable: Acks after it can name messages that never came, messages can be thrown away as duplicates, and duplicates can be let in. See "riptide-acked-not-delivered" for what came of it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest jump %.0f, to id %.0f", count(n, "time"), worst[0], worst[1])
	},
}

// AttemptsNear is the rule "riptide-attempts-high".
var AttemptsNear = &machine.Rule{
	ID: "riptide-attempts-high", Severity: machine.Warn,
	Summary: "a message needed many of its 15 attempts",
	Explain: `A reliable message is sent 15 times at most. When a 16th would be due, releases since 2.1.0 drop the whole connection (PoorConnection), and say nothing on the wire; 2.0.0 forgets the message. Here a message came near it: an outage a little longer would have ended the connection. At a short RTT 15 attempts are soon used up (1.2 x RTT each, at least a tick): MaxSendAttempts raises the limit.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, at most %.0f copies", count(n, "message"), worst[0])
	},
}

// AttemptsLimit is the rule "riptide-attempts-exhausted".
var AttemptsLimit = &machine.Rule{
	ID: "riptide-attempts-exhausted", Severity: machine.Warn,
	Summary: "a message was sent 15 times without an ack: the connection is dropped, or the message",
	Explain: `All 15 attempts of a reliable message were used and its sender has not taken an Ack for it. Since 2.1.0 that ends the connection with the reason PoorConnection, without a word on the wire: the other end waits for its timeout of 5 to 6 s. Release 2.0.0 and builds of early 2023 forget the message and go on.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the last with id %.0f", count(n, "message"), worst[1])
	},
}

// AckOfNothing is the rule "riptide-ack-of-nothing".
var AckOfNothing = &machine.Rule{
	ID: "riptide-ack-of-nothing", Severity: machine.Warn, Absence: true,
	Summary: "an Ack answers an id that its receiver never sent",
	Explain: `The tap is at the side to which the Ack goes, so all that it sent was seen. Either the capture lost packets, or the other end acks what did not come.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the furthest %.0f ahead of the newest", count(n, "Ack"), worst[0])
	},
}

// Oversize is the rule "riptide-oversize".
var Oversize = &machine.Rule{
	ID: "riptide-oversize", Severity: machine.Warn,
	Summary: "a message is larger than the library's default limit",
	Explain: `The library's default allows 1231 bytes for a whole message (1230 before July 2023). Larger ones are possible where both ends raise the limit; a receiver with a smaller one cannot read them.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest %.0f bytes", count(n, "message"), worst[0])
	},
}

// Malformed is the rule "riptide-malformed".
var Malformed = &machine.Rule{
	ID: "riptide-malformed", Severity: machine.Warn,
	Summary: "a datagram of the flow cannot be read as a message of its dialect",
	Explain: `The type does not exist or a field of the header is missing. The library drops such a datagram with a log line.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the longest %.0f bytes", count(n, "datagram"), worst[0])
	},
}
