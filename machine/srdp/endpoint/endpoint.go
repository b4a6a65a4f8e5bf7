package endpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Options set up a reference endpoint.
type Options struct {
	Profile *wire.Profile // shared with the endpoint's clones: do not change it
	Side    machine.Side
	First   uint16     // id of the first packet
	Rules   srdp.Rules // the zero value means DefaultRules
	Delays  srdp.DelayOptions
	Fault   *Fault // what the endpoint does wrong; nil for nothing

	// Self is the endpoint's own address, in the proxied form. It is the source
	// of what it sends, and the destination of what it accepts.
	Self wire.Address
	// ByProxy sends all packets to the driver's peer Proxy, which is a UDP
	// proxy. The endpoint then reaches its peers through it. Proxied form only.
	ByProxy bool
	Proxy   machine.Peer

	// Limit is how long a packet with Repeats 0 is sent again before it is
	// given up; 0 means without end.
	Limit time.Duration
	// Peers, Outstanding and Waiting bound the memory:
	//
	//   - Peers is the most peers known at a time; 0 means DefaultPeers.
	//   - Outstanding is the most packets in the sent queue; 0 means 16384.
	//     That is half of all ids, and the largest value.
	//   - Waiting is the most ordered packets of one peer that wait for the one
	//     in flight; 0 means 1024. All peers together have at most 65536.
	Peers, Outstanding, Waiting int
}

const (
	mostOutstanding = 1 << 14
	mostWaiting     = 1 << 16
)

// Endpoint is the reference implementation of SRDP. It sends to any number of
// peers with one counter of packet ids, one sent queue and one timer.
//
// Submit is srdp_send: see Request. The other inputs are Arrive, Wake at the
// Deadline, and commands, such as Introduce and what srdp.CancelOf reads.
// Disconnect gives up everything submitted to a peer and forgets what was
// received from it. It also forgets the peer itself, when the endpoint met it
// behind a proxy. Stop gives up all submissions, and forgets what was received
// from all peers.
//
// The endpoint implements two services:
//
//   - SRDP_DONTDUPLICATE, by a list of recently received ids per source
//     (Rules).
//   - SRDP_ORDER, by one ordered packet in flight per receiver, and a queue of
//     those that wait.
//
// A packet gets its id when it is first sent. Ids therefore rise by one in the
// order of sending.
//
// The document's methods have two limits. An ordered packet that was given up
// can still arrive after a later one. A duplicate that arrives after its id has
// left the list is handed over again.
type Endpoint struct {
	options Options
	copies  uint64 // of data packets that arrived
	queue   srdp.Queue
	next64  int64 // unwrapped id of the next packet

	peers  []peer
	names  map[wire.Address]machine.Peer
	hosts  map[[4]byte]int32 // by IP address of peers: index of delays
	delays []srdp.Delay

	departed srdp.Departed

	waiting   int            // ordered packets that wait, of all peers
	free      []machine.Peer // numbers that the endpoint chose for peers and that are free again
	submitted uint32
	settled   []srdp.Settlement
	counts    Counts

	packet wire.Packet // the packet that was read last
	answer wire.Packet // the acknowledgement that is being sent; bytes is its encoding
	bytes  []byte

	// The TCP proxy sets these: it receives for all of its clients.
	accepts func(*wire.Packet) bool
	taken   []wire.Address // destinations of the deliveries of this step
}

// peer is what an endpoint keeps of one of its peers.
type peer struct {
	received srdp.Received
	waiting  []waiting
	newest64 int64 // of the packets from it, unwrapped; meaningful when met is set
	address  wire.Address
	route    machine.Peer // the driver's peer that leads to it
	delay    int32        // index of Endpoint.delays; -1 if it has none
	ordered  bool         // an ordered packet to it is in flight
	met      bool         // data came from it
	named    bool         // address is known
	fixed    bool         // it was introduced, so packets do not change its address or route
}

// waiting is a submission behind an ordered packet in flight.
type waiting struct {
	request    srdp.Request // it owns its Bytes
	source     wire.Address
	submission uint32
}

// Counts are an endpoint's figures since its start.
type Counts struct {
	Packets, Resends, Acked, GaveUp uint64 // of what it sent
	Received, Duplicates            uint64 // copies handed over, and copies dropped
	AckedAgain                      uint64 // acknowledgements of packets not in the queue
	Foreign                         uint64 // datagrams that are no packets of the profile
	Astray                          uint64 // packets for another destination, or of peers beyond the limit
}

// New returns an endpoint that has neither sent nor received. It returns an
// error when the options are not valid.
func New(o Options) (*Endpoint, error) {
	if o.Profile == nil {
		return nil, errors.New("reference endpoint: expected a profile")
	}
	if err := o.Profile.Validate(); err != nil {
		return nil, fmt.Errorf("reference endpoint: profile: %w", err)
	}
	if o.ByProxy && o.Profile.Form != wire.Proxied {
		return nil, fmt.Errorf("reference endpoint: expected the form %v, to go through a proxy, found %v", wire.Proxied,
			o.Profile.Form)
	}
	if o.First&wire.AckMark != 0 {
		return nil, fmt.Errorf("reference endpoint: first id %d, expected at most %d", o.First, wire.IDs.Mask())
	}
	if o.Fault == nil {
		o.Fault = &Fault{}
	}
	if o.Rules == (srdp.Rules{}) {
		o.Rules = srdp.DefaultRules()
	}
	o.Delays = o.Delays.WithDefaults()
	if o.Peers <= 0 {
		o.Peers = DefaultPeers
	}
	if o.Outstanding <= 0 || o.Outstanding > mostOutstanding {
		o.Outstanding = mostOutstanding
	}
	if o.Waiting <= 0 {
		o.Waiting = 1024
	}
	e := &Endpoint{options: o, next64: int64(o.First)}
	if o.ByProxy {
		// Reserve the proxy's number, so that peers behind it get numbers of
		// their own.
		if _, ok := e.meet(o.Proxy); !ok {
			return nil, fmt.Errorf("reference endpoint: proxy is peer %d, expected less than the %d that are allowed",
				o.Proxy, o.Peers)
		}
	}
	return e, nil
}

// Submitted returns the number of the newest submission. Submissions count from
// 1.
func (e *Endpoint) Submitted() uint32 { return e.submitted }

// Settled returns the submissions that ended in the last step. The result is
// valid until the next step.
func (e *Endpoint) Settled() []srdp.Settlement { return e.settled }

// Counts returns the figures since the start.
func (e *Endpoint) Counts() Counts { return e.counts }

// Queue returns the sent queue, to read only.
func (e *Endpoint) Queue() *srdp.Queue { return &e.queue }

// Timeout returns the time between copies that the endpoint would choose now
// for a peer.
func (e *Endpoint) Timeout(to machine.Peer) time.Duration {
	if int(to) < len(e.peers) && e.peers[to].delay >= 0 {
		return e.delays[e.peers[to].delay].Timeout(&e.options.Delays)
	}
	return (&srdp.Delay{}).Timeout(&e.options.Delays)
}

// Address returns the address of a peer. It returns false when the address is
// unknown, as in the direct form without Introduce.
func (e *Endpoint) Address(p machine.Peer) (wire.Address, bool) {
	if int(p) < len(e.peers) {
		return e.peers[p].address, e.peers[p].named
	}
	return wire.Address{}, false
}

// Peer returns the peer with an address. It returns false when there is none.
func (e *Endpoint) Peer(a wire.Address) (machine.Peer, bool) {
	p, ok := e.names[a]
	return p, ok
}

// Next returns a number that no peer has. Behind proxies the endpoint numbers
// peers itself; the driver must then use Next for the next peer that it meets.
func (e *Endpoint) Next() machine.Peer { return machine.Peer(len(e.peers)) }

// Step takes one input: see machine.Endpoint.
func (e *Endpoint) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	e.settled, e.taken = e.settled[:0], e.taken[:0]
	switch in := in.(type) {
	case machine.Wake:
		e.retry(now, out)
	case machine.Arrive:
		e.arrive(now, in, out)
	case machine.Submit:
		_, err := e.submit(now, srdp.RequestOf(in), e.options.Self, out)
		return err
	case machine.Command:
		return e.command(now, in, out)
	default:
		return fmt.Errorf("step: %T, expected a datagram, a submission, a command or a wake", in)
	}
	return nil
}

// Deadline returns the retry time of the first packet in the sent queue. It
// returns false when the queue is empty.
func (e *Endpoint) Deadline() (machine.Instant, bool) {
	if h := e.queue.Head(); h != nil {
		return e.queue.RetryAt(h), true
	}
	return 0, false
}

func (e *Endpoint) command(now machine.Instant, in machine.Command, out *machine.Effects) error {
	switch in.Kind {
	case machine.Connect:
		a, err := introduced(in)
		if err != nil {
			return err
		}
		return e.Introduce(in.Peer, a)
	case machine.Cancel:
		n, err := srdp.CancelOf(in)
		if err != nil {
			return err
		}
		e.cancel(now, func(submission uint32, _ machine.Peer) bool { return submission == n }, out)
	case machine.Disconnect:
		e.forget(now, in.Peer, out)
	case machine.Stop:
		e.cancel(now, func(uint32, machine.Peer) bool { return true }, out)
		for i := range e.peers {
			e.peers[i].received = srdp.Received{}
		}
	default:
		return fmt.Errorf("command %v: expected %v, %v, %v or %v", in.Kind, machine.Connect, machine.Cancel,
			machine.Disconnect, machine.Stop)
	}
	return nil
}

// meet returns the peer with a number, and creates it if it is new. It returns
// false when the number is beyond the limit.
func (e *Endpoint) meet(p machine.Peer) (*peer, bool) {
	if int64(p) >= int64(e.options.Peers) {
		return nil, false
	}
	for int(p) >= len(e.peers) {
		e.peers = append(e.peers, peer{route: machine.Peer(len(e.peers)), delay: -1})
		if e.options.ByProxy {
			e.peers[len(e.peers)-1].route = e.options.Proxy
		}
	}
	return &e.peers[p], true
}

// Introduce sets the address of a peer, as the driver gives it.
func (e *Endpoint) Introduce(p machine.Peer, a wire.Address) error {
	x, ok := e.meet(p)
	if !ok {
		return fmt.Errorf("connect: %w %d, expected less than %d", srdp.ErrUnknownPeer, p, e.options.Peers)
	}
	if e.options.ByProxy && p == e.options.Proxy {
		return fmt.Errorf("connect: peer %d is the proxy, expected another", p)
	}
	e.name(p, x, a)
	x.fixed = true
	return nil
}

func (e *Endpoint) name(p machine.Peer, x *peer, a wire.Address) {
	if e.names == nil {
		e.names, e.hosts = map[wire.Address]machine.Peer{}, map[[4]byte]int32{}
	}
	if x.named {
		delete(e.names, x.address)
	}
	x.address, x.named = a, true
	e.names[a] = p
	if known, ok := e.hosts[a.IP]; ok {
		x.delay = known
	} else if x.delay >= 0 {
		e.hosts[a.IP] = x.delay
	}
}

// delayOf returns the delays that were observed of a peer's address.
func (e *Endpoint) delayOf(x *peer) *srdp.Delay {
	if x.delay < 0 {
		if known, ok := e.hosts[x.address.IP]; ok && x.named {
			x.delay = known
		} else {
			x.delay = int32(len(e.delays))
			e.delays = append(e.delays, srdp.Delay{})
			if x.named {
				e.hosts[x.address.IP] = x.delay
			}
		}
	}
	return &e.delays[x.delay]
}

// Clone returns an independent copy.
func (e *Endpoint) Clone() machine.Endpoint { return e.clone() }

func (e *Endpoint) clone() *Endpoint {
	c := *e
	c.queue = e.queue.Clone()
	c.peers = slices.Clone(e.peers)
	for i := range c.peers {
		c.peers[i].received = e.peers[i].received.Clone()
		c.peers[i].waiting = slices.Clone(e.peers[i].waiting) // an element never changes, so a shallow copy is enough
	}
	c.names, c.hosts, c.delays = maps.Clone(e.names), maps.Clone(e.hosts), slices.Clone(e.delays)
	c.departed, c.free = slices.Clone(e.departed), slices.Clone(e.free)
	c.settled, c.bytes, c.taken = slices.Clone(e.settled), nil, slices.Clone(e.taken)
	return &c
}

// Size returns the approximate bytes of memory that the endpoint uses.
func (e *Endpoint) Size() int {
	n := int(unsafe.Sizeof(*e)) + e.queue.Size() + cap(e.peers)*int(unsafe.Sizeof(peer{})) +
		cap(e.delays)*int(unsafe.Sizeof(srdp.Delay{})) + cap(e.departed)*int(unsafe.Sizeof(srdp.Departure{})) +
		len(e.names)*(2*int(unsafe.Sizeof(wire.Address{}))+8) + len(e.hosts)*16
	for i := range e.peers {
		x := &e.peers[i]
		n += x.received.Size() + cap(x.waiting)*int(unsafe.Sizeof(waiting{}))
		for j := range x.waiting {
			n += cap(x.waiting[j].request.Bytes)
		}
	}
	return n
}
