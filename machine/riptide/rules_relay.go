package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Relayed is the rule "riptide-relay".
var Relayed = &machine.Rule{
	ID: "riptide-relay", Severity: machine.Note,
	Summary: "a server passed messages of one client on to another",
	Explain: `The same message, by id, way of sending and values, came from one client and went to another within a quarter of a second: the server relays it (MessageRelayFilter), or its application answers with what it was sent.

A relayed message never reaches the server's own handlers, and its receivers cannot tell which client it is from, unless its values say so. A reliable one is acked to its sender as soon as the server has it, whether or not the others ever get it: delivered to the server, not to the players. Release 2.1.0 ORs the sequence ids of what it relays to several ("riptide-merged-sequences"), and Pytide 2.1.0-alpha relays the message empty ("riptide-pytide-empty-message").`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the highest with message id %.0f", count(n, "message"), worst[0])
	},
}
