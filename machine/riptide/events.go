package riptide

import "github.com/ackscope/ackscope/machine"

// The protocol's own events. Sequence holds what the event counts or names: the
// attempt, the client id, the reason.
const (
	EventConnect  = machine.EventProtocol + iota // Side, a client, asked for the Sequence-th time
	EventPending                                 // Side, a server, has its application decide
	EventWelcomed                                // Side sent its first Welcome, with a client id
	EventRejected                                // Side, a server, refused, for a reason
	EventGoodbye                                 // Side sent a Disconnect, with a reason or NoReason
	// Side's library counts the connection as made, under a client id
	EventConnected
	EventFailed // Side, a client, gave up or was refused: reject reason
	// Side's library counts the connection as ended: disconnect reason
	EventDisconnected
	EventClientConnected    // Side, a client, was told of another one
	EventClientDisconnected // and that it left
	EventNotDelivered       // Side acked the peer's message and never handed it over
)

// NoReason stands for the reason of a client's Disconnect.
const NoReason = 1 << 16

// ReasonTimedOut is the reason of an EventDisconnected by the side's own timeout.
const ReasonTimedOut = TimedOutReason

// EventNames gives their words.
var EventNames = map[machine.EventKind]string{
	EventConnect: "connect_attempt", EventPending: "connection_pending", EventWelcomed: "welcomed",
	EventRejected: "rejected", EventGoodbye: "goodbye",
	EventConnected: "connected", EventFailed: "connection_failed", EventDisconnected: "disconnected",
	EventClientConnected: "client_connected", EventClientDisconnected: "client_disconnected",
	EventNotDelivered: "acked_not_delivered",
}

// Reasons of Disconnect and EventEnded, in every dialect; those of connections
// that never were stand first.
const (
	NeverConnected = 0
	TransportError = 2
	TimedOutReason = 3
	Kicked         = 4
	ServerStopped  = 5
	Disconnected   = 6
	PoorConnection = 7
)
