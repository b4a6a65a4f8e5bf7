package riptide

// Channels of Submit, Delivery and Event.
const (
	// ChannelUnreliable carries unreliable user messages. For all user messages:
	//
	//   - Type is the message id; Notify messages have none. Submit adds the number of unused bits in
	//     the payload's last byte (see endpoint.Submission).
	//   - ID is the sequence; unreliable messages have none.
	// Source: name, a channel of the reference
	ChannelUnreliable = 0
	// ChannelReliable carries reliable user messages.
	// Source: name, a channel of the reference
	ChannelReliable = 1
	// ChannelNotify carries Notify messages.
	// Source: name, a channel of the reference
	ChannelNotify = 2
	// ChannelInternal is for events about the protocol's own reliable messages.
	// Source: name, a channel of the reference
	ChannelInternal = 3
	// ChannelData delivers the data that the other application attached to a connection attempt, a
	// rejection or a kick. Type is the kind of the event that it belongs to.
	// Source: name, a channel of the reference
	ChannelData = 4
)
