package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// QualityNear is the rule "riptide-quality-warning".
var QualityNear = &machine.Rule{
	ID: "riptide-quality-warning", Severity: machine.Warn,
	Summary: "the library was about to end the connection for its quality",
	Explain: `Since 2.1.0 a connection ends (PoorConnection) when for 64 outcomes in a row more than 5 % of the last 64 notify messages were lost, or for 64 messages in a row the last 64 took more than 5 attempts on average. Here half of such a row was seen. Notify messages count as lost also when the other side sends so few of its own that its headers pass them over.

MaxNotifyLoss, MaxAvgSendAttempts and their resiliences raise the limits; CanQualityDisconnect switches them off.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, %.0f outcomes in a row", count(n, "time"), worst[0])
	},
}

// QualityLimit is the rule "riptide-quality-limit".
var QualityLimit = &machine.Rule{
	ID: "riptide-quality-limit", Severity: machine.Warn,
	Summary: "the library's quality limit was reached: with its default settings the connection ends here",
	Explain: `See "riptide-quality-warning": 64 outcomes in a row were beyond the limit. With default settings the side ends the connection at this frame, without a word; the other end finds out by its timeout. Where the connection goes on, the application has lifted the limits.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, %.0f outcomes in a row", count(n, "time"), worst[0])
	},
}

// HeartbeatLate is the rule "riptide-heartbeat-late".
var HeartbeatLate = &machine.Rule{
	ID: "riptide-heartbeat-late", Severity: machine.Note, Absence: true,
	Summary: "a heartbeat was due and came late, or not",
	Explain: `The client sends a heartbeat each second. A longer gap at the client's own end is its application standing still; seen from the server's end it may be loss too. Only heartbeats keep the connection alive, data does not: after 5 s without one the other side gives up.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the longest gap %.0f ms", count(n, "time"), worst[0])
	},
}

// HeartbeatUnanswered is the rule "riptide-heartbeat-unanswered".
var HeartbeatUnanswered = &machine.Rule{
	ID: "riptide-heartbeat-unanswered", Severity: machine.Note, Absence: true,
	Summary: "heartbeats of the client had no answer",
	Explain: `The server answers each heartbeat at once; the client measures its RTT by it and stays connected by it. Without an answer the RTT, and with it the resend timer, stay as they were, and after 5 s the client gives up.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, up to %.0f in a row", count(n, "heartbeat"), worst[0])
	},
}

// SilentEnd is the rule "riptide-silent-end".
var SilentEnd = &machine.Rule{
	ID: "riptide-silent-end", Severity: machine.Warn, Absence: true,
	Summary: "one side fell silent without saying that it ends the connection",
	Explain: `The other side went on for more than a heartbeat's time. A side that falls silent was killed or lost its network: no limit of the library was reached that would explain it (see "riptide-poor-connection" and "riptide-timed-out" for those). "ackscope autopsy" lays out what was known.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the other side went on for %.0f ms", worst[0])
	},
}

// NoAnswer is the rule "riptide-connect-unanswered".
var NoAnswer = &machine.Rule{
	ID: "riptide-connect-unanswered", Severity: machine.Warn, Absence: true,
	Summary: "a client asked for a connection and had no answer",
	Explain: `A client sends Connect up to five times, a second apart, and then fails with NoConnection. No server listens there, or the packets do not get through either way.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f Connects", worst[0])
	},
}

// Rejected is the rule "riptide-rejected".
var Rejected = &machine.Rule{
	ID: "riptide-rejected", Severity: machine.Note,
	Summary: "the server refused a client",
	Explain: `The reason is in the Reject message; its numbers differ between versions: 2 is "server full" since 2.1, "pending" in 2.0.0 and Pytide. A custom rejection carries the application's own data.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("reason %.0f", worst[0])
	},
}

// WelcomeMismatch is the rule "riptide-welcome-mismatch".
var WelcomeMismatch = &machine.Rule{
	ID: "riptide-welcome-mismatch", Severity: machine.Warn,
	Summary: "the client answered Welcome with another id than the server gave it",
	Explain: `The client's Welcome has to repeat the id that the server's gave. The library logs an error and goes on; messages addressed by id then go astray.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("given %.0f, answered %.0f", worst[0], worst[1])
	},
}

// TimedOut is the rule "riptide-timed-out".
var TimedOut = &machine.Rule{
	ID: "riptide-timed-out", Severity: machine.Warn, Absence: true,
	Summary: "one side gave up: it had heard nothing that keeps the connection alive for 5 s",
	Explain: `A side ends the connection when no heartbeat has reached it for 5 s (a server), or no answer to its own (a client). It looks once a heartbeat's time, so it happens 5 to 6 s after the last one; messages and Acks do not count. Nothing is said on the wire: the side just stops, and the other end has to find out by its own timeout.

The tap is at this side, and it fell silent when that time was over. Look for what kept the heartbeats away: loss, a dead peer, a peer that had ended the connection without a word.`,
	Say: func(_ uint64, worst [3]float64) string {
		if worst[0] < machine.Milliseconds(Timeout)-machine.Milliseconds(Silence) {
			return "no heartbeat reached it for 5 s and more, and it had nothing to say itself"
		}
		return fmt.Sprintf("it fell silent %.0f ms after the last heartbeat that reached it", worst[0])
	},
}

// PoorEnd is the rule "riptide-poor-connection".
var PoorEnd = &machine.Rule{
	ID: "riptide-poor-connection", Severity: machine.Warn, Absence: true,
	Summary: "one side ended the connection for its quality (PoorConnection), without a word",
	Explain: `Since July 2023 the library ends a connection by itself when a reliable message was sent 15 times without an Ack and is due again, when for 64 notify messages in a row more than 5 % of the last 64 were lost, or when for 64 reliable messages in a row the last 64 took more than 5 sends on average. It says nothing: the other end waits for its timeout of 5 to 6 s and reports TimedOut. Pytide 2.1.0-alpha does it at its 16th reliable message, whatever became of the others.

The tap is at this side; it reached such a limit and never spoke again. MaxSendAttempts, MaxNotifyLoss, MaxAvgSendAttempts and their resiliences raise the limits, CanQualityDisconnect switches them off.`,
	Say: func(_ uint64, worst [3]float64) string {
		switch int(worst[0]) {
		case DroppedNotify:
			return "too many notify messages were lost: over 5 % of the last 64, 64 times in a row"
		case DroppedSends:
			return "messages took too many sends: over 5 on average of the last 64, 64 times in a row"
		case DroppedCount:
			return "Pytide has used up its 15 reliable messages"
		}
		return "a message was sent 15 times without an Ack"
	},
}
