package endpoint

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// Events of the reference endpoints, after the notes' chapter 3, are of the same
// kinds as the tracker's (events.go): EventConnected is Connected of a client,
// ClientConnected of a server; EventFailed is ConnectionFailed, of a server with
// NoReason; EventEnded is Disconnected of a client, ClientDisconnected of a server.
// Peer names the connection, of a client always 0. What came with them (a
// Message, in the notes) is delivered on ChannelData. MessageReceived is a Delivery.
const (
	// EventAttempted: a server's application is asked about a connection.
	EventAttempted = machine.EventProtocol + 32
	EventEnded     = riptide.EventDisconnected
)

// ReferenceEventNames gives their words, as the logs of real endpoints have them.
var ReferenceEventNames = map[machine.EventKind]string{
	EventAttempted: "connect_attempt", riptide.EventConnected: "connected", riptide.EventFailed: "connection_failed",
	EventEnded:                   "disconnected",
	riptide.EventClientConnected: "client_connected", riptide.EventClientDisconnected: "client_disconnected",
}
