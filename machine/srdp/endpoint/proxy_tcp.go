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

// TCPProxyOptions configures a TCP proxy.
type TCPProxyOptions struct {
	ProxyOptions
	// Repeats and Timeout apply to the packets that the proxy sends for its
	// clients, since a packet on the stream has neither. See Request.
	Repeats uint8
	Timeout time.Duration
	// First, Rules, Delays and Limit are as in Options.
	First  uint16
	Rules  srdp.Rules
	Delays srdp.DelayOptions
	Limit  time.Duration
}

// TCPProxy speaks SRDP for clients that send it their packets over streams. The
// proxy does the retries. The streams carry packets of the proxied form, each
// after its length.
//
//	client ══stream══> proxy ──UDP──> server      data, resent by the proxy
//	client <══stream══ proxy <──UDP── server      its acknowledgement, once
//	client <══stream══ proxy <──UDP── server      data, acknowledged by the proxy
//
// Towards the server, the proxy uses the client's address as source and its own
// ids. Clients count their ids separately, but the proxy is one sender. It
// passes an acknowledgement on to the client under the client's id. It
// acknowledges no other packet on the stream, since a stream loses nothing.
//
// The first packet of a client names its address as the source. The proxy
// refuses other sources, an address that another open stream has, unknown
// services, and packets that are too large. It sends no acknowledgement for
// what it refuses. It closes a stream that it cannot frame.
//
// The inputs are Open, Bytes and Close of streams, Arrive of datagrams, Wake at
// the Deadline, and Introduce. machine.Peer numbers both streams and datagram
// peers.
type TCPProxy struct {
	options  TCPProxyOptions
	endpoint *Endpoint
	streams  map[machine.Peer]uint32 // number of the client at the other end
	clients  map[uint32]*client
	homes    map[wire.Address]uint32 // client by the address that it has taken
	pending  map[uint32]origin       // what is in flight for a client, by its submission
	number   uint32
	counts   ProxyCounts

	packet wire.Packet
	frame  []byte
	bytes  []byte
}

// client is the program at the other end of a stream, during the stream and
// after.
type client struct {
	stream  machine.Peer
	address wire.Address
	named   bool
	gone    bool   // its stream has ended; it is kept until nothing is in flight for it
	pending int    // packets in flight for it
	rest    []byte // of its stream: the incomplete packet at its end
}

// origin is the client's packet that caused a submission.
type origin struct {
	client      uint32
	id          uint16 // the client's id
	destination wire.Address
}

// NewTCPProxy returns a proxy without clients. It returns an error when the
// options are not valid.
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

// accepts reports whether a packet is for a client. Data is for a connected
// client only; acknowledgements are also for one that has gone.
func (p *TCPProxy) accepts(pk *wire.Packet) bool {
	c := p.clients[p.homes[pk.Destination]]
	return c != nil && (pk.Ack || !c.gone)
}

// Counts returns the figures since the start.
func (p *TCPProxy) Counts() ProxyCounts { return p.counts }

// Endpoint returns the proxy's own end towards the servers, to read only.
func (p *TCPProxy) Endpoint() *Endpoint { return p.endpoint }

// Address returns the address of a peer that was introduced, or that the proxy
// numbered. It returns false when there is none.
func (p *TCPProxy) Address(peer machine.Peer) (wire.Address, bool) { return p.endpoint.Address(peer) }

// Step takes one input: see machine.Endpoint.
func (p *TCPProxy) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Open:
		// Reserve the stream's number: no server may get it.
		if _, ok := p.endpoint.meet(in.Peer); !ok {
			out.Send(in.Peer, machine.CloseStream, nil)
			return nil
		}
		p.leave(in.Peer)
		p.number++ // starts at 1: 0 means no client
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

// step passes an input to the endpoint, and passes the results on to the
// clients.
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

// settle sends the clients the acknowledgements of their packets.
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

// tidy forgets a client that is gone and has nothing in flight.
func (p *TCPProxy) tidy(n uint32, c *client) {
	if !c.gone || c.pending > 0 {
		return
	}
	if p.homes[c.address] == n {
		delete(p.homes, c.address)
	}
	delete(p.clients, n)
}

// write sends a packet on a stream.
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

// frames calls do for every complete packet of a stream. rest is what the last
// call left over. It returns the new rest in the same memory, and an error when
// the stream cannot be framed.
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
		return // it answers a packet that the proxy has acknowledged itself
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
	request := srdp.Request{
		To: to, Bytes: b[pk.PayloadOffset:], Repeats: p.options.Repeats, Timeout: p.options.Timeout,
		Flags: pk.Flags,
	}
	submission, err := p.endpoint.submit(now, request, pk.Source, out)
	if err != nil {
		p.counts.Refused++
		return
	}
	p.counts.Forwarded++
	c.pending++
	p.pending[submission] = origin{n, pk.ID, pk.Destination}
}

// leave ends a client's stream. Packets in flight for the client stay until
// they are acknowledged or given up: the proxy has accepted them. Options.Limit
// covers dead destinations.
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

// Deadline returns the retry time of the first packet in the sent queue. It
// returns false when the queue is empty.
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
