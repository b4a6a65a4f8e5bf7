package machine

// Endpoint is one end of a protocol as a reference implementation, sans IO: it
// owns no socket, no clock and no thread. A driver (simulation, replay, real
// sockets) hands it inputs with the time at which they happen, and carries out
// the effects. It is deterministic: the same inputs at the same instants give
// the same effects, so a list of (Instant, Input) is a complete journal.
type Endpoint interface {
	// Step takes one input. Effects are appended to out, which the caller has
	// reset. The error says that the driver asked for something impossible (a
	// payload that is too large, a message of an unknown type); bytes from the
	// network never are one: what is wrong with them is an anomaly or nothing.
	Step(now Instant, in Input, out *Effects) error
	// Deadline returns the instant at which the endpoint wants a Wake at the
	// latest; false where it waits for nothing.
	Deadline() (Instant, bool)
	// Inspect draws what the endpoint knows.
	Inspect(v *View)
	// Clone returns an independent copy: stepping one leaves the other as it was.
	Clone() Endpoint
}

// Peer names a remote end, as the driver numbers them. An endpoint that has
// one peer only ever sees peer 0.
type Peer uint32

// Input is one thing that happens to an endpoint: one of the types below, and
// no other. Their byte slices are the driver's: an endpoint copies what it keeps.
type Input interface{ input() }

// Arrive is a datagram read from the socket.
type Arrive struct {
	From  Peer
	Bytes []byte
	// Refuse is the application's answer, should this datagram complete a
	// packet that is handed to it: libraries let it refuse one, which is then
	// neither entered nor acked.
	Refuse bool
}

// Submit is the application asking for something to be sent. What a channel
// means is the endpoint's: it documents them.
type Submit struct {
	To      Peer
	Channel uint8
	Type    uint32 // of the message, where the channel carries typed ones
	Payload []byte
}

// Command is the application asking for something other than sending.
type Command struct {
	Peer    Peer
	Kind    CommandKind
	Payload []byte
}

// Open tells that the stream to or from Peer now stands.
type Open struct{ Peer Peer }

// Bytes are read from Peer's stream, in order, cut anywhere.
type Bytes struct {
	From  Peer
	Bytes []byte
}

// Close tells that Peer's stream has ended.
type Close struct{ Peer Peer }

// Wake is the passing of time: a frame of the game, or a deadline that has come.
type Wake struct{}

func (Arrive) input()  {}
func (Submit) input()  {}
func (Command) input() {}
func (Open) input()    {}
func (Bytes) input()   {}
func (Close) input()   {}
func (Wake) input()    {}

// CommandKind says what the application asks for.
type CommandKind uint8

const (
	Connect    CommandKind = iota // begin a connection to Peer
	Accept                        // let Peer in
	Reject                        // refuse Peer
	Kick                          // end Peer's connection, as a server
	Disconnect                    // end the connection
	Stop                          // end all and forget all
	Cancel                        // give up what was submitted; Payload says which, as the endpoint documents
)

var commandWords = [...]string{"connect", "accept", "reject", "kick", "disconnect", "stop", "cancel"}

// String returns the word that journals use.
func (k CommandKind) String() string {
	if int(k) < len(commandWords) {
		return commandWords[k]
	}
	return "unknown"
}

// ParseCommandKind reads one of those words.
func ParseCommandKind(word string) (CommandKind, bool) {
	for i, w := range commandWords {
		if w == word {
			return CommandKind(i), true
		}
	}
	return 0, false
}

// Transmission is something that the driver is to put on the network.
type Transmission struct {
	To    Peer
	Kind  TransmitKind
	Bytes []byte // valid until the Effects are reset
}

// TransmitKind says how a Transmission travels.
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
	Type    uint32 // of the message, where the channel carries typed ones
	ID      uint64 // what the protocol calls it: a message id, a packet's sequence
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

// hold copies b to memory that lives until Reset. A grown arena leaves earlier
// copies where they are: they keep the old one alive.
func (e *Effects) hold(b []byte) []byte {
	if cap(e.arena)-len(e.arena) < len(b) {
		e.arena = make([]byte, 0, max(2*cap(e.arena), len(b), 2048))
	}
	n := len(e.arena)
	e.arena = append(e.arena, b...)
	return e.arena[n:len(e.arena):len(e.arena)]
}
