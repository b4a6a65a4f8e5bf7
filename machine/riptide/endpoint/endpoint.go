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

// Everyone addresses a Submit of a server to all its clients.
const Everyone machine.Peer = 1<<32 - 1

// TypeBits is how many low bits of a Submit's Type are the message id. Those above
// count the bits of the payload's last byte that do not belong to it.
const TypeBits = 16

// Submission returns the submission of the values that w holds as a message. The
// id is not used on ChannelNotify.
func Submission(to machine.Peer, channel uint8, id uint16, w *wire.Writer) machine.Submit {
	spare := uint32(-w.Bits() & 7)
	return machine.Submit{To: to, Channel: channel, Type: uint32(id) | spare<<TypeBits, Payload: w.Body()}
}

// Options set up a reference endpoint.
type Options struct {
	Version *riptide.Version
	Side    machine.Side
	Codec   wire.Codec // its Dialect is the version's; zero for the usual one
	Stream  bool       // over TCP
	// EventClock has the endpoint read its clock at every input. Without it the
	// clock stands still between two Wakes, as it does for a game that updates
	// the library once a tick.
	EventClock bool
	Limits     Limits
	Resend     Resend // the zero value is the library's
	Attempts   int    // of a client: Connects until it gives up; 0 is ConnectAttempts
	Fault      *Fault // what it does wrong; nil for nothing

	// Of a server.
	Slots int      // clients at a time; 0 is 16
	Ask   bool     // the application decides on connections: Accept or Reject
	Relay []uint16 // ids of user messages that go on to all other clients; must not change
}

// Limits are what ends a connection for its quality. Zero is the library's.
type Limits struct {
	Off      bool    // nothing ends one
	Attempts int     // sends of one message, which ends the connection or the message
	Sends    float64 // mean sends of the last 64 messages
	Loss     float64 // share of lost notify messages of the last 64
	Row      int     // for how many outcomes in a row a mean may be beyond its limit
}

// Resend is the wait between two sends of a message: a fixed time, or a multiple
// of the smoothed round trip time once that is known. Whatever it is, the library
// sends nothing again within half a round trip.
type Resend struct {
	After time.Duration
	Times float64
}

// after returns the wait at a smoothed RTT in whole milliseconds (negative: none yet).
func (r *Resend) after(smoothed int) time.Duration {
	switch {
	case r.Times > 0 && smoothed >= 0:
		return max(riptide.ResendLeast, time.Duration(r.Times*float64(smoothed)*float64(time.Millisecond)))
	case r.After > 0:
		return r.After
	}
	return riptide.ResendAfter(smoothed)
}

// Endpoint is the reference client or server of every version, sans IO.
//
//	Submit ──> reliable: pending, sent, resent by a timer ──> Transmit
//	       └─> notify, unreliable: sent
//	Arrive ──> Receiver ──> Ack ──> Transmit
//	       └─> Sender: pending messages are cleared, or sent again
//	Wake   ──> the clock: heartbeats, timeouts, resends
//
// What a message does to a side's knowledge are the transitions that the
// tracker drives too. Times are whole milliseconds of the side's own clock,
// which moves once a tick, as in the library.
//
// Differences from the library on purpose: messages are handled as they are
// read, while the library acks all that one poll brings before it handles any;
// timers of the same millisecond fire in the order in which they were set. Of
// Pytide the sequencers are here, not the exceptions that its own faults throw.
//
// A client has peer 0; a server has any. Over TCP a client asks for the stream
// and begins when it is open. A stream that the other end has closed shows as
// nothing but a timeout: the library does not look.
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

	// Of a client.
	attempts int
	data     []byte // for Connect

	lobby lobby // of a server

	m       wire.Message
	buffers buffers

	// Of the step at work.
	now machine.Instant
	out *machine.Effects
}

// buffers are written anew for each message: what an earlier one left in them is not
// read again.
type buffers struct {
	message []byte // that is written
	framed  []byte // the same behind its length
	body    []byte // of the message that is handed over
}

// NewClient returns a client that is not connected. Commands: Connect, with the
// application's data, and Disconnect.
func NewClient(o Options) (*Endpoint, error) { return NewEndpoint(o, false) }

// NewServer returns a server without clients, which runs from its first input on.
// Commands: Accept, Reject and Kick, with the application's data, Stop, and
// Connect, which starts it again after that.
func NewServer(o Options) (*Endpoint, error) { return NewEndpoint(o, true) }

// NewEndpoint returns the part that clients and servers share.
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

// Options returns what the endpoint was built with, defaults filled in.
func (e *Endpoint) Options() Options { return e.options }

// Connected reports whether the connection with a peer stands.
func (e *Endpoint) Connected(p machine.Peer) bool {
	l := e.links[p]
	return l != nil && l.state == linkConnected
}

// Pending returns the peers on which a server's application has not decided, in
// the order in which they asked.
func (e *Endpoint) Pending() []machine.Peer { return slices.Clone(e.lobby.pending) }

// ClientID returns the id under which a connected peer, or the client itself, goes.
func (e *Endpoint) ClientID(p machine.Peer) uint16 {
	if l := e.links[p]; l != nil {
		return l.id
	}
	return 0
}

// RTT returns the round trip time with a peer and its smoothed value in whole
// milliseconds; -1 while none is known.
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

// Step takes one input: see machine.Endpoint.
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

// timers does what is due.
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
			// A message that was sent again since has a timer of its own.
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

// halt stops it and forgets all that was due.
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

// userMessage checks a submission and gives its header and the bits of its body.
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

// connectionEvent tells an event of the connection's connectionEvent, and hands over the data that
// came with it.
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
