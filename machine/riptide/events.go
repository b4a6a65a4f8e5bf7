package riptide

import "github.com/ackscope/ackscope/machine"

// The protocol's own events. Sequence holds what the event counts or names: the
// attempt, the client id, the reason (NoReason for a Disconnect that has none).
const (
	EventConnect      = machine.EventProtocol + iota // a client asked, for the Sequence-th time
	EventPending                                     // the server's application decides
	EventWelcomed                                    // Side sent its first Welcome
	EventRejected                                    // a server refused
	EventDisconnected                                // Side said that it ends the connection
	EventNotDelivered                                // Side acked the peer's message and never handed it over
)

// NoReason stands for the reason of a client's Disconnect.
const NoReason = 1 << 16

// EventNames gives their words.
var EventNames = map[machine.EventKind]string{
	EventConnect: "connect_attempt", EventPending: "connection_pending", EventWelcomed: "welcomed",
	EventRejected: "rejected", EventDisconnected: "disconnected",
	EventNotDelivered: "acked_not_delivered",
}
