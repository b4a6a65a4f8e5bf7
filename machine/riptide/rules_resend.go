package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// sayResent formats a finding about messages that were sent again.
func sayResent(n uint64, worst [3]float64) string {
	return fmt.Sprintf("%s, %.0f copies of id %.0f at most (resend timer %.0f ms)", count(n, "message"), worst[0],
		worst[1], worst[2])
}

// ResentMessageLost is the rule "riptide-resent-message-lost".
var ResentMessageLost = &machine.Rule{
	ID: "riptide-resent-message-lost", Severity: machine.Note, Resend: "message-lost", Absence: true,
	Summary: "messages were sent again because a copy of them was lost",
	Explain: `Every copy of a reliable message that arrives is answered by an Ack of its own. Fewer Acks came than copies were sent, and Acks of later messages passed the message over: it had not arrived.
That is what reliable messages are for. Look at the number of copies: the connection ends at 15.`,
	Say: sayResent,
}

// ResentAckLost is the rule "riptide-resent-ack-lost".
var ResentAckLost = &machine.Rule{
	ID: "riptide-resent-ack-lost", Severity: machine.Note, Resend: "ack-lost", Absence: true,
	Summary: "messages were sent again though they had arrived: their Acks were lost",
	Explain: `Acks are sent once. This one did not get back: an Ack of a later message names the id by a bit, or, where the tap is at the receiver, another copy came long after the Ack had left. Builds of 2023 before 2.1.0 send again all the same until they read an Ack of the message itself; later releases believe the bits of a newer Ack, not those of one that comes late.

It costs bandwidth, and attempts: the connection ends at 15.`,
	Say: sayResent,
}

// ResentLoss is the rule "riptide-resent-loss".
var ResentLoss = &machine.Rule{
	ID: "riptide-resent-loss", Severity: machine.Note, Resend: "lost", Absence: true,
	Summary: "messages were sent again because a copy of them or its Ack was lost",
	Explain: `Fewer Acks came than copies were sent, so a copy was lost on its way, or its Ack. Which of the two the capture does not tell: no Ack of another message was under way meanwhile. Acks of the notes' form do not say which message they answer: there it is only possible that one was lost. See "riptide-resent-message-lost" and "riptide-resent-ack-lost".`,
	Say:     sayResent,
}

// ResentLate is the rule "riptide-resent-late-ack".
var ResentLate = &machine.Rule{
	ID: "riptide-resent-late-ack", Severity: machine.Note, Resend: "late-ack",
	Summary: "messages were sent again though every copy had arrived: the Acks came too late",
	Explain: `As many Acks came as copies were sent, so nothing was lost: the resend timer (1.2 x the smoothed RTT, at least 10 ms, 50 ms while none is known) ran out before the Ack was there. The delay varies more than the timer allows for, or the application of the receiver ticks slowly: it reads once a tick.

It costs bandwidth only.`,
	Say: sayResent,
}

// ResentTimer is the rule "riptide-resent-timer-below-rtt".
var ResentTimer = &machine.Rule{
	ID: "riptide-resent-timer-below-rtt", Severity: machine.Note, Resend: "timer-below-rtt",
	Summary: "messages were sent again because the resend timer is shorter than the way there and back",
	Explain: `Nothing was lost, and no Ack could have been there in time: the usual time from a message to its Ack is longer than the timer. While no RTT is known the timer is 50 ms, whatever the path; so it is for the messages of the first second, until the client's second heartbeat tells the RTT. Afterwards it is 1.2 x an RTT that the library smooths (0.7 old, 0.3 new), which a rising delay outruns; and an Ack waits for the receiver's tick as heartbeats do, but not always as long.

It costs bandwidth. At long RTTs it also eats attempts: at 800 ms every message of the first second is sent 15 times, and the connection ends before it began. Send reliable messages only once the RTT is known, or raise MaxSendAttempts.`,
	Say: sayResent,
}

// ResentStalled is the rule "riptide-resent-peer-stalled".
var ResentStalled = &machine.Rule{
	ID: "riptide-resent-peer-stalled", Severity: machine.Note, Resend: "peer-stalled",
	Summary: "messages were sent again because the peer stood still",
	Explain: `Nothing was lost. The peer said nothing at all for longer than an answer usually takes, and then answered: its application did not call the library's update (loading, a breakpoint, a collected heap), or the path held everything back. Acks are sent from within update, so nothing is acked meanwhile.`,
	Say:     sayResent,
}
