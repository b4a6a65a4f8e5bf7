package article

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ChannelFragments is the channel of Fragments. Submit sends a packet of the given Type
// at once, whole or in fragments. The payload is the packet's body as on the wire. It
// begins within the byte that ends with the packet type: the lowest bits of its first
// byte are ignored, and are zero when delivered. ID is the packet's sequence as on the
// wire.
// Source: name, a channel of the reference
const ChannelFragments = 3

// FragmentOptions set up a Fragments endpoint.
type FragmentOptions struct {
	Profile *wire.Profile // one with the article's fragments, and its protocol id
	Side    machine.Side
	First   uint32 // sequence of the first packet
	Fault   *Fault
}

// Fragments is the reference of "Packet Fragmentation and Reassembly". It splits a
// packet larger than a fragment, including its checksum. The receiver joins the
// fragments of the newest packets, and reads a packet once none is missing. Nothing is
// sent again. If the network duplicates a whole packet it is delivered twice, as in the
// article: only fragments are looked up by their sequence.
type Fragments struct {
	options FragmentOptions
	fault   *Fault
	size    int // data bytes of a fragment
	most    int // fragments of a packet
	window  int // the reassembly window: packets from the oldest in reassembly to the newest

	next    int64 // sequence of the next packet to send, unwrapped
	newest  int64 // newest sequence that arrived, unwrapped
	begun   bool  // newest is set
	partial []assembling
	packet  wire.Packet
	bytes   []byte
}

// assembling is a packet whose fragments have begun to arrive.
type assembling struct {
	sequence int64 // unwrapped
	parts    [][]byte
	left     int // missing fragments; at 0 the parts are gone, and later fragments are ignored
}

// NewFragments returns an endpoint that has neither sent nor received a packet.
func NewFragments(o FragmentOptions) (*Fragments, error) {
	p := o.Profile
	if p == nil || p.Fragments != wire.FragmentsArticle || p.ProtocolID == nil {
		return nil, errors.New("fragments endpoint: expected a profile with the article's fragments and a protocol id")
	}
	fault := rightAll
	if o.Fault != nil {
		fault = o.Fault
	}
	e := &Fragments{
		options: o, fault: fault, size: p.FragmentSize, most: p.MaxFragments, window: p.ReassemblyBuffer,
		next: int64(o.First & p.Space().Mask()),
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&e.size, 1024}, {&e.most, 255}, {&e.window, 256}} { // the article's
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return e, nil
}

// Step processes one input. See machine.Endpoint.
func (e *Fragments) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Submit:
		return e.send(now, in, out)
	case machine.Arrive:
		e.arrive(now, in.Bytes, out)
	case machine.Wake:
	default:
		return fmt.Errorf("step: %T, expected a datagram, a submission or a wake", in)
	}
	return nil
}

func (e *Fragments) send(now machine.Instant, in machine.Submit, out *machine.Effects) error {
	p := e.options.Profile
	if in.Channel != ChannelFragments || in.Type == 0 || int64(in.Type) >= int64(p.PacketTypes) || len(in.Payload) == 0 {
		return fmt.Errorf("submit: %d bytes of type %d on channel %d, expected at least 1 of type 1 to %d on channel %d",
			len(in.Payload), in.Type, in.Channel, p.PacketTypes-1, ChannelFragments)
	}
	number := e.next
	if e.fault.number != nil {
		number = e.fault.number(number)
	}
	pk := wire.Packet{Kind: wire.KindRegular, Type: in.Type, Sequence: e.wire(number)}
	e.bytes = p.Append(e.bytes[:0], &pk, in.Payload)
	if most := e.size * e.most; len(e.bytes) > most {
		return fmt.Errorf("submit: %d bytes make a packet of %d, expected at most %d, which are %d fragments",
			len(in.Payload), len(e.bytes), most, e.most)
	}
	if len(e.bytes) <= e.size*max(1, e.fault.whole) && !e.fault.always {
		out.Send(0, machine.SendDatagram, e.bytes)
	} else {
		e.cut(pk.Sequence, out)
	}
	e.tell(now, machine.EventSent, e.next, out)
	e.next++
	return nil
}

// cut sends the packet in e.bytes in fragments.
func (e *Fragments) cut(sequence uint32, out *machine.Effects) {
	var datagram []byte
	count := (len(e.bytes) + e.size - 1) / e.size
	for i := range count {
		id := i
		if e.fault.reversed {
			id = count - 1 - i
		}
		pk := wire.Packet{Kind: wire.KindFragment, Sequence: sequence, FragmentID: id, FragmentCount: count}
		if e.fault.fragment != nil {
			e.fault.fragment(&pk)
		}
		datagram = e.options.Profile.Append(datagram[:0], &pk, e.bytes[id*e.size:min((id+1)*e.size, len(e.bytes))])
		out.Send(0, machine.SendDatagram, datagram)
	}
}

func (e *Fragments) arrive(now machine.Instant, b []byte, out *machine.Effects) {
	p, pk := e.options.Profile, &e.packet
	if p.Parse(b, len(b), pk) != nil {
		return
	}
	sequence := int64(pk.Sequence)
	if e.begun {
		sequence = p.Space().Unwrap(pk.Sequence, e.newest)
	}
	switch pk.Kind {
	case wire.KindRegular:
		e.advance(sequence)
		e.deliver(now, sequence, b, out)
	case wire.KindFragment:
		joined := e.join(sequence, b[pk.PayloadOffset:pk.PayloadOffset+pk.PayloadLen])
		// The joined fragments must be a packet by themselves. It must be the packet that
		// they say they belong to.
		if joined != nil && p.Parse(joined, len(joined), pk) == nil && pk.Kind == wire.KindRegular &&
			pk.Sequence == e.wire(sequence) {
			e.deliver(now, sequence, joined, out)
		}
	}
}

// advance moves the window to a newer packet, and drops the packets that leave it: no
// more of them is expected.
func (e *Fragments) advance(sequence int64) {
	if e.begun && sequence <= e.newest {
		return
	}
	e.newest, e.begun = sequence, true
	e.partial = slices.DeleteFunc(e.partial, func(a assembling) bool { return a.sequence <= sequence-int64(e.window) })
}

// join enters the fragment that was just parsed. It returns the packet's bytes if that
// was the last missing fragment. It refuses a fragment older than the window, or with
// another count than the packet's first one.
func (e *Fragments) join(sequence int64, data []byte) []byte {
	e.advance(sequence)
	if sequence <= e.newest-int64(e.window) {
		return nil
	}
	id, count := e.packet.FragmentID, e.packet.FragmentCount
	i := slices.IndexFunc(e.partial, func(a assembling) bool { return a.sequence == sequence })
	if i < 0 {
		i = len(e.partial)
		e.partial = append(e.partial, assembling{sequence: sequence, parts: make([][]byte, count), left: count})
	}
	a := &e.partial[i]
	if len(a.parts) != count || a.parts[id] != nil {
		return nil
	}
	a.parts[id] = slices.Clone(data)
	if a.left--; a.left > 0 {
		return nil
	}
	joined := slices.Concat(a.parts...)
	a.parts = nil
	return joined
}

// deliver delivers the body of the packet that was just parsed from b.
func (e *Fragments) deliver(now machine.Instant, sequence int64, b []byte, out *machine.Effects) {
	pk := &e.packet
	e.bytes = append(e.bytes[:0], b[pk.PayloadOffset:pk.PayloadOffset+pk.PayloadLen]...)
	if len(e.bytes) > 0 {
		e.bytes[0] &= 0xff << pk.PayloadBit
	}
	out.Hand(machine.Delivery{Channel: ChannelFragments, Type: pk.Type, ID: uint64(pk.Sequence), Payload: e.bytes})
	e.tell(now, machine.EventDelivered, sequence, out)
}

func (e *Fragments) tell(now machine.Instant, kind machine.EventKind, sequence int64, out *machine.Effects) {
	out.Events = append(out.Events, machine.Event{
		Kind: kind, Side: e.options.Side, Certainty: machine.Certain, Sequence: e.wire(sequence), Sequence64: sequence,
		At: now, RTT: -1,
	})
}

// wire returns a sequence as on the wire.
func (e *Fragments) wire(sequence int64) uint32 {
	return uint32(sequence) & e.options.Profile.Space().Mask()
}

// Deadline returns no deadline: a packet is sent when it is submitted.
func (e *Fragments) Deadline() (machine.Instant, bool) { return 0, false }

// Inspect draws the fragments of the packets in reassembly, one window each.
func (e *Fragments) Inspect(v *machine.View) {
	v.Reset()
	for _, a := range e.partial {
		if a.left == 0 {
			continue
		}
		w := machine.Window{
			Name: fmt.Sprintf("fragments of packet %d", e.wire(a.sequence)), Next: a.sequence,
			Size: len(a.parts), Grade: machine.Certain,
		}
		for _, part := range a.parts {
			cell := machine.CellEmpty
			if part != nil {
				cell = machine.CellReceived
			}
			w.Cells = append(w.Cells, cell)
		}
		v.Windows = append(v.Windows, w)
	}
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "packets in reassembly", Value: float64(len(v.Windows)), Grade: machine.Certain})
}

// Clone returns an independent copy.
func (e *Fragments) Clone() machine.Endpoint {
	c := *e
	c.partial = slices.Clone(e.partial)
	for i := range c.partial {
		c.partial[i].parts = slices.Clone(c.partial[i].parts) // the contents of a part never change
	}
	c.bytes = nil
	return &c
}
