package riptide

// Channels of Submit, Delivery and Event.
const (
	// ChannelUnreliable, ChannelReliable and ChannelNotify are user messages. Type
	// is the message id, to which Submit adds how many bits of the payload's last
	// byte do not belong to it (see Submission). ID is the sequence, which
	// unreliable messages lack; Notify has no message id.
	ChannelUnreliable = 0
	ChannelReliable   = 1
	ChannelNotify     = 2
	// ChannelInternal is the protocol's own reliable messages: of events only.
	ChannelInternal = 3
	// ChannelData delivers what the application of the other end gave with a
	// connection attempt, a rejection or a kick. Type is the kind of the event
	// that it belongs to.
	ChannelData = 4
)
