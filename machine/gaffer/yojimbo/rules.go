package yojimbo

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
)

// Rules lists what a Yojimbo may report, in addition to gaffer.FindingRules and
// netcode.Rules.
var Rules = []*machine.Rule{
	configurationInferred, tokenClosed, netcodeForged, messages.MalformedConnection, messages.MessageStuck,
	messages.MessageResentAcked, messages.MessageNeedless, messages.BlockSplit, messages.BlockStalled,
}

var configurationInferred = &machine.Rule{
	ID: "configuration-inferred", Severity: machine.Note,
	Summary: "how the game packs its messages was found from the packets, not given",
	Explain: `No profile describes how the game packs its messages: its channels, their limits, its message types and their bodies. So ackscope searched for the configuration under which most connection packets read to their last bit. What it found is likely.

"ackscope state" shows the configuration, the evidence for it, and what stays undecided. Where it shows a range, the packets cannot tell more. If the number of message types is undecided, messages have no type. The ids of a reliable channel stand before its first type. So what ackscope says of such a channel is certain where the packets prove how its entries begin. What it says of all other messages is at most likely.

Give the game's own configuration with --profiles (docs/keys.md has an example). Then ackscope shows messages by name, with their values.`,
	Say: func(_ uint64, worst [3]float64) string {
		types := "message types undecided"
		if worst[1] > 0 {
			types = fmt.Sprintf("at most %.0f message types", worst[1])
		}
		return fmt.Sprintf("%.0f channels, %s; %.1f%% of packets read to the last bit", worst[0], types, worst[2])
	},
}

var tokenClosed = &machine.Rule{
	ID: "netcode-token-closed", Severity: machine.Warn,
	Summary: "the connect token does not open with the keys given",
	Explain: `The flow begins with a connection request whose token does not open. No private key of the key file opens it, or the key file does not list its protocol id. The finding is certain. The datagrams stay encrypted, and ackscope shows them as netcode.

If the server answers all the same, the key file lacks the right key. If the server stays silent, it does not have the key of the token either. Then look at the service that makes the tokens.`,
}

var netcodeForged = &machine.Rule{
	ID: "netcode-forged", Severity: machine.Error,
	Summary: "a datagram does not open with its session's key",
	Explain: `Other datagrams of the flow open with the session's keys, and this one does not: its authentication tag is wrong. The finding is certain. The datagram was altered on the way, or its sender does not have the key. Or it belongs to another session on the same addresses.

A receiver drops it, so a single one does no harm. If many come, find out who sends them.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s the session's key does not open, the highest counter %.0f",
			machine.Count(n, "datagram that", "datagrams that"),
			worst[0],
		)
	},
}
