package machine

// Identified is a tracker that can tell which connection its flow carries. If an endpoint
// changes its address, its packets form another flow. The identities of the two flows show
// that they are one connection.
type Identified interface {
	// Identity fills x, which the caller has set to its zero value.
	Identity(x *Identity)
}

// Identity is what a flow shows of the connection that it carries.
type Identity struct {
	// Began says for each side that it began the connection in this flow. A server that does not
	// know a client's new address may take it for another client, and begin anew with it.
	Began       [2]bool
	Client      Side // the side that opened the connection, if ClientKnown is set
	ClientKnown bool
	// Key is equal in flows of one connection, and in no others. It is nil if the flow has none.
	Key any
	// Opened says that a datagram of the flow was authenticated with Key, so only an endpoint of
	// the connection can have sent it.
	Opened bool
	// KeyName says what the key is: "session keys".
	KeyName string
	// Counters count the packets of the connection, whatever their addresses are.
	Counters [countersMost]Counter
}

// countersMost is how many counters a connection has at most. Riptide has three: of reliable
// messages, of notify messages, and of pings.
// Source: bound, the counters of an identity
const countersMost = 3

// Counter is a counter that both sides of a connection have, each its own.
type Counter struct {
	Name  string // what it counts: "packet"; empty if there is no such counter
	Bits  uint8  // of a number, 1 to 64
	Slack int    // how far behind the newest a number may pass: late packets, and resends
	// Endpoint says that a side counts its packets to all peers, so its numbers are in no flow alone.
	// Then only those of the side that moved show anything.
	Endpoint bool
	Sides    [2]Numbers
}

// Distance returns how far number x is ahead of y. It is negative if x is behind.
func (c *Counter) Distance(x, y uint64) int64 { return distance(x, y, c.Bits) }

// Numbers are a side's numbers as they passed the tap, and those of its peer that it acked.
// Numbers wrap; Span does not.
type Numbers struct {
	First, Last            uint64 // the first and the newest that passed
	Span                   uint64 // how far the newest is ahead of the first
	FirstNamed, NewestName uint64 // what its first ack named, and its newest one
	Met, Named             bool   // First and Last are set; FirstNamed and NewestName
}

// Sent records that a number of so many bits passed.
func (n *Numbers) Sent(number uint64, width uint8) {
	if !n.Met {
		n.Met, n.First, n.Last = true, number, number
	} else if ahead := distance(number, n.Last, width); ahead > 0 {
		n.Last = number
		n.Span += uint64(ahead)
	}
}

// Names records that the side acked a number of its peer.
func (n *Numbers) Names(number uint64, width uint8) {
	if !n.Named {
		n.Named, n.FirstNamed, n.NewestName = true, number, number
	} else if distance(number, n.NewestName, width) > 0 {
		n.NewestName = number
	}
}

func distance(x, y uint64, width uint8) int64 {
	unused := 64 - uint(width)
	return int64((x-y)<<unused) >> unused
}
