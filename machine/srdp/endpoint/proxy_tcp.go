package endpoint

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// TCPProxyOptions set up a TCP proxy.
type TCPProxyOptions struct {
	ProxyOptions
	// Repeats and Timeout are those of the packets that the proxy sends for its
	// clients: a packet on the stream does not say. See Request.
	Repeats uint8
	Timeout time.Duration
	// First, Rules, Delays and Limit are those of Options.
	First  uint16
	Rules  srdp.Rules
	Delays srdp.DelayOptions
	Limit  time.Duration
}

// TCPProxy speaks SRDP for clients that send it their packets over streams. The
// retries are its own; the streams carry packets of the proxied form, each after
// its length.
//
//	client ══stream══> proxy ──UDP──> server      data, resent by the proxy
//	client <══stream══ proxy <──UDP── server      its acknowledgement, once
//	client <══stream══ proxy <──UDP── server      data, acknowledged by the proxy
//
// To the server the proxy sends with the client's address as source and with ids
// of its own: clients count their ids each for itself, and the proxy is one
// sender. An acknowledgement goes on to the client under the client's id; no
// other packet is acknowledged on the stream, where nothing is lost.
//
// A client has the address that its first packet names as source. Other sources,
// an address that another open stream has, services that are not implemented and
// packets that are too large are refused: no acknowledgement comes. A stream that
// cannot be framed is closed.
//
// Inputs: Open, Bytes and Close of streams, Arrive of datagrams (machine.Peer
// numbers both), Wake at the Deadline, and Introduce.
type TCPProxy struct {
	options  TCPProxyOptions
	endpoint *Endpoint
	streams  map[machine.Peer]uint32 // number of the client
	clients  map[uint32]*client
	homes    map[wire.Address]uint32 // of the clients, by the address that they have taken
	pending  map[uint32]origin       // what is under way for a client, by its submission
	number   uint32
	counts   ProxyCounts

	packet wire.Packet
	frame  []byte
	bytes  []byte
}

// client is who was or is at the other end of a stream.
type client struct {
	stream  machine.Peer
	address wire.Address
	named   bool
	gone    bool   // its stream has ended: it is kept until nothing is under way for it
	pending int    // packets under way for it
	rest    []byte // of its stream: a packet that has not come whole
}

// origin is where a submission came from.
type origin struct {
	client      uint32
	id          uint16 // the client's
	destination wire.Address
}

// NewTCPProxy returns a proxy that knows nobody.
func NewTCPProxy(o TCPProxyOptions) (*TCPProxy, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	e, err := New(Options{
		Profile: o.Profile, First: o.First, Rules: o.Rules, Delays: o.Delays, Limit: o.Limit, Peers: o.Peers,
	})
	if err != nil {
		return nil, err
	}
	p := &TCPProxy{
		options: o, endpoint: e, streams: map[machine.Peer]uint32{}, clients: map[uint32]*client{},
		homes: map[wire.Address]uint32{}, pending: map[uint32]origin{},
	}
	e.accepts = p.accepts
	return p, nil
}

// accepts reports whether a packet is for a client: data for one that is there,
// acknowledgements also for one that has gone.
func (p *TCPProxy) accepts(pk *wire.Packet) bool {
	c := p.clients[p.homes[pk.Destination]]
	return c != nil && (pk.Ack || !c.gone)
}

// Counts returns the figures since the start.
func (p *TCPProxy) Counts() ProxyCounts { return p.counts }

// Endpoint returns the proxy's own end towards the servers: to look at.
func (p *TCPProxy) Endpoint() *Endpoint { return p.endpoint }

// Address returns the address of a peer, introduced or numbered by the proxy.
func (p *TCPProxy) Address(peer machine.Peer) (wire.Address, bool) { return p.endpoint.Address(peer) }

// Step takes one input: see machine.Endpoint.
func (p *TCPProxy) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Open:
		// The stream's number is taken: no server may get it.
		if _, ok := p.endpoint.meet(in.Peer); !ok {
			out.Send(in.Peer, machine.CloseStream, nil)
			return nil
		}
		p.leave(in.Peer)
		p.number++ // from 1: 0 is nobody
		p.streams[in.Peer], p.clients[p.number] = p.number, &client{stream: in.Peer}
	case machine.Close:
		p.leave(in.Peer)
	case machine.Bytes:
		p.read(now, in, out)
	case machine.Arrive, machine.Wake:
		return p.step(now, in, out)
	case machine.Command:
		if in.Kind != machine.Connect {
			return fmt.Errorf("command %v: expected %v", in.Kind, machine.Connect)
		}
		return p.step(now, in, out)
	default:
		return fmt.Errorf("step: %T, expected a stream, its bytes, a datagram, a command or a wake", in)
	}
	return nil
}

// step has the endpoint take an input, and passes on to the clients what comes
// of it.
func (p *TCPProxy) step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	delivered := len(out.Deliver)
	if err := p.endpoint.Step(now, in, out); err != nil {
		return err
	}
	for i, d := range out.Deliver[delivered:] {
		from := p.endpoint.peers[d.From].address
		to := p.endpoint.taken[i]
		p.write(p.clients[p.homes[to]].stream, &wire.Packet{
			Command: p.options.Profile.DataCommand, ID: uint16(d.ID), Flags: d.Channel, Source: from, Destination: to,
		}, d.Payload, out)
	}
	out.Deliver = out.Deliver[:delivered]
	p.settle(out)
	return nil
}

// settle tells the clients what was acknowledged.
func (p *TCPProxy) settle(out *machine.Effects) {
	for _, s := range p.endpoint.Settled() {
		o, ok := p.pending[s.Submission]
		if !ok {
			continue
		}
		delete(p.pending, s.Submission)
		c := p.clients[o.client]
		c.pending--
		if s.Outcome == srdp.Acknowledged && !c.gone {
			p.write(c.stream, &wire.Packet{
				Command: p.options.Profile.AckCommand, Ack: true, ID: o.id, Source: o.destination, Destination: c.address,
			}, nil, out)
		}
		p.tidy(o.client, c)
	}
}

// tidy forgets a client that is gone and has nothing under way.
func (p *TCPProxy) tidy(n uint32, c *client) {
	if !c.gone || c.pending > 0 {
		return
	}
	if p.homes[c.address] == n {
		delete(p.homes, c.address)
	}
	delete(p.clients, n)
}

// write puts a packet on a stream.
func (p *TCPProxy) write(to machine.Peer, pk *wire.Packet, payload []byte, out *machine.Effects) {
	p.bytes = p.options.Profile.Append(p.bytes[:0], pk, payload)
	frame, err := p.options.Profile.AppendFrame(p.frame[:0], len(p.bytes))
	if err != nil {
		return // longer than a datagram can be
	}
	p.frame = append(frame, p.bytes...)
	p.counts.Forwarded++
	out.Send(to, machine.SendBytes, p.frame)
}

// read takes a piece of a client's stream.
func (p *TCPProxy) read(now machine.Instant, in machine.Bytes, out *machine.Effects) {
	n := p.streams[in.From]
	c := p.clients[n]
	if c == nil {
		return
	}
	left, err := frames(p.options.Profile, c.rest, in.Bytes, func(b []byte) { p.take(now, n, c, b, out) })
	if err != nil {
		out.Send(in.From, machine.CloseStream, nil)
		p.leave(in.From)
		return
	}
	c.rest = left
}

// frames calls do for every whole packet of a stream, of which rest was left
// over, and gives what is left over now in rest's memory.
func frames(p *wire.Profile, rest, more []byte, do func([]byte)) ([]byte, error) {
	b := append(rest, more...)
	at := b
	for {
		packet, left, ok, err := p.NextFrame(at, wire.MaxCall)
		if err != nil {
			return nil, err
		}
		if !ok {
			return append(b[:0], left...), nil
		}
		do(packet)
		at = left
	}
}

// take takes a packet of a client.
func (p *TCPProxy) take(now machine.Instant, n uint32, c *client, b []byte, out *machine.Effects) {
	pk := &p.packet
	if !p.options.Profile.Fits(b, len(b), pk) {
		p.counts.Foreign++
		return
	}
	if pk.Ack {
		return // of a packet that the proxy has acknowledged itself
	}
	if owner := p.clients[p.homes[pk.Source]]; !c.named && (owner == nil || owner.gone) {
		c.address, c.named = pk.Source, true
		p.homes[pk.Source] = n
	}
	if !c.named || c.address != pk.Source {
		p.counts.Refused++
		return
	}
	to, ok := p.endpoint.Peer(pk.Destination)
	if !ok && p.options.Open {
		to = p.endpoint.Next()
		ok = p.endpoint.Introduce(to, pk.Destination) == nil
	}
	if !ok {
		p.counts.Unknown++
		return
	}
	request := srdp.Request{To: to, Bytes: b[pk.PayloadOffset:], Repeats: p.options.Repeats, Timeout: p.options.Timeout,
		Flags: pk.Flags}
	submission, err := p.endpoint.submit(now, request, pk.Source, out)
	if err != nil {
		p.counts.Refused++
		return
	}
	p.counts.Forwarded++
	c.pending++
	p.pending[submission] = origin{n, pk.ID, pk.Destination}
}

// leave ends a client's stream. What is under way for it goes on until it is
// acknowledged or given up, since the stream had taken it over; see Options.Limit
// for destinations that are dead.
func (p *TCPProxy) leave(stream machine.Peer) {
	n, ok := p.streams[stream]
	if !ok {
		return
	}
	delete(p.streams, stream)
	c := p.clients[n]
	c.gone, c.rest = true, nil
	p.tidy(n, c)
}

// Deadline returns the retry time of the first packet of the sent queue.
func (p *TCPProxy) Deadline() (machine.Instant, bool) { return p.endpoint.Deadline() }

// Inspect draws the streams, and the proxy's own end.
func (p *TCPProxy) Inspect(v *machine.View) {
	p.endpoint.Inspect(v)
	t := machine.Table{Name: "streams", Columns: []string{"stream", "client", "under way", "bytes of a packet"}}
	for _, n := range slices.Sorted(maps.Keys(p.streams)) {
		c := p.clients[p.streams[n]]
		row := []string{strconv.Itoa(int(n)), "", strconv.Itoa(c.pending), strconv.Itoa(len(c.rest))}
		if c.named {
			row[1] = c.address.String()
		}
		t.Rows = append(t.Rows, row)
	}
	v.Tables = append(v.Tables, t)
	p.counts.inspect(v)
}

// Clone returns an independent copy.
func (p *TCPProxy) Clone() machine.Endpoint {
	c := *p
	c.endpoint = p.endpoint.clone()
	c.endpoint.accepts = c.accepts
	c.clients = make(map[uint32]*client, len(p.clients))
	for n, x := range p.clients {
		own := *x
		own.rest = bytes.Clone(x.rest)
		c.clients[n] = &own
	}
	c.streams, c.homes, c.pending = maps.Clone(p.streams), maps.Clone(p.homes), maps.Clone(p.pending)
	c.frame, c.bytes = nil, nil
	return &c
}
