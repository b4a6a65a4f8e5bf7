package riptide

// Type is the kind of a message, whatever number its dialect writes for it. The numbers are those
// of release 2.1.0. AckExtra, which that release lacks, has the next number.
type Type uint8

const (
	Unreliable         Type = iota // a user message, sent once
	Ack                            // answers every reliable message that arrives
	Connect                        // a client's request; a server with a handler echoes it
	Reject                         // a server refuses
	Heartbeat                      // a client's ping, a server's answer
	Disconnect                     // the end
	Notify                         // a user message that carries acks and is never resent
	Reliable                       // a user message, resent until acked
	Welcome                        // a server accepts; the client answers with its own
	ClientConnected                // another client came
	ClientDisconnected             // another client left
	AckExtra                       // 2.0: an Ack for another id than the newest

	typeCount = int(AckExtra) + 1
)

var typeNames = [typeCount]string{
	"Unreliable", "Ack", "Connect", "Reject", "Heartbeat", "Disconnect",
	"Notify", "Reliable", "Welcome", "ClientConnected", "ClientDisconnected", "AckExtra",
}

// String returns the library's name of the type.
func (t Type) String() string {
	if int(t) < typeCount {
		return typeNames[t]
	}
	return "unknown"
}

// Reliable reports whether messages of the type carry a sequence id that the receiver acks.
func (t Type) Reliable() bool { return t >= Reliable && t <= ClientDisconnected }

// User reports whether the application wrote the message.
func (t Type) User() bool { return t == Unreliable || t == Reliable || t == Notify }

// Field names a field of a message header.
type Field uint8

const (
	FieldType      Field = iota
	FieldSequence        // the message's own sequence id: reliable types and Notify
	FieldMessageID       // the kind of user message
	FieldLast            // newest sequence id received from the other side
	FieldAckBits         // bit i: id last-1-i was received
	FieldFlag            // 2.1 Ack: 1 where FieldCause counts
	FieldCause           // Ack: the id that this Ack answers, where it is not last
	FieldReason          // Reject, Disconnect
	FieldPing            // Heartbeat: ping id
	FieldRTT             // Heartbeat of a client: its smoothed RTT in ms, -1 for none yet
	FieldClientID        // Welcome, ClientConnected, ClientDisconnected

	fieldCount = int(FieldClientID) + 1
)

var fieldNames = [fieldCount]string{
	"type", "sequence", "message_id", "last", "ack_bits", "ack_flag", "ack_cause",
	"reason", "ping", "rtt", "client_id",
}

// String returns the name that errors and field lists use.
func (f Field) String() string {
	if int(f) < fieldCount {
		return fieldNames[f]
	}
	return "unknown"
}
