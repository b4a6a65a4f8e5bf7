package endpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Options set up a reference endpoint.
type Options struct {
	Profile *wire.Profile
	Rules   *gaffer.Rules // shared with the endpoint's clones: must not change
	Side    machine.Side
	// EventClock makes the endpoint read its clock at every input. Without it the clock
	// stands still between two Wakes, as for a game that updates its library once a frame.
	// Round trip times are then multiples of a frame.
	EventClock bool
	First      uint32 // sequence of the first packet
	// PeerFirst is the sequence of the peer's first packet. If it is not 0, the endpoint
	// has been connected for a while: it has received all that the peer sent before.
	PeerFirst uint32
	// A packet with a payload above FragmentAbove is sent as fragments of FragmentSize
	// bytes, at most FragmentMost of them. FragmentAbove 0 means never.
	FragmentAbove, FragmentSize, FragmentMost int
	Messages                                  *messages.Options // nil: packets carry payload only
	Estimates                                 EstimateOptions
	Fault                                     *Fault // what it does wrong; nil: nothing
}

// Endpoint is the reference implementation of the family: `reliable`, and the article
// with its messages. It has one peer.
type Endpoint struct {
	options  Options
	state    gaffer.State
	clock    machine.Instant
	started  bool
	estimate Estimates
	next64   int64 // unwrapped sequence of the next packet
	newest64 int64 // unwrapped, of the peer; -1 before the first
	parts    []reassembly
	messages *messages.Queues

	// For faults: the packet received last, the header sent last, and the fragments sent
	// beyond the first of each packet.
	last       uint32
	before     wire.Header
	extraParts uint32

	packet  wire.Packet
	payload []byte // of the packet that is being sent
	bytes   []byte // of the datagram that is being sent
	ids     []int64
}

// reassembly holds the data of a packet's fragments. State knows which have arrived.
type reassembly struct {
	sequence uint32
	header   wire.Header
	parts    [][]byte
}

// New returns an endpoint that has neither sent nor received.
func New(o Options) (*Endpoint, error) {
	if o.Profile == nil || o.Rules == nil {
		return nil, errors.New("reference endpoint: expected a profile and rules")
	}
	fault := o.Fault
	if fault == nil {
		fault = &Fault{}
	}
	o.Fault = fault
	if fault.rules != nil {
		changed := *o.Rules
		fault.rules(&changed)
		o.Rules = &changed
	}
	e := &Endpoint{options: o, state: gaffer.NewState(o.Rules), newest64: -1, estimate: newEstimates(o.Estimates, o.Rules)}
	e.state.StartAt(o.First)
	e.next64 = int64(e.state.NextSequence())
	if first := o.PeerFirst & o.Rules.Mask(); first > 0 {
		width := e.state.Claims().Width
		e.state.Join(gaffer.Claims{
			Newest: first - 1, Named: ^uint64(0) >> (64 - min(uint(width), uint(first))),
			Width: width,
		})
		e.newest64 = int64(first) - 1
	}
	e.parts = make([]reassembly, o.Rules.Partial)
	if o.Messages != nil {
		options := *o.Messages
		if fault.messages != nil {
			fault.messages(&options)
		}
		m, err := messages.NewQueues(&options, o.Profile)
		if err != nil {
			return nil, err
		}
		e.messages = m
	}
	return e, nil
}

// State returns the endpoint's buffers. Callers may read but not change them.
func (e *Endpoint) State() *gaffer.State { return &e.state }

// Estimates returns the endpoint's own estimates.
func (e *Endpoint) Estimates() *Estimates { return &e.estimate }

// CanSubmit reports whether the send buffer has room for a message.
func (e *Endpoint) CanSubmit() bool {
	return e.messages != nil && e.messages.CanSubmit()
}

// Step processes one input. See machine.Endpoint.
func (e *Endpoint) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	if e.options.EventClock || !e.started {
		e.clock, e.started = now, true
	}
	switch in := in.(type) {
	case machine.Wake:
		e.clock = now
		e.estimate.update(&e.state, now)
	case machine.Arrive:
		e.arrive(now, in, out)
	case machine.Submit:
		switch in.Channel {
		case messages.ChannelPacket:
			return e.send(now, in.Payload, out)
		case messages.ChannelMessage:
			if e.messages == nil {
				return errors.New("submit: the endpoint has no message section")
			}
			return e.messages.Submit(in.Type, in.Payload)
		default:
			return fmt.Errorf("submit: channel %d, expected %d or %d", in.Channel, messages.ChannelPacket,
				messages.ChannelMessage)
		}
	default:
		return fmt.Errorf("step: %T, expected a datagram, a submission or a wake", in)
	}
	return nil
}

// Deadline returns no deadline. The application sends at its own rate, and everything
// else is sent with its packets.
func (e *Endpoint) Deadline() (machine.Instant, bool) { return 0, false }

func (e *Endpoint) send(now machine.Instant, app []byte, out *machine.Effects) error {
	header := e.state.Header()
	if f := e.options.Fault.header; f != nil {
		f(e, &header)
	}
	payload := app
	if e.messages != nil {
		e.payload, e.ids = e.messages.Write(e.payload[:0], e.ids[:0], e.clock, e.estimate.RTT())
		payload = append(e.payload, app...)
		e.payload = payload
	}
	if err := e.transmit(header, payload, out); err != nil {
		return err
	}
	if e.messages != nil {
		e.messages.Sent(e.next64, e.clock, e.ids)
	}
	p := gaffer.Sent{
		At: e.clock, Bytes: uint32(len(payload)), Ack: header.Ack, AckBits: header.AckBits,
		Flags: gaffer.SentHeader,
	}
	if len(out.Transmit) > 1 {
		p.Flags |= gaffer.SentFragmented
		if e.options.Fault.perPart {
			e.extraParts += uint32(len(out.Transmit) - 1)
		}
	}
	e.state.Send(p)
	e.tell(now, machine.Event{Kind: machine.EventSent, Sequence: header.Sequence, Sequence64: e.next64, RTT: -1}, out)
	e.next64++
	return nil
}

// transmit sends a packet, in fragments if it is large.
func (e *Endpoint) transmit(h wire.Header, payload []byte, out *machine.Effects) error {
	o := &e.options
	if n := o.Profile.PayloadLengthBits; n > 0 && len(payload) >= 1<<n {
		return fmt.Errorf("submit: %d bytes, expected at most the %d that the profile's payload length of %d bits can say",
			len(payload), 1<<n-1, n)
	}
	pk := wire.Packet{Kind: wire.KindRegular, Header: h, Sequence: h.Sequence}
	if o.FragmentAbove == 0 || len(payload) <= o.FragmentAbove {
		e.bytes = o.Profile.Append(e.bytes[:0], &pk, payload)
		out.Send(0, machine.SendDatagram, e.bytes)
		return nil
	}
	pk.Kind, pk.FragmentCount = wire.KindFragment, (len(payload)+o.FragmentSize-1)/o.FragmentSize
	whole := payload
	empty := o.Fault.emptyLast && len(payload)%o.FragmentSize == 0
	if empty {
		pk.FragmentCount++
	}
	if pk.FragmentCount > o.FragmentMost {
		return fmt.Errorf("submit: %d bytes make %d fragments, expected at most %d", len(payload), pk.FragmentCount,
			o.FragmentMost)
	}
	for count := pk.FragmentCount; pk.FragmentID < count; pk.FragmentID++ {
		data := payload[:min(o.FragmentSize, len(payload))]
		payload = payload[len(data):]
		if o.Fault.fragment != nil {
			right := pk.FragmentID
			pk.FragmentID = o.Fault.fragment(&pk)
			data = whole[pk.FragmentID*o.FragmentSize:]
			data = data[:min(o.FragmentSize, len(data))]
			e.bytes = o.Profile.Append(e.bytes[:0], &pk, data)
			out.Send(0, machine.SendDatagram, e.bytes)
			pk.FragmentID = right
			continue
		}
		e.bytes = o.Profile.Append(e.bytes[:0], &pk, data)
		out.Send(0, machine.SendDatagram, e.bytes)
	}
	return nil
}

// arrive processes a datagram. It ignores what is not a packet of the profile, as the
// libraries do.
func (e *Endpoint) arrive(now machine.Instant, in machine.Arrive, out *machine.Effects) {
	p := &e.packet
	if err := e.options.Profile.Parse(in.Bytes, len(in.Bytes), p); err != nil {
		return
	}
	switch p.Kind {
	case wire.KindRegular:
		e.receive(now, p.Header, in.Bytes[p.PayloadOffset:p.PayloadOffset+p.PayloadLen], in.Refuse, out)
	case wire.KindFragment:
		e.arriveFragment(now, in, p, out)
	}
}

func (e *Endpoint) arriveFragment(now machine.Instant, in machine.Arrive, p *wire.Packet, out *machine.Effects) {
	last := p.FragmentID == p.FragmentCount-1
	if size := e.options.FragmentSize; !last && p.PayloadLen != size || p.PayloadLen > size {
		return
	}
	fate := e.state.ArriveFragment(p.Sequence, p.FragmentID, p.FragmentCount)
	if e.options.Fault.early && fate == gaffer.FragmentKept {
		e.state.EnterReceived(p.Sequence)
		e.last = p.Sequence
	}
	if fate != gaffer.FragmentKept && fate != gaffer.FragmentComplete {
		return
	}
	r := &e.parts[gaffer.Slot(p.Sequence, len(e.parts))]
	if r.sequence != p.Sequence || len(r.parts) != p.FragmentCount ||
		e.state.PartialOf(p.Sequence).Missing == p.FragmentCount-1 {
		*r = reassembly{sequence: p.Sequence, parts: make([][]byte, p.FragmentCount)}
	}
	r.parts[p.FragmentID] = slices.Clone(in.Bytes[p.PayloadOffset : p.PayloadOffset+p.PayloadLen])
	if p.FragmentID == 0 {
		r.header = p.Header
	}
	if fate == gaffer.FragmentComplete {
		whole := slices.Concat(r.parts...)
		header := r.header
		*r = reassembly{}
		e.receive(now, header, whole, in.Refuse, out)
		e.state.Forget(header.Sequence)
	}
}

// receive processes a whole packet.
func (e *Endpoint) receive(now machine.Instant, h wire.Header, payload []byte, refuse bool, out *machine.Effects) {
	if e.messages != nil {
		// Discard malformed packets before they can be acked. A packet that was acked with
		// its messages unread would lose them for good.
		rest, err := e.messages.Read(payload)
		if err != nil {
			return
		}
		payload = rest
	}
	size := e.packet.HeaderLen + len(payload)
	event := machine.Event{Sequence: h.Sequence, Sequence64: e.unwrap(h.Sequence), RTT: -1}
	if f := e.options.Fault.drops; f != nil && f(e, h.Sequence) {
		event.Kind = machine.EventStale
		e.tell(now, event, out)
		return
	}
	fate := e.enter(h.Sequence, event.Sequence64, refuse)
	switch fate {
	case gaffer.Accepted, gaffer.Redelivered:
		event.Kind = machine.EventReceived
	case gaffer.Refused:
		event.Kind = machine.EventRejected
	case gaffer.Duplicate:
		event.Kind = machine.EventDuplicate
	case gaffer.Stale:
		event.Kind = machine.EventStale
	}
	e.tell(now, event, out)
	if !fate.Delivered() {
		return
	}
	e.newest64 = max(e.newest64, event.Sequence64)
	e.last = h.Sequence
	e.estimate.arrive(h.Sequence, size, e.clock)
	out.Hand(machine.Delivery{Channel: messages.ChannelPacket, ID: uint64(h.Sequence), Payload: payload})
	e.readAcks(now, h, out)
	if e.messages != nil {
		e.messages.Deliver(now, e.options.Side, out)
	}
}

// enter enters a whole packet into the received buffer, with the endpoint's fault.
func (e *Endpoint) enter(sequence uint32, number int64, refuse bool) gaffer.Fate {
	s, f := &e.state, e.options.Fault
	newest := s.NewestReceived()
	switch {
	case f.forgets != nil && f.forgets(e, number):
		for n := range uint32(64) {
			s.Withdraw((newest - n) & s.Rules.Mask())
		}
	case f.overwrites && s.SlidPast(sequence):
		slot := gaffer.Slot(sequence, len(s.ReceivedBuffer))
		if q := s.ReceivedBuffer[slot]; gaffer.Slot(q, len(s.ReceivedBuffer)) == slot {
			s.Withdraw(q)
		}
		s.ReceivedBuffer[slot] = sequence
		return gaffer.Accepted
	}
	fate := s.Arrive(sequence, refuse)
	if f.jumped != nil && fate == gaffer.Accepted && s.Rules.Distance(sequence, newest) > 1 {
		f.jumped(e, newest)
	}
	return fate
}

// readAcks processes the ack fields of a delivered packet.
func (e *Endpoint) readAcks(now machine.Instant, h wire.Header, out *machine.Effects) {
	r := e.state.Rules
	c := r.Claims(h.Ack, h.AckBits)
	told := e.state.ReadAcks(c, e.clock, 0)
	// The article reads the bits from the newest back. Messages are settled in the same
	// order.
	for n := 0; told != 0; n, told = n+1, told>>1 {
		if told&1 == 0 {
			continue
		}
		sequence := (c.Newest - uint32(n)) & r.Mask()
		p := e.state.Sent(sequence)
		sample := e.clock.Sub(p.At)
		e.estimate.sample(sequence, sample)
		sequence64 := e.next64 - 1 + int64(r.Distance(sequence, (e.state.NextSequence()-1)&r.Mask()))
		e.tell(now, machine.Event{
			Kind: machine.EventAcked, Bit: p.Bit, Sequence: sequence, Sequence64: sequence64,
			RTT: int64(sample),
		}, out)
		if e.messages != nil && !e.options.Fault.ignoreAcks {
			e.messages.Acked(sequence64)
		}
	}
}

// unwrap returns the peer's sequence unwrapped. The first one keeps its value.
func (e *Endpoint) unwrap(sequence uint32) int64 {
	if e.newest64 < 0 {
		return int64(sequence)
	}
	r := e.state.Rules
	return e.newest64 + int64(r.Distance(sequence, uint32(e.newest64)&r.Mask()))
}

func (e *Endpoint) tell(now machine.Instant, event machine.Event, out *machine.Effects) {
	event.Side, event.Certainty, event.At = e.options.Side, machine.Certain, now
	out.Events = append(out.Events, event)
}

// Clone returns an independent copy.
func (e *Endpoint) Clone() machine.Endpoint {
	c := *e
	c.state = e.state.Clone()
	c.estimate = e.estimate.clone()
	c.parts = slices.Clone(e.parts)
	for i := range c.parts {
		c.parts[i].parts = slices.Clone(c.parts[i].parts) // the contents of a part never change
	}
	if e.messages != nil {
		c.messages = e.messages.Clone()
	}
	c.payload, c.bytes, c.ids = nil, nil, nil
	return &c
}
