package endpoint

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// ProxyOptions configures a proxy.
type ProxyOptions struct {
	Profile *wire.Profile // in the proxied form; shared with clones: do not change it
	// Peers is the most addresses known at a time; 0 means DefaultPeers.
	Peers int
	// Open also forwards to addresses that are neither introduced nor learned.
	// The proxy then numbers them, and Address returns where the driver must
	// send. An open proxy sends wherever a stranger asks: keep it off the open
	// network.
	Open bool
}

// UDPProxy forwards SRDP packets by their destination address, as the
// document's section on proxies describes. It reads the addresses only, changes
// nothing, and remembers only which peer leads to an address. The clients queue
// and resend.
//
//	client ──UDP──> proxy ──UDP──> server       data: destination is the server
//	client <──UDP── proxy <──UDP── server       its acknowledgement: destination is the client
//
// The inputs are Arrive and Introduce. The proxy learns other addresses from
// the source in the packets.
type UDPProxy struct {
	options ProxyOptions
	book    book
	counts  ProxyCounts
	packet  wire.Packet
}

// ProxyCounts are a proxy's figures since its start.
type ProxyCounts struct {
	Forwarded uint64
	Unknown   uint64 // packets for an address that the proxy does not know
	Foreign   uint64 // datagrams that are no packets of the profile
	Refused   uint64 // packets of clients that the proxy refused
}

// NewUDPProxy returns a proxy without known addresses. It returns an error when
// the options are not valid.
func NewUDPProxy(o ProxyOptions) (*UDPProxy, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &UDPProxy{options: o, book: newBook(o.Peers)}, nil
}

func (o *ProxyOptions) check() error {
	if o.Profile == nil {
		return errors.New("proxy: expected a profile")
	}
	if err := o.Profile.Validate(); err != nil {
		return fmt.Errorf("proxy: profile: %w", err)
	}
	if o.Profile.Form != wire.Proxied {
		return fmt.Errorf("proxy: expected the form %v, found %v: a proxy routes by the addresses", wire.Proxied,
			o.Profile.Form)
	}
	return nil
}

// Counts returns the figures since the start.
func (p *UDPProxy) Counts() ProxyCounts { return p.counts }

// Address returns the address of a peer that was introduced, or that the proxy
// numbered. It returns false when there is none.
func (p *UDPProxy) Address(peer machine.Peer) (wire.Address, bool) { return p.book.address(peer) }

// Next returns a number that no peer has, for the driver's next peer.
func (p *UDPProxy) Next() machine.Peer { return p.book.next }

// Step takes one input: see machine.Endpoint.
func (p *UDPProxy) Step(_ machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Arrive:
		p.forward(in, out)
	case machine.Wake:
	case machine.Command:
		if in.Kind != machine.Connect {
			return fmt.Errorf("command %v: expected %v", in.Kind, machine.Connect)
		}
		a, err := introduced(in)
		if err != nil {
			return err
		}
		return p.book.introduce(in.Peer, a)
	default:
		return fmt.Errorf("step: %T, expected a datagram, a command or a wake", in)
	}
	return nil
}

func (p *UDPProxy) forward(in machine.Arrive, out *machine.Effects) {
	pk := &p.packet
	if !p.options.Profile.Fits(in.Bytes, len(in.Bytes), pk) {
		p.counts.Foreign++
		return
	}
	p.book.learn(pk.Source, in.From)
	to, ok := p.book.find(pk.Destination)
	if !ok && p.options.Open {
		to, ok = p.book.number(pk.Destination)
	}
	if !ok {
		p.counts.Unknown++
		return
	}
	p.counts.Forwarded++
	out.Send(to, machine.SendDatagram, in.Bytes)
}

// Deadline returns false: a proxy keeps no packets.
func (p *UDPProxy) Deadline() (machine.Instant, bool) { return 0, false }

// Inspect draws the known addresses and the figures.
func (p *UDPProxy) Inspect(v *machine.View) {
	v.Reset()
	t := machine.Table{Name: "routes", Columns: []string{"address", "peer", "how"}}
	for _, a := range p.book.sorted() {
		r := p.book.routes[a]
		how := "learned"
		if r.fixed {
			how = "introduced"
		}
		t.Rows = append(t.Rows, []string{a.String(), strconv.Itoa(int(r.peer)), how})
	}
	v.Tables = append(v.Tables, t)
	p.counts.inspect(v)
}

func (c *ProxyCounts) inspect(v *machine.View) {
	for _, g := range []machine.Gauge{
		{Name: "forwarded", Value: float64(c.Forwarded), Unit: "packets"},
		{Name: "unknown", Value: float64(c.Unknown), Unit: "packets"},
		{Name: "foreign", Value: float64(c.Foreign), Unit: "datagrams"},
		{Name: "refused", Value: float64(c.Refused), Unit: "packets"},
	} {
		g.Grade = machine.Certain
		v.Gauges = append(v.Gauges, g)
	}
}

// Clone returns an independent copy.
func (p *UDPProxy) Clone() machine.Endpoint {
	c := *p
	c.book = p.book.clone()
	return &c
}
