package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Relayed is the rule "riptide-relay".
var Relayed = &machine.Rule{
	ID: "riptide-relay", Severity: machine.Note,
	Summary: "a server passed messages of one client on to another",
	Explain: `A server passed messages of one client on to another. Either the server relays them (MessageRelayFilter), or its application answers with what it was sent.

ackscope saw the same message come from one client and go to another within a quarter of a second. It compares the id, the way of sending and the values. The finding is likely.

A relayed message never reaches the server's own handlers. Its receivers cannot tell which client it is from, unless its values say so. A reliable one is acked to its sender as soon as the server has it, whether or not the others ever get it. So it is delivered to the server, not to the players.

Two versions relay wrongly. Release 2.1.0 ORs the sequence ids of what it relays to several clients ("riptide-merged-sequences"). Pytide 2.1.0-alpha relays the message empty ("riptide-pytide-empty-message").`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the highest with message id %.0f", count(n, "message"), worst[0])
	},
}
