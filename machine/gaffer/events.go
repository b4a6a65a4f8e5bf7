package gaffer

import "github.com/ackscope/ackscope/machine"

// The events of the two handshakes of the family: netcode's, and the article series'
// "Client Server Connection". The first six are packets that Side sent. The others are
// what Side's program then knows. For example, a client is connected once it has read a
// keep-alive of the server.
//
// With netcode, Sequence is its counter, and a connection request has none. In the
// article's handshake, Sequence numbers the connections of the flow from 1.
const (
	EventRequest machine.EventKind = machine.EventProtocol + iota
	EventDenied
	EventChallenge
	EventResponse
	EventKeepAlive
	EventDisconnect

	EventConnected    // Side counts the connection as made
	EventDisconnected // Side counts the connection as ended
	EventRefused      // Side, a client, read that the server denies the connection
	EventTimedOut     // Side gave up on a silent peer
)

// EventNames maps these kinds to their names in output.
var EventNames = map[machine.EventKind]string{
	EventRequest: "connection-request", EventDenied: "denied", EventChallenge: "challenge",
	EventResponse: "response", EventKeepAlive: "keep-alive", EventDisconnect: "disconnect",
	EventConnected: "established", EventDisconnected: "ended", EventRefused: "refused", EventTimedOut: "timed_out",
}
