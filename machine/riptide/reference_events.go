package riptide

import "github.com/ackscope/ackscope/machine"

// Events of the reference endpoints, after the notes' chapter 3, are of the same
// kinds as the tracker's (events.go): EventConnected is Connected of a client,
// ClientConnected of a server; EventFailed is ConnectionFailed, of a server with
// NoReason; EventEnded is Disconnected of a client, ClientDisconnected of a server.
// Peer names the connection, of a client always 0. What came with them (a
// Message, in the notes) is delivered on ChannelData. MessageReceived is a Delivery.
const (
	// EventAttempted: a server's application is asked about a connection.
	EventAttempted = machine.EventProtocol + 32
	EventEnded     = EventDisconnected
)

// ReferenceEventNames gives their words, as the logs of real endpoints have them.
var ReferenceEventNames = map[machine.EventKind]string{
	EventAttempted: "connect_attempt", EventConnected: "connected", EventFailed: "connection_failed", EventEnded: "disconnected",
	EventClientConnected: "client_connected", EventClientDisconnected: "client_disconnected",
}

// Reasons of Disconnect and EventEnded, in every dialect; those of connections
// that never were stand first.
const (
	neverConnected = 0
	transportError = 2
	timedOutReason = 3
	kicked         = 4
	serverStopped  = 5
	disconnected   = 6
	poorConnection = 7
)
