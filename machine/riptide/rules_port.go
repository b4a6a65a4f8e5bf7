package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Pytide is the Python port of Riptide. Its manual is the Riptide Networking Notes. Two versions of
// it exist: 2.0.0 and 2.1.0-alpha.

// PortPytide is the rule "riptide-pytide".
var PortPytide = &machine.Rule{
	ID: "riptide-pytide", Severity: machine.Note,
	Summary: "this side is Pytide 2.1.0-alpha, the Python port",
	Explain: `This side is Pytide 2.1.0-alpha, the Python port. ackscope recognises it by its first sequence id, which is 2, and by its heartbeats, which all have ping id 1. The finding is certain.

It differs from the library in these ways. It never sends a lost reliable message again. Its timeout never takes effect. It cannot read notify messages. It never sends the data of its rejections. It says nothing over UDP when it stops. With its default limits, it ends the connection at its 16th reliable message.

It also acks messages that it loses while it relays. So what its Acks mean is graded likely at most. The other findings of this name show which of these faults the flow met.`,
}

// PortOneID is the rule "riptide-pytide-one-id".
var PortOneID = &machine.Rule{
	ID: "riptide-pytide-one-id", Severity: machine.Warn,
	Summary: "this side is Pytide 2.0.0: every reliable message has id 1, and none is acked",
	Explain: `This side is Pytide 2.0.0. It gives every reliable message the sequence id 1 and sends each once. It acks Welcome only, and with the client id where the sequence belongs. It filters nothing: a message that comes again is handed over again. ackscope recognises it by these signs, and the finding is certain.

To a peer that follows the protocol, its messages are duplicates of the first, and the peer refuses them. Whatever such a peer sends reliably, it sends 15 times, since no Ack comes.

So in this flow, ackscope reads equal ids with different bodies as different messages, not as duplicates. Use a later version on both ends.`,
}

// PortLost is the rule "riptide-pytide-not-resent".
var PortLost = &machine.Rule{
	ID: "riptide-pytide-not-resent", Severity: machine.Warn, Absence: true, Origin: machine.OriginLibrary,
	Summary: "a reliable message was lost and never sent again (Pytide 2.1.0-alpha)",
	Explain: `A reliable message was lost and never sent again. The timer of Pytide 2.1.0-alpha compares two times that are never equal, so it resends nothing. "Reliable" is not reliable there. A lost message stays lost, and a message whose Ack is lost stays pending for ever.

ackscope found no Ack that names the message, and no second copy of it. The finding is likely.

Repeat such messages in the application, or do not use this version.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the newest with id %.0f", count(n, "message"), worst[0])
	},
}

// PortResent is the rule "riptide-pytide-wrong-resend".
var PortResent = &machine.Rule{
	ID: "riptide-pytide-wrong-resend", Severity: machine.Note,
	Summary: "messages were sent again that need not have been (Pytide 2.1.0-alpha)",
	Explain: `Messages were sent again that did not need it. Pytide 2.1.0-alpha sends again only what an Ack makes it believe to have left the window. It should count from the newest acked id, but counts from the newest id that it has itself received. So it sends other ids again than those that are missing.

ackscope sees further copies of a message of this side. The finding is likely.

The copies are duplicates, which the peer drops. They do not replace lost messages: see "riptide-pytide-not-resent".`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s resent; worst: id %.0f, sent %s", count(n, "message"), worst[1],
			count(uint64(worst[0]), "time"))
	},
}

// PortThrows is the rule "riptide-pytide-ack-error".
var PortThrows = &machine.Rule{
	ID: "riptide-pytide-ack-error", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "Acks make this side's library throw (Pytide 2.1.0-alpha)",
	Explain: `Acks make this side's library throw. On the side that sends more than it receives, Pytide 2.1.0-alpha trims its list of acked ids below nothing ("negative shift count"). A program that calls update again loses only the rest of that Ack. The library's own update thread ends at the first such Ack. The side is silent from then on, while its socket stays open.

ackscope runs that list over the Acks in a capture taken at this side. The finding is likely, and the number of Acks is an estimate.

Call update from the program itself, and go on after the exception.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("about %s", machine.Count(uint64(worst[0]), "Ack", "Acks"))
	},
}

// PortNotify is the rule "riptide-pytide-notify".
var PortNotify = &machine.Rule{
	ID: "riptide-pytide-notify", Severity: machine.Warn,
	Summary: "notify messages were sent to Pytide 2.1.0-alpha, which throws at each",
	Explain: `Notify messages were sent to Pytide 2.1.0-alpha, which throws at each of them. It knows the type but misnames its fields. Every notify message that arrives raises an exception within update, and is not handed over. Sending one throws too.

The capture was taken at this side, so ackscope sees what reaches it. The finding is certain if they are known to have reached it, and likely otherwise.

Send no notify messages to this version.`,
	Say: func(n uint64, _ [3]float64) string { return count(n, "message") },
}

// PortRejects is the rule "riptide-pytide-reject-code".
var PortRejects = &machine.Rule{
	ID: "riptide-pytide-reject-code", Severity: machine.Note,
	Summary: "a reject reason of Pytide 2.1.0-alpha means something else to the library",
	Explain: `A reject reason of Pytide 2.1.0-alpha means something else to the library. Pytide numbers its reasons as 2.0.0 did: 2 pending, 3 server full, 4 rejected, 5 custom. The library since 2.1 does not: 2 server full, 3 rejected, 4 custom. So each shows the other's reasons wrongly. "Full" from Pytide reads as "rejected", and "full" from the library as "pending".

ackscope sees a Reject of a side that is Pytide, so the finding is certain.

Do not rely on the reason between the two. Pytide never sends the data of a rejection either.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("reason %.0f: Pytide means %s", worst[0],
			map[int]string{2: "pending", 3: "server full", 4: "rejected", 5: "custom"}[int(worst[0])])
	},
}

// PortNoTimeout is the rule "riptide-pytide-no-timeout".
var PortNoTimeout = &machine.Rule{
	ID: "riptide-pytide-no-timeout", Severity: machine.Warn,
	Summary: "this side goes on long after its timeout (Pytide 2.1.0-alpha)",
	Explain: `This side goes on long after its timeout. Pytide 2.1.0-alpha compares milliseconds since its start with seconds since 1970, so its timeout never takes effect. It keeps connections to peers that are long gone, and a server fills up with them.

ackscope reports a side that still sent more than 7 s after the last heartbeat that reached it. The finding is certain if the capture is complete at that side, and likely otherwise.

Close such connections from the application.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("it spoke %.0f ms after the last heartbeat that reached it", worst[0])
	},
}

// PortBools is the rule "riptide-pytide-bool-arrays".
var PortBools = &machine.Rule{
	ID: "riptide-pytide-bool-arrays", Severity: machine.Warn,
	Summary: "arrays of bool went out without their elements (Pytide 2.1.0-alpha)",
	Explain: `An array of bool went out without its elements. Pytide 2.1.0-alpha writes a bool[] and does not count its bits. If the array is the only value of a message, a bit or two of its length are left. Otherwise nothing is left, and what follows stands in its place. The values are not in the capture either.

ackscope sees it with a schema of the messages, and then the finding is certain.

Send such values in another type.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f", count(n, "message"), worst[0])
	},
}

// PortRelay is the rule "riptide-pytide-empty-message".
var PortRelay = &machine.Rule{
	ID: "riptide-pytide-empty-message", Severity: machine.Warn,
	Summary: "messages went out empty that have values: relayed by Pytide 2.1.0-alpha",
	Explain: `A message went out empty that should have values. A server of Pytide 2.1.0-alpha that relays a message sends it on without its values. It also gives the message object back twice. From then on it mixes messages up, and acks messages that it has lost.

By the schema of the messages, these should have values. The finding is likely.

Do not let a server of this version relay messages.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f", count(n, "message"), worst[0])
	},
}
