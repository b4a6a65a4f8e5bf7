package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// ErrNoStream is the error of a request while no stream to the proxy is open.
var ErrNoStream = errors.New("no stream to the proxy")

// StreamOptions configures a client that uses a TCP proxy instead of SRDP over
// UDP.
type StreamOptions struct {
	Profile *wire.Profile // in the proxied form; shared with clones: do not change it
	Side    machine.Side
	First   uint16       // id of the first packet
	Self    wire.Address // the source address of what it sends
	Proxy   machine.Peer // the driver's peer that is the TCP proxy
	Peers   int          // most peers; 0 means DefaultPeers
}

// Stream is a client of a TCP proxy. It sends packets of the proxied form over
// one stream. The proxy queues and resends them. A submission is in flight
// until the proxy acknowledges it. The proxy does not report what it gives up.
//
// The inputs are:
//
//   - Command Connect without a payload asks for the stream; Disconnect ends
//     it.
//   - Open, Bytes and Close report what happens to the stream.
//   - Introduce names a peer.
//   - Submit is srdp_send (Request). The proxy decides Repeats and Timeout.
type Stream struct {
	options StreamOptions
	book    book
	next64  int64
	sent    srdp.Queue // never due: the proxy has the timer
	open    bool
	rest    []byte
	counts  Counts

	packet wire.Packet
	bytes  []byte
	frame  []byte
}

// NewStream returns a client whose stream is not open. It returns an error when
// the options are not valid.
func NewStream(o StreamOptions) (*Stream, error) {
	if err := (&ProxyOptions{Profile: o.Profile}).check(); err != nil {
		return nil, fmt.Errorf("client of a %w", err)
	}
	if o.First&wire.AckMark != 0 {
		return nil, fmt.Errorf("client of a proxy: first id %d, expected at most %d", o.First, wire.IDs.Mask())
	}
	s := &Stream{options: o, book: newBook(o.Peers), next64: int64(o.First)}
	s.book.met(o.Proxy)
	return s, nil
}

// Counts returns the figures since the start.
func (s *Stream) Counts() Counts { return s.counts }

// Connected reports whether the stream is open.
func (s *Stream) Connected() bool { return s.open }

// CanSubmit reports whether there is room for a submission.
func (s *Stream) CanSubmit(machine.Peer, uint8) bool { return s.open && s.sent.Len() < mostOutstanding }

// Address returns the address of a peer. It returns false when there is none.
func (s *Stream) Address(p machine.Peer) (wire.Address, bool) { return s.book.address(p) }

// Step takes one input: see machine.Endpoint.
func (s *Stream) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Wake:
	case machine.Arrive:
		s.counts.Foreign++ // everything for this client comes by the stream
	case machine.Open:
		// The proxy does not report what was in flight on an earlier stream.
		s.open, s.rest, s.sent = true, s.rest[:0], srdp.Queue{}
	case machine.Close:
		s.open = false
	case machine.Bytes:
		return s.read(now, in.Bytes, out)
	case machine.Submit:
		return s.submit(now, srdp.RequestOf(in), out)
	case machine.Command:
		return s.command(in, out)
	default:
		return fmt.Errorf("step: %T, expected a stream, its bytes, a submission, a command or a wake", in)
	}
	return nil
}

func (s *Stream) command(in machine.Command, out *machine.Effects) error {
	switch {
	case in.Kind == machine.Connect && len(in.Payload) == 0:
		out.Send(s.options.Proxy, machine.OpenStream, nil)
	case in.Kind == machine.Connect:
		a, err := introduced(in)
		if err != nil {
			return err
		}
		return s.book.introduce(in.Peer, a)
	case in.Kind == machine.Disconnect:
		s.open = false
		out.Send(s.options.Proxy, machine.CloseStream, nil)
	default:
		return fmt.Errorf("command %v: expected %v or %v", in.Kind, machine.Connect, machine.Disconnect)
	}
	return nil
}

func (s *Stream) submit(now machine.Instant, r srdp.Request, out *machine.Effects) error {
	p := s.options.Profile
	if !s.open {
		return fmt.Errorf("submit: %w", ErrNoStream)
	}
	if unknown := p.UnknownFlags(r.Flags); unknown != 0 {
		return fmt.Errorf("submit: flags %#02x: %w: expected none beside %#02x", r.Flags, srdp.ErrNotImplemented,
			p.DontDuplicate|p.Order)
	}
	if most := p.MaxPayload(); len(r.Bytes) > most {
		return fmt.Errorf("submit: %w: %d, expected at most %d in the %v form", srdp.ErrTooLarge, len(r.Bytes), most, p.Form)
	}
	to, ok := s.book.address(r.To)
	if !ok {
		return fmt.Errorf("submit: %w %d: expected one that was introduced", srdp.ErrUnknownPeer, r.To)
	}
	if s.sent.Len() >= mostOutstanding {
		return fmt.Errorf("submit: %w: %d under way", srdp.ErrFull, s.sent.Len())
	}
	var e *srdp.Sent
	for e == nil {
		e = s.sent.Enter(uint16(s.next64&int64(wire.IDs.Mask())), now, 0)
		s.next64++
	}
	e.ID64, e.Peer, e.Flags = s.next64-1, r.To, r.Flags
	pk := wire.Packet{Command: p.DataCommand, ID: e.ID, Flags: r.Flags, Source: s.options.Self, Destination: to}
	s.bytes = p.Append(s.bytes[:0], &pk, r.Bytes)
	frame, err := p.AppendFrame(s.frame[:0], len(s.bytes))
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	s.frame = append(frame, s.bytes...)
	s.counts.Packets++
	out.Send(s.options.Proxy, machine.SendBytes, s.frame)
	s.report(now, machine.Event{
		Kind: machine.EventSent, Sequence: uint32(e.ID), Sequence64: e.ID64, Peer: r.To,
		Channel: r.Flags,
	}, out)
	return nil
}

// read takes a piece of the stream. It closes a stream that it cannot frame.
func (s *Stream) read(now machine.Instant, b []byte, out *machine.Effects) error {
	if !s.open {
		return nil
	}
	left, err := frames(s.options.Profile, s.rest, b, func(b []byte) { s.take(now, b, out) })
	if err != nil {
		s.open, s.rest = false, s.rest[:0]
		out.Send(s.options.Proxy, machine.CloseStream, nil)
		return nil // bytes from the network are no error of the driver
	}
	s.rest = left
	return nil
}

func (s *Stream) take(now machine.Instant, b []byte, out *machine.Effects) {
	p, pk := s.options.Profile, &s.packet
	if !p.Fits(b, len(b), pk) {
		s.counts.Foreign++
		return
	}
	if pk.Destination != s.options.Self {
		s.counts.Astray++
		return
	}
	if pk.Ack {
		from, known := s.book.find(pk.Source)
		e := s.sent.Find(pk.ID)
		if !known || e == nil || e.Peer != from {
			s.counts.AckedAgain++
			s.report(now, machine.Event{
				Kind: srdp.EventAckedAgain, Sequence: uint32(pk.ID),
				Sequence64: wire.IDs.Unwrap(uint32(pk.ID), s.next64-1), Peer: from,
			}, out)
			return
		}
		s.counts.Acked++
		// The time includes the proxy's retries, so it is no round trip.
		s.report(now, machine.Event{
			Kind: machine.EventAcked, Sequence: uint32(pk.ID), Sequence64: e.ID64, Peer: from,
			Channel: e.Flags,
		}, out)
		s.sent.Remove(e)
		return
	}
	from, ok := s.book.number(pk.Source)
	if !ok {
		s.counts.Astray++
		return
	}
	s.counts.Received++
	s.report(now, machine.Event{
		Kind: machine.EventReceived, Sequence: uint32(pk.ID), Sequence64: int64(pk.ID), Peer: from,
		Channel: pk.Flags,
	}, out)
	out.Hand(machine.Delivery{From: from, Channel: pk.Flags, ID: uint64(pk.ID), Payload: b[pk.PayloadOffset:]})
}

// report appends an event, with the fields that all events of the endpoint
// share.
func (s *Stream) report(now machine.Instant, event machine.Event, out *machine.Effects) {
	event.Side, event.Certainty, event.At, event.RTT = s.options.Side, machine.Certain, now, -1
	out.Events = append(out.Events, event)
}

// Deadline returns false: the proxy has the timer.
func (s *Stream) Deadline() (machine.Instant, bool) { return 0, false }

// Inspect draws what is in flight, and the figures.
func (s *Stream) Inspect(v *machine.View) {
	v.Reset()
	t := machine.Table{Name: "under way", Columns: []string{"id", "to", "sent ms"}}
	s.sent.InOrder(func(e *srdp.Sent) bool {
		t.Rows = append(t.Rows, []string{strconv.Itoa(int(e.ID)), strconv.Itoa(int(e.Peer)), ms(int64(e.FirstAt))})
		return true
	})
	v.Tables = append(v.Tables, t)
	s.counts.inspect(v)
}

// Clone returns an independent copy.
func (s *Stream) Clone() machine.Endpoint {
	c := *s
	c.book, c.sent, c.rest = s.book.clone(), s.sent.Clone(), bytes.Clone(s.rest)
	c.bytes, c.frame = nil, nil
	return &c
}
