package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Rules lists what the tracker may report.
var Rules = []*machine.Rule{
	ackedNotDelivered, deliveredTwice, windowJump, mergedSequences, resentMessageLost, resentAckLost, resentLoss, resentLate, resentTimer, resentStalled, attemptsNear, attemptsLimit,
	qualityNear, qualityLimit, heartbeatLate, heartbeatUnanswered, timedOut, noAnswer, rejected, ackOfNothing, welcomeMismatch,
	stopReads80, oversize, malformed, pytidePort,
}

var ackedNotDelivered = &machine.Rule{
	ID: "riptide-acked-not-delivered", Severity: machine.Error,
	Summary: "a message was acked and never handed to the application",
	Explain: `The receiver answered the message with an Ack, so its sender counts it as delivered; but the receiver's window took it for one that it had already, and threw it away. It is the window fault of releases 2.1.0 to 2.2.1 and of source builds since February 2023: when the newest sequence id jumps by 32 or more, whole words of the window's bits stay where they are, and then stand for ids that have not come yet.

At the receiver's own end the capture proves it. Seen from the other end it is likely: its Acks show the jump, and the refusal follows from how the library is built.

A jump of 32 needs that many reliable messages on their way at once: send fewer, put several into one message, or take a version of the library with the repaired window (after August 2026).`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the newest with id %.0f", count(n, "message"), worst[0])
	},
}

var deliveredTwice = &machine.Rule{
	ID: "riptide-delivered-twice", Severity: machine.Warn,
	Summary: "a reliable message was handed to the application more than once",
	Explain: `Copies of a reliable message are sent until an Ack comes, and the receiver's window is to hand over the first only. Here it let another one in. After a jump of 32 or more ids the window of 2.1.0 to 2.2.1 loses bits (the other face of "riptide-acked-not-delivered"); release 2.0.0 has no memory of ids more than 80 behind; Pytide 2.0.0 filters nothing.

What the message does should not be done twice: let it carry an id of your own, and check that.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times too often, one message %.0f times", n, worst[0])
	},
}

var windowJump = &machine.Rule{
	ID: "riptide-window-jump", Severity: machine.Warn,
	Summary: "the newest reliable id jumped further than the library's window stands",
	Explain: `From a jump of 32 ids on (17 in release 2.0.0) the library's window of received ids is not reliable: Acks after it can name messages that never came, messages can be thrown away as duplicates, and duplicates can be let in. See "riptide-acked-not-delivered" for what came of it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, the largest jump %.0f, to id %.0f", n, worst[0], worst[1])
	},
}

var mergedSequences = &machine.Rule{
	ID: "riptide-merged-sequences", Severity: machine.Error,
	Summary: "messages went out under the sequence id of another connection (2.1.0)",
	Explain: `Release 2.1.0 writes the sequence id of a reliable message into the one message object that it sends to several clients, and ORs it over the id that is there: from the second client on the id is the OR of both. The receiver acks that id; the sender waits for the one that it meant, sends again, and drops the client after 15 attempts. Broadcasts, relayed messages and "client connected" all do it; sessions of three and more hardly survive.

It is repaired in 2.1.1: update the server.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, the last under id %.0f", n, worst[1])
	},
}

var attemptsNear = &machine.Rule{
	ID: "riptide-attempts-high", Severity: machine.Warn,
	Summary: "a message needed many of its 15 attempts",
	Explain: `A reliable message is sent 15 times at most. When a 16th would be due, releases since 2.1.0 drop the whole connection (PoorConnection), and say nothing on the wire; 2.0.0 forgets the message. Here a message came near it: an outage a little longer would have ended the connection. At a short RTT 15 attempts are soon used up (1.2 x RTT each, at least a tick): MaxSendAttempts raises the limit.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, at most %.0f copies", n, worst[0])
	},
}

var attemptsLimit = &machine.Rule{
	ID: "riptide-attempts-exhausted", Severity: machine.Warn,
	Summary: "a message was sent 15 times without an ack: the connection is dropped, or the message",
	Explain: `All 15 attempts of a reliable message were used and its sender has not taken an Ack for it. Since 2.1.0 that ends the connection with the reason PoorConnection, without a word on the wire: the other end waits for its timeout of 5 to 6 s. Release 2.0.0 and builds of early 2023 forget the message and go on.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, the last with id %.0f", n, worst[1])
	},
}

var qualityNear = &machine.Rule{
	ID: "riptide-quality-warning", Severity: machine.Warn,
	Summary: "the library was about to end the connection for its quality",
	Explain: `Since 2.1.0 a connection ends (PoorConnection) when for 64 outcomes in a row more than 5 % of the last 64 notify messages were lost, or for 64 messages in a row the last 64 took more than 5 attempts on average. Here half of such a row was seen. Notify messages count as lost also when the other side sends so few of its own that its headers pass them over.

MaxNotifyLoss, MaxAvgSendAttempts and their resiliences raise the limits; CanQualityDisconnect switches them off.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, %.0f outcomes in a row", n, worst[0])
	},
}

var qualityLimit = &machine.Rule{
	ID: "riptide-quality-limit", Severity: machine.Warn,
	Summary: "the library's quality limit was reached: with its default settings the connection ends here",
	Explain: `See "riptide-quality-warning": 64 outcomes in a row were beyond the limit. With default settings the side ends the connection at this frame, without a word; the other end finds out by its timeout. Where the connection goes on, the application has lifted the limits.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, %.0f outcomes in a row", n, worst[0])
	},
}

var heartbeatLate = &machine.Rule{
	ID: "riptide-heartbeat-late", Severity: machine.Note,
	Summary: "a heartbeat was due and came late, or not",
	Explain: `The client sends a heartbeat each second. A longer gap at the client's own end is its application standing still; seen from the server's end it may be loss too. Only heartbeats keep the connection alive, data does not: after 5 s without one the other side gives up.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, the longest gap %.0f ms", n, worst[0])
	},
}

var heartbeatUnanswered = &machine.Rule{
	ID: "riptide-heartbeat-unanswered", Severity: machine.Note,
	Summary: "heartbeats of the client had no answer",
	Explain: `The server answers each heartbeat at once; the client measures its RTT by it and stays connected by it. Without an answer the RTT, and with it the resend timer, stay as they were, and after 5 s the client gives up.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d heartbeats, up to %.0f in a row", n, worst[0])
	},
}

var timedOut = &machine.Rule{
	ID: "riptide-silent-end", Severity: machine.Warn,
	Summary: "one side fell silent without saying that it ends the connection",
	Explain: `The other side went on for more than a heartbeat's time. A side that falls silent was killed, lost its network, or ended the connection for its quality (PoorConnection), which the library never says on the wire. "ackscope autopsy" lays out what was known.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the other side went on for %.0f ms", worst[0])
	},
}

var noAnswer = &machine.Rule{
	ID: "riptide-connect-unanswered", Severity: machine.Warn,
	Summary: "a client asked for a connection and had no answer",
	Explain: `A client sends Connect up to five times, a second apart, and then fails with NoConnection. No server listens there, or the packets do not get through either way.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f Connects", worst[0])
	},
}

var rejected = &machine.Rule{
	ID: "riptide-rejected", Severity: machine.Note,
	Summary: "the server refused a client",
	Explain: `The reason is in the Reject message; its numbers differ between versions: 2 is "server full" since 2.1, "pending" in 2.0.0 and Pytide. A custom rejection carries the application's own data.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("reason %.0f", worst[0])
	},
}

var ackOfNothing = &machine.Rule{
	ID: "riptide-ack-of-nothing", Severity: machine.Warn,
	Summary: "an Ack answers an id that its receiver never sent",
	Explain: `The tap is at the side to which the Ack goes, so all that it sent was seen. Either the capture lost packets, or the other end acks what did not come.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d Acks, the furthest %.0f ahead of the newest", n, worst[0])
	},
}

var welcomeMismatch = &machine.Rule{
	ID: "riptide-welcome-mismatch", Severity: machine.Warn,
	Summary: "the client answered Welcome with another id than the server gave it",
	Explain: `The client's Welcome has to repeat the id that the server's gave. The library logs an error and goes on; messages addressed by id then go astray.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("given %.0f, answered %.0f", worst[0], worst[1])
	},
}

var stopReads80 = &machine.Rule{
	ID: "riptide-stop-reads-80", Severity: machine.Note,
	Summary: "the server's stop reads as disconnect reason 80",
	Explain: `Releases 2.1.0 to 2.2.0 (and Pytide 2.1.0-alpha over TCP) write the reason of a stopping server as a whole byte behind the 4 bits of the type; clients read 80 in place of 5 (ServerStopped). Repaired in 2.2.1.`,
}

var oversize = &machine.Rule{
	ID: "riptide-oversize", Severity: machine.Warn,
	Summary: "a message is larger than the library's default limit",
	Explain: `The library's default allows 1231 bytes for a whole message (1230 before July 2023). Larger ones are possible where both ends raise the limit; a receiver with a smaller one cannot read them.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, the largest %.0f bytes", n, worst[0])
	},
}

var malformed = &machine.Rule{
	ID: "riptide-malformed", Severity: machine.Warn,
	Summary: "a datagram of the flow cannot be read as a message of its dialect",
	Explain: `The type does not exist or a field of the header is missing. The library drops such a datagram with a log line.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams, the longest %.0f bytes", n, worst[0])
	},
}

var pytidePort = &machine.Rule{
	ID: "riptide-pytide", Severity: machine.Note,
	Summary: "this side is Pytide, the Python port",
	Explain: `Pytide differs from the library: it never sends a lost reliable message again, its heartbeats all have ping id 1, and its Acks can be wrong. What its Acks mean is graded likely at most. Version 2.0.0 gives all reliable messages the id 1 and acks only Welcome; 2.1.0-alpha never times out and, with its default limits, drops the connection after 14 reliable messages.`,
}

// count words a number of things.
func count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
