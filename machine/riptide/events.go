package riptide

import "github.com/ackscope/ackscope/machine"

// The protocol's own events. Side is the side that the event is about. Sequence holds a number that
// depends on the kind: an attempt, a client id or a reason.
const (
	EventConnect  = machine.EventProtocol + iota // Side, a client, sent its Connect number Sequence
	EventPending                                 // Side, a server, asked its application to decide
	EventWelcomed                                // Side sent its first Welcome, with a client id
	EventRejected                                // Side, a server, refused the client, for a reason
	EventGoodbye                                 // Side sent a Disconnect, with a reason or NoReason
	// Side's library counts the connection as made, with a client id.
	EventConnected
	EventFailed // Side, a client, gave up or was refused: a reject reason
	// Side's library counts the connection as ended, for a disconnect reason.
	EventDisconnected
	EventClientConnected    // Side, a client, heard that another client joined
	EventClientDisconnected // Side, a client, heard that another client left
	EventNotDelivered       // Side acked the peer's message and never delivered it
)

// NoReason is the reason of an event about a Disconnect that carries none.
// Source: name, no reason
const NoReason = 1 << 16

// ReasonTimedOut is the reason of an EventDisconnected caused by the side's own timeout.
const ReasonTimedOut = TimedOutReason

// EventNames holds the names of the events in output.
var EventNames = map[machine.EventKind]string{
	EventConnect: "connect_attempt", EventPending: "connection_pending", EventWelcomed: "welcomed",
	EventRejected: "rejected", EventGoodbye: "goodbye",
	EventConnected: "connected", EventFailed: "connection_failed", EventDisconnected: "disconnected",
	EventClientConnected: "client_connected", EventClientDisconnected: "client_disconnected",
	EventNotDelivered: "acked_not_delivered",
}

// Reasons of Disconnect and EventDisconnected, in every dialect. NeverConnected is for a connection
// that was never made.
const (
	// NeverConnected is the reason where no connection was ever made.
	// Source: library, Riptide 2.0.0 to 2.2.1: DisconnectReason
	NeverConnected = 0
	// TransportError is the reason where the transport met an error.
	// Source: library, Riptide 2.0.0 to 2.2.1: DisconnectReason
	TransportError = 2
	// TimedOutReason is the reason where the connection timed out.
	// Source: library, Riptide 2.0.0 to 2.2.1: DisconnectReason
	TimedOutReason = 3
	// Kicked is the reason where the server disconnected the client.
	// Source: library, Riptide 2.0.0 to 2.2.1: DisconnectReason
	Kicked = 4
	// ServerStopped is the reason where the server shut down.
	// Source: library, Riptide 2.0.0 to 2.2.1: DisconnectReason
	ServerStopped = 5
	// Disconnected is the reason where the client disconnected by itself.
	// Source: library, Riptide 2.0.0 to 2.2.1: DisconnectReason
	Disconnected = 6
	// PoorConnection is the reason where the quality of the connection was too low.
	// Source: library, Riptide 2.1.0 to 2.2.1: DisconnectReason
	PoorConnection = 7
)
