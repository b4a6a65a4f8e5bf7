package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// repeated formats how often something happened, in front of what it was. It is
// empty for once.
func repeated(n uint64) string {
	if n == 1 {
		return ""
	}
	return count(n, "time") + " "
}

// QualityNear is the rule "riptide-quality-warning".
var QualityNear = &machine.Rule{
	ID: "riptide-quality-warning", Severity: machine.Warn,
	Summary: "the connection was close to a PoorConnection disconnect",
	Explain: `The connection came halfway to the limit at which the library ends it for poor quality (PoorConnection). After each notify message or reliable message, the library looks at the last 64. The result is bad if more than 5 % of the notify messages were lost. It is also bad if the reliable messages took more than 5 attempts on average. After 64 bad results in a row, the library ends the connection. It does so since July 2023 (2.1.0 and later).

ackscope counts the results as the library does, and saw 32 bad ones in a row. The finding is likely. Notify messages that the other side's headers pass over do not count: see "riptide-notify-passed-over".

MaxNotifyLoss, MaxAvgSendAttempts and their resiliences raise the limits. CanQualityDisconnect switches them off.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%sclose to a PoorConnection disconnect: %.0f bad results in a row, the limit is %d",
			repeated(n), worst[0], QualityRow)
	},
}

// QualityLimit is the rule "riptide-quality-limit".
var QualityLimit = &machine.Rule{
	ID: "riptide-quality-limit", Severity: machine.Warn,
	Summary: "the library's quality limit was reached: with its default settings the connection ends here",
	Explain: `With default settings, the side ends the connection at this frame for its quality, without a word. The other end finds out by its timeout. 64 results in a row were bad: see "riptide-quality-warning".

ackscope counts the results as the library does. The finding is likely. Where the connection goes on, the application has raised or switched off the limits.

MaxNotifyLoss, MaxAvgSendAttempts and their resiliences raise the limits. CanQualityDisconnect switches them off.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%sat the limit of a PoorConnection disconnect: %.0f bad results in a row", repeated(n), worst[0])
	},
}

// HeartbeatLate is the rule "riptide-heartbeat-late".
var HeartbeatLate = &machine.Rule{
	ID: "riptide-heartbeat-late", Severity: machine.Note, Absence: true,
	Summary: "a heartbeat was due and came late, or not",
	Explain: `A heartbeat of the client came late, or not at all. The client sends one each second. ackscope reports a gap of more than 1.5 s, and the gap is certain.

At the client's own end, the gap shows that the client's application stalled. Seen from the server's end, it may be loss too.

Only heartbeats keep the connection alive, data does not. After 5 s without one, the other side gives up. Look for what holds the application up, such as loading or a long frame.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the longest gap %.0f ms", count(n, "time"), worst[0])
	},
}

// HeartbeatUnanswered is the rule "riptide-heartbeat-unanswered".
var HeartbeatUnanswered = &machine.Rule{
	ID: "riptide-heartbeat-unanswered", Severity: machine.Note, Absence: true, Toward: machine.TowardPeer,
	Summary: "heartbeats of the client had no answer",
	Explain: `A heartbeat of the client had no answer. The server answers each heartbeat at once. The client measures its RTT by the answer and stays connected by it. Without an answer, the RTT and the resend timer stay as they were. After 5 s the client gives up.

ackscope reports a heartbeat when the next one is captured before an answer. That the capture has no answer is certain. The capture does not say whether it was lost or never sent.

Check whether the server's application stalled, and look for loss at that time.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, up to %.0f in a row", count(n, "heartbeat"), worst[0])
	},
}

// SilentEnd is the rule "riptide-silent-end".
var SilentEnd = &machine.Rule{
	ID: "riptide-silent-end", Severity: machine.Warn, Absence: true,
	Summary: "one side fell silent without saying that it ends the connection",
	Explain: `One side fell silent without a word, and the other went on for more than 1.2 s. The side was killed or lost its network. The library reached no limit that would explain the silence. For silence by a limit, see "riptide-poor-connection" and "riptide-timed-out".

The capture was taken at the silent side. The finding is likely.

"ackscope autopsy" shows what was exchanged last, and what was not acked.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the other side went on for %.0f ms", worst[0])
	},
}

// NoAnswer is the rule "riptide-connect-unanswered".
var NoAnswer = &machine.Rule{
	ID: "riptide-connect-unanswered", Severity: machine.Warn, Absence: true, Toward: machine.TowardPeer,
	Summary: "a client asked for a connection and had no answer",
	Explain: `A client asked for a connection and had no answer. A client sends Connect up to five times, a second apart, and then fails with NoConnection.

ackscope reports two or more Connects without an answer. That the capture has no answer is certain.

No server listens there, or the packets do not get through in one of the two directions. Check the address, the port and the firewalls.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f Connects", worst[0])
	},
}

// Rejected is the rule "riptide-rejected".
var Rejected = &machine.Rule{
	ID: "riptide-rejected", Severity: machine.Note,
	Summary: "the server refused a client",
	Explain: `The server refused a client. ackscope reads this from the Reject message, so the finding is certain.

The message contains the reason, but its numbers differ between versions. For example, 2 is "server full" since 2.1, and "pending" in 2.0.0 and Pytide. A custom rejection carries the application's own data.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("reason %.0f", worst[0])
	},
}

// WelcomeMismatch is the rule "riptide-welcome-mismatch".
var WelcomeMismatch = &machine.Rule{
	ID: "riptide-welcome-mismatch", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "the client answered Welcome with another id than the server gave it",
	Explain: `The client answered Welcome with another id than the server gave it: for example 7 instead of 5. The client's Welcome must repeat the id of the server's. Both messages are in the capture, so the finding is certain.

The library logs an error and goes on. Messages that are addressed by id then reach the wrong client, or none. Check where the client stores its id.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("given %.0f, answered %.0f", worst[0], worst[1])
	},
}

// TimedOut is the rule "riptide-timed-out".
var TimedOut = &machine.Rule{
	ID: "riptide-timed-out", Severity: machine.Warn, Absence: true,
	Summary: "one side gave up: it had heard nothing that keeps the connection alive for 5 s",
	Explain: `One side gave up the connection. A server does so when no heartbeat has reached it for 5 s, a client when no answer to its own has. The side checks once per heartbeat interval of 1 s, so it gives up 5 to 6 s after the last one. Messages and Acks do not count. Nothing is said on the wire: the side just stops. The other end must find out by its own timeout.

The capture was taken at this side, and the side fell silent when that time was over. The finding is likely.

Look for what kept the heartbeats away: loss, a dead peer, or a peer that had ended the connection without a word.`,
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
	Explain: `One side ended the connection for its quality, without a word. The other end waits for its timeout of 5 to 6 s and reports TimedOut. Since July 2023, the library ends a connection in three cases. A reliable message was sent 15 times without an Ack and is due again. For 64 notify messages in a row, more than 5 % of the last 64 were lost. For 64 reliable messages in a row, the last 64 took more than 5 sends on average.

The library of after August 2026 remembers 1024 received ids. It also ends the connection when these are too few for an id that never came. No setting switches that off.

Pytide 2.1.0-alpha ends the connection at its 16th reliable message, whatever became of the others.

The capture was taken at this side. The side reached such a limit and never sent again. The finding is likely.

MaxSendAttempts, MaxNotifyLoss, MaxAvgSendAttempts and their resiliences raise the limits. CanQualityDisconnect switches them off.`,
	Say: func(_ uint64, worst [3]float64) string {
		switch int(worst[0]) {
		case DroppedNotify:
			return "too many notify messages were lost: over 5 % of the last 64, 64 times in a row"
		case DroppedSends:
			return "messages took too many sends: over 5 on average of the last 64, 64 times in a row"
		case DroppedCount:
			return "Pytide has used up its 15 reliable messages"
		case DroppedWindow:
			return "its window of 1024 ids was too short for an id that never came"
		}
		return "a message was sent 15 times without an Ack"
	},
}
