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
	return machine.Count(n, thing, thing+"s")
}

// AckedNotDelivered is the rule "riptide-acked-not-delivered".
var AckedNotDelivered = &machine.Rule{
	ID: "riptide-acked-not-delivered", Severity: machine.Error, Absence: true,
	Summary: "a message was acked and never handed to the application",
	Explain: `A message was acked and never handed to the application. Its sender counts it as delivered. The receiver's window took it for a message that it had already received, and threw it away.

Releases 2.1.0 to 2.2.1 and source builds since February 2023 have this window fault. When the newest sequence id jumps by 32 or more, whole words of the window's bits stay where they are. They then stand for ids that have not come yet.

At the receiver's own end, the capture proves it. Seen from the other end it is likely: the Acks show the jump, and the refusal follows from how the library is built.

A jump of 32 needs that many reliable messages on their way at once. Send fewer, put several into one message, or use a version with the repaired window (after August 2026).`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the newest with id %.0f: %s", count(n, "message"), worst[0], windowOf(worst[1]))
	},
}

// DeliveredTwice is the rule "riptide-delivered-twice".
var DeliveredTwice = &machine.Rule{
	ID: "riptide-delivered-twice", Severity: machine.Warn,
	Summary: "a reliable message was handed to the application more than once",
	Explain: `The receiver handed a reliable message to the application more than once. A sender sends copies until an Ack comes, and the receiver's window should hand over only the first. Here it let another one in.

Three versions do that. After a jump of 32 or more ids, the window of 2.1.0 to 2.2.1 loses bits, by the fault of "riptide-acked-not-delivered". Release 2.0.0 has no memory of ids more than 80 behind. Pytide 2.0.0 filters nothing.

ackscope runs the library's window over the copies in a capture taken at the receiver. The finding is certain where it knows all that reached that side, and likely otherwise.

If the message must not take effect twice, put an id of your own into it and check that id.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s too often, one message %s: %s",
			machine.Count(n, "time", "times"),
			machine.Count(uint64(worst[0]), "time", "times"),
			windowOf(worst[1]),
		)
	},
}

// WindowJump is the rule "riptide-window-jump".
var WindowJump = &machine.Rule{
	ID: "riptide-window-jump", Severity: machine.Warn, Absence: true, Origin: machine.OriginLibrary,
	Summary: "the newest reliable id jumped further than the library's window stands",
	Explain: `The newest reliable id jumped so far that the library's window of received ids is no longer reliable. That begins at a jump of 32 ids, or of 17 in release 2.0.0. Afterwards Acks can name messages that never came. The receiver can throw messages away as duplicates, and can let duplicates in.

ackscope follows the ids that the side answers. At the side's own end the jump is certain if the capture is complete. Elsewhere it is likely, since lost Acks also make a jump.

See "riptide-acked-not-delivered" for what can come of it. Send fewer reliable messages at once.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest jump %.0f, to id %.0f", count(n, "time"), worst[0], worst[1])
	},
}

// AttemptsNear is the rule "riptide-attempts-high".
var AttemptsNear = &machine.Rule{
	ID: "riptide-attempts-high", Severity: machine.Warn,
	Summary: "a message needed many of its 15 attempts",
	Explain: `A message needed ten or more of its 15 attempts, so an outage a little longer could have ended the connection. When a 16th attempt is due, the library drops the whole connection (PoorConnection), without a word on the wire. It does so since July 2023 (2.1.0 and later). Release 2.0.0 and earlier source builds forget the message.

ackscope counts the copies in the capture. The finding is certain.

Look for the outage. At a short RTT, 15 attempts are soon used up: each takes 1.2 x RTT, and at least a tick. At an RTT of 20 ms and 60 ticks a second, they last half a second. MaxSendAttempts raises the limit.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s sent %d times or more; worst: id %.0f, sent %s", count(n, "message"), AttemptsMany,
			worst[1], count(uint64(worst[0]), "time"))
	},
}

// AttemptsLimit is the rule "riptide-attempts-exhausted".
var AttemptsLimit = &machine.Rule{
	ID: "riptide-attempts-exhausted", Severity: machine.Warn,
	Summary: "a message was sent 15 times without an ack: the connection is dropped, or the message",
	Explain: `All 15 attempts of a reliable message were used, and its sender has not taken an Ack for it. Since July 2023 (2.1.0 and later) that ends the connection with the reason PoorConnection, without a word on the wire. The other end waits for its timeout of 5 to 6 s. Release 2.0.0 and builds of early 2023 forget the message and go on.

ackscope counts the copies in the capture, and found no Ack that names the message. The finding is likely.

Look for what kept the Acks away for so long. MaxSendAttempts raises the limit.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the last with id %.0f", count(n, "message"), worst[1])
	},
}

// AckOfNothing is the rule "riptide-ack-of-nothing".
var AckOfNothing = &machine.Rule{
	ID: "riptide-ack-of-nothing", Severity: machine.Warn, Absence: true, Origin: machine.OriginCode,
	Summary: "an Ack answers an id that its receiver never sent",
	Explain: `An Ack answers an id that its receiver never sent. For example, the newest id sent is 40, and the Ack answers 52.

The capture was taken at the side to which the Ack goes, so the capture should have everything that this side sent. The finding is likely: either the capture lost packets, or the other end acks messages that did not come.

Look for gaps in the capture first. If it is complete, look at how the other end chooses the id that it acks.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the furthest %.0f ahead of the newest", count(n, "Ack"), worst[0])
	},
}

// Oversize is the rule "riptide-oversize".
var Oversize = &machine.Rule{
	ID: "riptide-oversize", Severity: machine.Warn,
	Summary: "a message is larger than the library's default limit",
	Explain: `A message is larger than the library's default limit: 1231 bytes for a whole message, or 1230 before July 2023. ackscope reads the size from the datagram, so the finding is certain.

Larger messages are possible where both ends raise the limit. A receiver with a smaller limit cannot read them. Raise the limit at both ends, or send smaller messages.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest %s", count(n, "message"), machine.Count(uint64(worst[0]), "byte", "bytes"))
	},
}

// Malformed is the rule "riptide-malformed".
var Malformed = &machine.Rule{
	ID: "riptide-malformed", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "a datagram of the flow cannot be read as a message of its dialect",
	Explain: `A datagram cannot be read as a message of the flow's dialect. Its type does not exist, or a field of its header is missing. The finding is certain for the dialect in use.

The library drops such a datagram with a log line. If many datagrams of a side are malformed, check the profile.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the longest %s", count(n, "datagram"), machine.Count(uint64(worst[0]), "byte", "bytes"))
	},
}
