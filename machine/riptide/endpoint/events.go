package endpoint

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// The reference endpoints emit the tracker's kinds of events. Their names follow chapter 3 of the
// document "Riptide Networking Notes":
//
//   - EventConnected is Connected of a client, and ClientConnected of a server.
//   - EventFailed is ConnectionFailed. A server emits it with NoReason.
//   - EventEnded is Disconnected of a client, and ClientDisconnected of a server.
//   - MessageReceived is a Delivery.
//
// Peer names the connection; for a client it is always 0. Data that came with an event (a Message,
// in the notes) is delivered on ChannelData.
const (
	// EventAttempted: a server's application must decide on a connection.
	EventAttempted = machine.EventProtocol + 32
	EventEnded     = riptide.EventDisconnected
)

// ReferenceEventNames holds the names of these events in the logs of real endpoints.
var ReferenceEventNames = map[machine.EventKind]string{
	EventAttempted: "connect_attempt", riptide.EventConnected: "connected", riptide.EventFailed: "connection_failed",
	EventEnded:                   "disconnected",
	riptide.EventClientConnected: "client_connected", riptide.EventClientDisconnected: "client_disconnected",
}
