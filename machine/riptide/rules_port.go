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
	Explain: `Its first sequence id is 2, and all its heartbeats have ping id 1. It differs from the library: a lost reliable message is never sent again, its timeout never strikes, it cannot read notify messages, the data of its rejections is never sent, it says nothing over UDP when it stops, and with its default limits it ends the connection at its 16th reliable message. It acks messages that it loses while it relays, so what its Acks mean is graded likely at most.`,
}

// PortOneID is the rule "riptide-pytide-one-id".
var PortOneID = &machine.Rule{
	ID: "riptide-pytide-one-id", Severity: machine.Warn,
	Summary: "this side is Pytide 2.0.0: every reliable message has id 1, and none is acked",
	Explain: `Pytide 2.0.0 gives every reliable message the sequence id 1, sends each once, and acks Welcome only (with the client id where the sequence belongs). It filters nothing: what comes again is handed over again. To a peer that follows the protocol its messages are duplicates of the first, which it refuses; and whatever such a peer sends reliably it sends 15 times, since no Ack comes.

Equal ids with different bodies are therefore different messages here, and no duplicates. Use a later version on both ends.`,
}

// PortLost is the rule "riptide-pytide-not-resent".
var PortLost = &machine.Rule{
	ID: "riptide-pytide-not-resent", Severity: machine.Warn, Absence: true,
	Summary: "a reliable message was lost and never sent again (Pytide 2.1.0-alpha)",
	Explain: `No Ack names it, and its sender did not send it again: the timer of Pytide 2.1.0-alpha compares two times that are never equal, so nothing is ever resent by it. "Reliable" is not, there: a lost message stays lost, and a message whose Ack is lost stays pending for ever.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the newest with id %.0f", count(n, "message"), worst[0])
	},
}

// PortResent is the rule "riptide-pytide-wrong-resend".
var PortResent = &machine.Rule{
	ID: "riptide-pytide-wrong-resend", Severity: machine.Note,
	Summary: "messages were sent again that need not have been (Pytide 2.1.0-alpha)",
	Explain: `Pytide 2.1.0-alpha sends again only what an Ack makes it believe to have left the window, and it counts from the newest id that it has itself received where the newest acked one was meant. So it sends other ids again than those that are missing.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, %.0f copies of id %.0f at most", count(n, "message"), worst[0], worst[1])
	},
}

// PortThrows is the rule "riptide-pytide-ack-error".
var PortThrows = &machine.Rule{
	ID: "riptide-pytide-ack-error", Severity: machine.Warn,
	Summary: "Acks make this side's library throw (Pytide 2.1.0-alpha)",
	Explain: `On the side that sends more than it receives, the list of acked ids of Pytide 2.1.0-alpha is trimmed below nothing ("negative shift count"). A program that calls update again loses the rest of that Ack only; the library's own update thread ends at the first one, and the side is silent from then on while its socket stays open.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("about %.0f Acks", worst[0])
	},
}

// PortNotify is the rule "riptide-pytide-notify".
var PortNotify = &machine.Rule{
	ID: "riptide-pytide-notify", Severity: machine.Warn,
	Summary: "notify messages were sent to Pytide 2.1.0-alpha, which throws at each",
	Explain: `Pytide 2.1.0-alpha knows the type and misnames its fields: every notify message that arrives raises an exception within update, and is handed to nobody; sending one throws too.`,
	Say:     func(n uint64, _ [3]float64) string { return count(n, "message") },
}

// PortRejects is the rule "riptide-pytide-reject-code".
var PortRejects = &machine.Rule{
	ID: "riptide-pytide-reject-code", Severity: machine.Note,
	Summary: "a reject reason of Pytide 2.1.0-alpha means something else to the library",
	Explain: `Pytide numbers its reject reasons as 2.0.0 did (2 pending, 3 server full, 4 rejected, 5 custom), the library since 2.1 does not (2 server full, 3 rejected, 4 custom). Each shows the other's reasons wrongly: "full" from Pytide reads as "rejected", "full" from the library as "pending". The data of a rejection by Pytide is never sent.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("reason %.0f: Pytide means %s", worst[0],
			map[int]string{2: "pending", 3: "server full", 4: "rejected", 5: "custom"}[int(worst[0])])
	},
}

// PortNoTimeout is the rule "riptide-pytide-no-timeout".
var PortNoTimeout = &machine.Rule{
	ID: "riptide-pytide-no-timeout", Severity: machine.Warn,
	Summary: "this side goes on long after its timeout (Pytide 2.1.0-alpha)",
	Explain: `Pytide 2.1.0-alpha compares milliseconds since its start with seconds since 1970, so its timeout never strikes: it keeps connections to peers that are long gone, and a server fills up with them.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("it spoke %.0f ms after the last heartbeat that reached it", worst[0])
	},
}

// PortBools is the rule "riptide-pytide-bool-arrays".
var PortBools = &machine.Rule{
	ID: "riptide-pytide-bool-arrays", Severity: machine.Warn,
	Summary: "arrays of bool went out without their elements (Pytide 2.1.0-alpha)",
	Explain: `Pytide 2.1.0-alpha writes a bool[] and does not count its bits: as the only value of a message a bit or two of the length are left, else nothing, and what follows stands in its place. The values are not in the capture either.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f", count(n, "message"), worst[0])
	},
}

// PortRelay is the rule "riptide-pytide-empty-message".
var PortRelay = &machine.Rule{
	ID: "riptide-pytide-empty-message", Severity: machine.Warn,
	Summary: "messages went out empty that have values: relayed by Pytide 2.1.0-alpha",
	Explain: `A server of Pytide 2.1.0-alpha that relays a message sends it on without its values, and gives the message object back twice: from then on it mixes messages up and acks what it has lost. By the schema of the messages these should have values.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f", count(n, "message"), worst[0])
	},
}
