package machine

// Endpoint is one end of a protocol, as a reference implementation without I/O.
// It owns no socket, no clock and no thread. A driver (simulation, replay, real
// sockets) passes it inputs with their times, and carries out the effects.
//
// An Endpoint is deterministic: the same inputs at the same instants cause the
// same effects. A list of (Instant, Input) is therefore a complete journal.
type Endpoint interface {
	// Step takes one input. It appends effects to out, which the caller has
	// reset. It returns an error when the driver asks for something impossible:
	// a payload that is too large, or a message of an unknown type. Bytes from
	// the network never cause an error: Step reports an anomaly or ignores them.
	Step(now Instant, in Input, out *Effects) error
	// Deadline returns the latest instant at which the endpoint needs a Wake.
	// It returns false when the endpoint waits for nothing.
	Deadline() (Instant, bool)
	// Inspect appends what the endpoint knows to v.
	Inspect(v *View)
	// Clone returns an independent copy: stepping one does not change the
	// other.
	Clone() Endpoint
}

// Peer names a remote end by the driver's number. An endpoint with a single
// peer only ever sees peer 0.
type Peer uint32

// Input is one thing that happens to an endpoint: one of the types below, and
// no other. The driver owns their byte slices: an endpoint copies what it
// keeps.
type Input interface{ input() }

// Arrive is a datagram that was read from the socket.
type Arrive struct {
	From  Peer
	Bytes []byte
	// Refuse is the application's answer when this datagram completes a packet.
	// Libraries let the application refuse a packet. The library then neither
	// records nor acks it.
	Refuse bool
}

// Submit is the application's request to send something. Each endpoint
// documents what its channels mean.
type Submit struct {
	To      Peer
	Channel uint8
	Type    uint32 // of the message, on a channel that carries typed messages
	Payload []byte
}

// Command is a request of the application other than to send.
type Command struct {
	Peer    Peer
	Kind    CommandKind
	Payload []byte
}

// Open reports that the stream to or from Peer is open.
type Open struct{ Peer Peer }

// Bytes are read from Peer's stream, in order. They can start and end anywhere.
type Bytes struct {
	From  Peer
	Bytes []byte
}

// Close reports that Peer's stream has ended.
type Close struct{ Peer Peer }

// Wake reports that time has passed: a frame of the game began, or a deadline
// came.
type Wake struct{}

func (Arrive) input()  {}
func (Submit) input()  {}
func (Command) input() {}
func (Open) input()    {}
func (Bytes) input()   {}
func (Close) input()   {}
func (Wake) input()    {}

// CommandKind is what the application asks for.
type CommandKind uint8

const (
	Connect    CommandKind = iota // begin a connection to Peer
	Accept                        // let Peer in
	Reject                        // refuse Peer
	Kick                          // end Peer's connection, as a server
	Disconnect                    // end the connection
	Stop                          // end all connections and forget them
	Cancel                        // give up a submission; Payload names it, as the endpoint documents
)

var commandWords = [...]string{"connect", "accept", "reject", "kick", "disconnect", "stop", "cancel"}

// String returns the word that journals use.
func (k CommandKind) String() string {
	if int(k) < len(commandWords) {
		return commandWords[k]
	}
	return "unknown"
}

// ParseCommandKind returns the kind that a journal's word names. It returns
// false when there is none.
func ParseCommandKind(word string) (CommandKind, bool) {
	for i, w := range commandWords {
		if w == word {
			return CommandKind(i), true
		}
	}
	return 0, false
}

// Transmission is something that the driver must put on the network.
type Transmission struct {
	To    Peer
	Kind  TransmitKind
	Bytes []byte // valid until the Effects are reset
}

// TransmitKind is how a Transmission travels.
type TransmitKind uint8

const (
	SendDatagram TransmitKind = iota
	SendBytes                 // on Peer's stream
	OpenStream                // to Peer
	CloseStream               // of Peer
)

// Delivery is something handed to the application.
type Delivery struct {
	From    Peer
	Channel uint8  // as in Submit
	Type    uint32 // of the message, on a channel that carries typed messages
	ID      uint64 // the protocol's own number: a message id, a packet's sequence
	Payload []byte // valid until the Effects are reset
}

// Send appends a transmission with a copy of b.
func (e *Effects) Send(to Peer, kind TransmitKind, b []byte) {
	e.Transmit = append(e.Transmit, Transmission{To: to, Kind: kind, Bytes: e.hold(b)})
}

// Hand appends a delivery with a copy of its payload.
func (e *Effects) Hand(d Delivery) {
	d.Payload = e.hold(d.Payload)
	e.Deliver = append(e.Deliver, d)
}

// hold copies b to memory that lives until Reset. When the arena grows, earlier
// copies stay valid: their slices keep the old arena alive.
func (e *Effects) hold(b []byte) []byte {
	if cap(e.arena)-len(e.arena) < len(b) {
		e.arena = make([]byte, 0, max(2*cap(e.arena), len(b), 2048))
	}
	n := len(e.arena)
	e.arena = append(e.arena, b...)
	return e.arena[n:len(e.arena):len(e.arena)]
}
