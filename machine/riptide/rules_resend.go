package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// sayResent formats a finding about messages that were sent again.
func sayResent(n uint64, worst [3]float64) string {
	return fmt.Sprintf("%s resent; worst: id %.0f, sent %s (resend timer %.0f ms)", count(n, "message"), worst[1],
		count(uint64(worst[0]), "time"), worst[2])
}

// ResentMessageLost is the rule "riptide-resent-message-lost".
var ResentMessageLost = &machine.Rule{
	ID: "riptide-resent-message-lost", Severity: machine.Note, Resend: "message-lost", Absence: true, CopyLost: true,
	Toward:  machine.TowardPeer,
	Summary: "messages were sent again because a copy of them was lost",
	Explain: `A copy of a reliable message was lost, so its sender sent the message again. That is what reliable messages are for.

Every copy that arrives is answered by an Ack of its own. Fewer Acks came than copies were sent. Acks of later messages passed the message over, so it had not arrived. The finding is likely.

Look at the number of copies: the connection ends at 15.`,
	Say: sayResent,
}

// ResentAckLost is the rule "riptide-resent-ack-lost".
var ResentAckLost = &machine.Rule{
	ID: "riptide-resent-ack-lost", Severity: machine.Note, Resend: "ack-lost", Absence: true,
	Summary: "messages were sent again though they had arrived: their Acks were lost",
	Explain: `A message had arrived, but its Ack was lost, so the sender sent the message again. An Ack is sent only once.

ackscope sees that the Ack did not get back in two ways. An Ack of a later message names the id by a bit. Or, in a capture taken at the receiver, another copy came long after the Ack had left. The finding is likely.

Builds of 2023 before 2.1.0 send again until they read an Ack of the message itself. Later releases believe the bits of a newer Ack, but not those of an Ack that comes late.

It costs bandwidth and attempts: the connection ends at 15.`,
	Say: sayResent,
}

// ResentLoss is the rule "riptide-resent-loss".
var ResentLoss = &machine.Rule{
	ID: "riptide-resent-loss", Severity: machine.Note, Resend: "lost", Absence: true,
	Toward:  machine.TowardPeer,
	Summary: "messages were sent again because a copy of them or its Ack was lost",
	Explain: `A copy of the message was lost, or its Ack, so the sender sent the message again. Fewer Acks came than copies were sent. The capture does not show which of the two was lost, since no Ack of another message was under way meanwhile.

The finding is likely. Acks of the notes' form do not say which message they answer, so there it is only possible that one was lost.

See "riptide-resent-message-lost" and "riptide-resent-ack-lost" for what each of the two means.`,
	Say: sayResent,
}

// ResentLate is the rule "riptide-resent-late-ack".
var ResentLate = &machine.Rule{
	ID: "riptide-resent-late-ack", Severity: machine.Note, Resend: "late-ack",
	Summary: "messages were sent again though every copy had arrived: the Acks came too late",
	Explain: `Nothing was lost, but the Ack came after the resend timer had run out. The timer is 1.2 x the smoothed RTT, at least 10 ms, and 50 ms while no RTT is known. For example, at a smoothed RTT of 40 ms, an Ack after 60 ms is too late.

As many Acks came as copies were sent, so every copy arrived. The finding is likely at the sender's end. In a capture taken at the receiver it is possible.

The delay varies more than the timer allows for, or the application of the receiver ticks slowly: it reads once per tick. It costs bandwidth only.`,
	Say: sayResent,
}

// ResentTimer is the rule "riptide-resent-timer-below-rtt".
var ResentTimer = &machine.Rule{
	ID: "riptide-resent-timer-below-rtt", Severity: machine.Note, Resend: "timer-below-rtt",
	Summary: "messages were sent again because the resend timer is shorter than the way there and back",
	Explain: `Messages were sent again because the resend timer is shorter than the round trip. While no RTT is known, the timer is 50 ms, whatever the path. So it is for the messages of the first second, until the client's second heartbeat tells the RTT. Afterwards it is 1.2 x an RTT that the library smooths (0.7 old, 0.3 new). A rising delay outruns that RTT. An Ack also waits for the receiver's tick as heartbeats do, but not always as long.

As many Acks came as copies were sent, so nothing was lost. The usual time from a message to its Ack is longer than the timer, so no Ack could come in time. The finding is likely.

It costs bandwidth. At long RTTs it also uses up attempts. At 800 ms, every message of the first second is sent 15 times, and the connection ends before it began. Send reliable messages only once the RTT is known, or raise MaxSendAttempts.`,
	Say: sayResent,
}

// ResentStalled is the rule "riptide-resent-peer-stalled".
var ResentStalled = &machine.Rule{
	ID: "riptide-resent-peer-stalled", Severity: machine.Note, Resend: "peer-stalled",
	Summary: "messages were sent again because the peer stood still",
	Explain: `Messages were sent again because the peer did nothing for a while. Its application did not call the library's update: it was loading, at a breakpoint, or collecting garbage. Or the path held everything back. The library sends Acks from within update, so nothing is acked meanwhile.

As many Acks came as copies were sent, so nothing was lost. The peer said nothing at all for longer than an answer usually takes, and then answered. The finding is likely.

Look for what held up the peer's application at that time.`,
	Say: sayResent,
}
