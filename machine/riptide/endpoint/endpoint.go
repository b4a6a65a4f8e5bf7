package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Everyone addresses a server's Submit to all its clients.
const Everyone machine.Peer = 1<<32 - 1

// TypeBits is the number of low bits in a Submit's Type that hold the message id. The bits above
// hold the number of unused bits in the payload's last byte.
const TypeBits = 16

// Submission returns a Submit of the values in w. The id is not used on ChannelNotify.
func Submission(to machine.Peer, channel uint8, id uint16, w *wire.Writer) machine.Submit {
	spare := uint32(-w.Bits() & 7)
	return machine.Submit{To: to, Channel: channel, Type: uint32(id) | spare<<TypeBits, Payload: w.Body()}
}

// Options configure a reference endpoint.
type Options struct {
	Version *riptide.Version
	Side    machine.Side
	Codec   wire.Codec // its Dialect is the version's; zero for the usual one
	Stream  bool       // over TCP
	// EventClock makes the endpoint read its clock at every input. Without it the clock stands still
	// between two Wakes, as for a game that updates the library once per tick.
	EventClock bool
	Limits     Limits
	Resend     Resend // the zero value is the library's
	Attempts   int    // of a client: Connects until it gives up; 0 is ConnectAttempts
	Fault      *Fault // what it does wrong; nil for nothing

	// Options of a server.
	Slots int      // clients at a time; 0 is 16
	Ask   bool     // the application decides on connections: Accept or Reject
	Relay []uint16 // ids of user messages that go on to all other clients; must not change
}

// Limits are the limits of a connection's quality. A zero field is the library's limit.
type Limits struct {
	Off      bool    // no connection ends for its quality
	Attempts int     // sends of one message; one more ends the connection or the message
	Sends    float64 // mean sends of the last 64 messages
	Loss     float64 // share of lost notify messages of the last 64
	Row      int     // outcomes in a row that may be beyond a limit
}

// Resend is the wait between two sends of a message. It is a fixed time, or a multiple of the
// smoothed round trip time once that is known. In any case the library sends nothing twice within
// half a round trip.
type Resend struct {
	After time.Duration
	Times float64
}

// after returns the wait. smoothed is the smoothed RTT in whole milliseconds, negative for none
// yet.
func (r *Resend) after(smoothed int) time.Duration {
	switch {
	case r.Times > 0 && smoothed >= 0:
		return max(riptide.ResendLeast, time.Duration(r.Times*float64(smoothed)*float64(time.Millisecond)))
	case r.After > 0:
		return r.After
	}
	return riptide.ResendAfter(smoothed)
}

// Endpoint is the reference client or server of every version. It does no I/O.
//
//	Submit ──> reliable: pending, sent, resent by a timer ──> Transmit
//	       └─> notify, unreliable: sent
//	Arrive ──> Receiver ──> Ack ──> Transmit
//	       └─> Sender: pending messages are cleared, or sent again
//	Wake   ──> the clock: heartbeats, timeouts, resends
//
// The tracker uses the same code for what a message changes in a side's knowledge. Times are whole
// milliseconds of the side's own clock, which moves once per tick, as in the library.
//
// It differs from the library on purpose:
//
//   - It handles each message when it reads it. The library first acks all messages of one poll.
//   - Timers of the same millisecond fire in the order in which they were set.
//   - It has Pytide's sequencers, but not the exceptions that Pytide's faults throw.
//
// A client has peer 0; a server has any. Over TCP a client asks for the stream and begins when it
// is open. If the other end closes the stream, only a timeout ends the connection: the library does
// not check.
type Endpoint struct {
	options   Options
	server    bool
	codec     wire.Codec
	behaviour *riptide.Behaviour
	build     *wire.Build
	limit     int

	start     machine.Instant
	running   bool
	clock     int64                       // ms since start
	agenda    agenda.Agenda[int64, timer] // by clock
	linkCount uint32

	links map[machine.Peer]*link

	// State of a client.
	attempts int
	data     []byte // for Connect

	lobby lobby // of a server

	m       wire.Message
	buffers buffers

	// The current step.
	now machine.Instant
	out *machine.Effects
}

// buffers are rewritten for each message. Nothing reads what an earlier message left in them.
type buffers struct {
	message []byte // the message being written
	framed  []byte // the same after its length prefix
	body    []byte // of the message being delivered
}

// NewClient returns a client that is not connected. Its commands are Connect, with the
// application's data, and Disconnect.
func NewClient(o Options) (*Endpoint, error) { return NewEndpoint(o, false) }

// NewServer returns a server without clients. It runs from its first input on. Its commands are
// Accept, Reject and Kick, each with the application's data, and Stop. Connect starts it again
// after Stop.
func NewServer(o Options) (*Endpoint, error) { return NewEndpoint(o, true) }

// NewEndpoint returns a server, or a client. It fails where the version is missing, the codec has
// another dialect, or Slots is out of range.
func NewEndpoint(o Options, server bool) (*Endpoint, error) {
	if o.Version == nil {
		return nil, errors.New("reference endpoint: expected a version")
	}
	if o.Codec.Dialect == nil {
		o.Codec.Dialect = o.Version.Build.Dialect
	}
	if o.Codec.Dialect != o.Version.Build.Dialect {
		return nil, fmt.Errorf("reference endpoint: dialect %s, expected %s's own, %s", o.Codec.Dialect.Name, o.Version.Name,
			o.Version.Build.Dialect.Name)
	}
	if o.Slots < 0 || o.Slots >= 1<<16-1 {
		return nil, fmt.Errorf("reference endpoint: %d clients, expected at most 65534", o.Slots)
	}
	defaults(&o)
	e := &Endpoint{
		options: o, server: server, codec: o.Codec, behaviour: o.Version.Behaviour, build: o.Version.Build,
		links: map[machine.Peer]*link{}, lobby: lobby{barred: map[machine.Peer]bool{}},
	}
	if o.Fault == nil {
		e.options.Fault = &Fault{}
	} else if change := o.Fault.behaviour; change != nil {
		b := *e.behaviour
		change(&b)
		e.behaviour = &b
	}
	if e.limit = o.Limits.Attempts; e.limit == 0 || e.behaviour.Limit == 0 {
		e.limit = e.behaviour.Limit
	}
	return e, nil
}

func defaults(o *Options) {
	if o.Attempts == 0 {
		o.Attempts = riptide.ConnectAttempts
	}
	if o.Slots == 0 {
		o.Slots = 16
	}
	if o.Limits.Sends == 0 {
		o.Limits.Sends = riptide.QualitySends
	}
	if o.Limits.Loss == 0 {
		o.Limits.Loss = riptide.QualityLoss
	}
	if o.Limits.Row == 0 {
		o.Limits.Row = riptide.QualityRow
	}
}

// Options returns the endpoint's options, with defaults filled in.
func (e *Endpoint) Options() Options { return e.options }

// Connected reports whether the connection with a peer is made.
func (e *Endpoint) Connected(p machine.Peer) bool {
	l := e.links[p]
	return l != nil && l.state == linkConnected
}

// Pending returns the peers on which a server's application has not decided, in the order of their
// requests.
func (e *Endpoint) Pending() []machine.Peer { return slices.Clone(e.lobby.pending) }

// ClientID returns the client id of a connected peer, or of the client itself. It returns 0 for an
// unknown peer.
func (e *Endpoint) ClientID(p machine.Peer) uint16 {
	if l := e.links[p]; l != nil {
		return l.id
	}
	return 0
}

// RTT returns the round trip time with a peer and its smoothed value in whole milliseconds. Both
// are -1 while unknown.
func (e *Endpoint) RTT(p machine.Peer) (rtt, smoothed int) {
	if l := e.links[p]; l != nil {
		return l.beats.rtt, l.beats.smoothed
	}
	return -1, -1
}

// Values returns a reader of a delivered message's values.
func (e *Endpoint) Values(d *machine.Delivery) wire.Reader {
	return e.codec.Values(d.Payload, &wire.Message{BodyBits: 8 * len(d.Payload)})
}

// Step processes one input: see machine.Endpoint.
func (e *Endpoint) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	e.now, e.out = now, out
	err := e.take(in)
	e.out = nil
	return err
}

func (e *Endpoint) take(in machine.Input) error {
	if e.server && !e.running && !e.lobby.stopped {
		e.serve()
	}
	if _, wake := in.(machine.Wake); e.running && (wake || e.options.EventClock) {
		e.clock = max(e.clock, int64(e.now.Sub(e.start)/time.Millisecond))
	}
	switch in := in.(type) {
	case machine.Wake:
		e.timers()
	case machine.Arrive:
		if !e.options.Stream {
			e.arrive(in.From, in.Bytes)
		}
	case machine.Submit:
		return e.submit(in)
	case machine.Command:
		return e.command(in)
	case machine.Open:
		e.open(in.Peer)
	case machine.Bytes:
		e.read(in.From, in.Bytes)
	case machine.Close:
		e.closed(in.Peer)
	default:
		return fmt.Errorf("step: %T is no input", in)
	}
	return nil
}

// timers runs the timers that are due.
func (e *Endpoint) timers() {
	for e.running {
		if due, ok := e.agenda.Next(); !ok || due > e.clock {
			return
		}
		switch t := e.agenda.Take(); t.kind {
		case timerHeartbeat:
			if e.server {
				e.checkTimeouts()
			} else {
				e.beat()
			}
		case timerResend:
			// A message that was sent again since then has another timer.
			if l := e.links[t.peer]; l != nil && l.number == t.link {
				if p := &l.out.pending[t.slot]; p.copy == t.copy && p.sentAt == t.at {
					e.retry(l, t.slot)
				}
			}
		case timerForget:
			delete(e.lobby.barred, t.peer)
		}
	}
}

func (e *Endpoint) schedule(in time.Duration, t timer) {
	e.agenda.Add(e.clock+int64(in/time.Millisecond), t)
}

// Deadline returns the time of the first timer.
func (e *Endpoint) Deadline() (machine.Instant, bool) {
	due, ok := e.agenda.Next()
	if !e.running || !ok {
		return 0, false
	}
	return e.start.Add(time.Duration(due) * time.Millisecond), true
}

// begin starts the clock.
func (e *Endpoint) begin() { e.start, e.clock, e.running = e.now, 0, true }

// halt stops the clock and forgets all timers.
func (e *Endpoint) halt() {
	e.clock, e.running = 0, false
	e.agenda.Clear()
}

func (e *Endpoint) submit(in machine.Submit) error {
	m, bits, err := e.userMessage(in)
	if err != nil {
		return err
	}
	if e.server && in.To == Everyone {
		return e.broadcast(Everyone, in.Channel, m, in.Payload, bits)
	}
	l := e.links[in.To]
	if l == nil || l.state == linkClosed {
		return fmt.Errorf("submit: no connection with peer %d", in.To)
	}
	return e.send(l, in.Channel, m, in.Payload, bits)
}

// userMessage checks a submission. It returns the header, and the bits of its body.
func (e *Endpoint) userMessage(in machine.Submit) (m wire.Message, bits int, err error) {
	types := [...]wire.Type{wire.Unreliable, wire.Reliable, wire.Notify}
	if int(in.Channel) >= len(types) {
		return m, 0, fmt.Errorf("submit: channel %d, expected %d to %d", in.Channel, riptide.ChannelUnreliable,
			riptide.ChannelNotify)
	}
	m.Type = types[in.Channel]
	if e.codec.Dialect.Layout(m.Type) == nil {
		return m, 0, fmt.Errorf("submit: %s does not exist in dialect %s", m.Type, e.codec.Dialect.Name)
	}
	spare := int(in.Type >> TypeBits)
	bits = 8*len(in.Payload) - spare
	if spare > 7 || bits < 0 || spare > 0 && e.codec.Dialect.Form == wire.ByteAligned {
		return m, 0, fmt.Errorf("submit: %d unused bits in a payload of %d bytes", spare, len(in.Payload))
	}
	m.MessageID = uint16(in.Type)
	return m, bits, nil
}

func (e *Endpoint) command(in machine.Command) error {
	if e.server {
		return e.commandServer(in)
	}
	return e.commandClient(in)
}

// emit appends an event about a link.
func (e *Endpoint) emit(l *link, event machine.Event) {
	event.Side, event.Certainty, event.At, event.Peer = e.options.Side, machine.Certain, e.now, l.peer
	if event.Sequence64 == 0 {
		event.Sequence64 = int64(event.Sequence)
	}
	e.out.Events = append(e.out.Events, event)
}

// connectionEvent emits an event of the connection, and delivers the data that came with it.
func (e *Endpoint) connectionEvent(l *link, kind machine.EventKind, number uint16, data []byte) {
	e.emit(l, machine.Event{Kind: kind, Sequence: uint32(number), RTT: -1})
	if len(data) > 0 {
		e.out.Hand(machine.Delivery{From: l.peer, Channel: riptide.ChannelData, Type: uint32(kind), Payload: data})
	}
}

// Clone returns an independent copy.
func (e *Endpoint) Clone() machine.Endpoint {
	c := *e
	c.links = make(map[machine.Peer]*link, len(e.links))
	for p, l := range e.links {
		c.links[p] = l.clone()
	}
	c.agenda = e.agenda.Clone()
	c.data = slices.Clone(e.data)
	c.lobby, c.buffers = e.lobby.clone(), buffers{}
	return &c
}
