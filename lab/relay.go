package lab

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// RelayOptions configures a relay.
type RelayOptions struct {
	Settings
	Transport        Transport
	Listen           netip.AddrPort // where clients send to
	Target           netip.AddrPort // the server: besides clients, the only address to send to
	ToServer, ToHere sim.Path       // the paths in the two directions
	// Rebind is after how long each client gets another port towards the server, and again after
	// that; 0 for never. A NAT that forgets a mapping does the same. What the server sends to the
	// old port is lost. It applies to datagrams.
	Rebind time.Duration
	// Tap is called with what passes on both sides of the relay; nil for no
	// tap. It must not keep the bytes.
	Tap func(Observation)
}

// Observation is a datagram, or bytes of a stream, that arrived at the relay or
// left it.
type Observation struct {
	At        machine.Instant
	Transport Transport
	From, To  netip.AddrPort
	Kind      machine.TransmitKind
	Bytes     []byte
}

const (
	maxFlows   = 256     // clients served at a time
	maxHeld    = 1 << 16 // datagrams held back at a time; more are dropped
	flowIdle   = time.Minute
	relayInbox = 1024
	formerMost = 4 // earlier ports of a client that stay open, as a NAT answers for none
)

// Relay carries datagrams or streams between clients and a server, as a network
// would. It uses two paths of the simulation. Each client has its own address
// towards the server.
type Relay struct {
	options RelayOptions
	conn    *net.UDPConn // towards clients
	tcp     *tcpRelay    // used instead of conn
	inbox   chan relayed
	gone    chan struct{}
	readers sync.WaitGroup
	flows   map[netip.AddrPort]*relayFlow
	count   int // flows so far
	held    agenda.Agenda[machine.Instant, relayed]
	counts  [2]relayCounts
}

// relayCounts are the figures of one direction.
type relayCounts struct{ in, out, lost, doubled, refused uint64 }

var directionWords = [2]string{"c2s", "s2c"}

// relayFlow is one client's path to the server and back.
type relayFlow struct {
	number int
	client netip.AddrPort
	up     *net.UDPConn
	own    netip.AddrPort // the relay's address towards the server
	former []*net.UDPConn // up to formerMost ones before it
	paths  [2]*sim.Impairment
	heard  machine.Instant
}

// relayed is a datagram in flight. A nil flow means that the client's flow is
// not looked up yet.
type relayed struct {
	flow   *relayFlow
	client netip.AddrPort
	back   int            // 0 towards the server, 1 towards the client
	to     netip.AddrPort // the relay's address that the server sent it to
	bytes  []byte
}

// NewRelay opens the relay's socket. Run uses it and closes it.
func NewRelay(o RelayOptions) (*Relay, error) {
	if err := Sendable(o.Target); err != nil {
		return nil, err
	}
	r := &Relay{
		options: o, inbox: make(chan relayed, relayInbox), gone: make(chan struct{}),
		flows: map[netip.AddrPort]*relayFlow{},
	}
	if o.Transport == TCP {
		tcp, err := newTCPRelay(r)
		r.tcp = tcp
		return r, err
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(o.Listen))
	r.conn = conn
	return r, err
}

// Addr returns the address that clients send to.
func (r *Relay) Addr() netip.AddrPort {
	if r.tcp != nil {
		return r.tcp.addr()
	}
	return plain(r.conn.LocalAddr().(*net.UDPAddr).AddrPort())
}

// impair returns the two paths of flow n. Those of the first flow equal the
// simulation's paths between "client" and "server".
func (r *Relay) impair(n int,
	impair func(p sim.Path, seed uint64, from, to string) *sim.Impairment,
) [2]*sim.Impairment {
	client := "client"
	if n > 0 {
		client = fmt.Sprintf("client%d", n+1)
	}
	o := &r.options
	return [2]*sim.Impairment{impair(o.ToServer, o.Seed, client, "server"), impair(o.ToHere, o.Seed, "server", client)}
}

// Run runs the relay until the context ends.
func (r *Relay) Run(ctx context.Context) error {
	if r.tcp != nil {
		return r.tcp.run(ctx)
	}
	defer r.end()
	r.readers.Go(func() {
		readUDP(r.conn, func(from netip.AddrPort, b []byte) bool { return r.post(relayed{client: from, bytes: b}) })
	})
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	sweep := time.NewTicker(flowIdle / 4)
	defer sweep.Stop()
	var moves <-chan time.Time
	if r.options.Rebind > 0 {
		moving := time.NewTicker(r.options.Rebind)
		defer moving.Stop()
		moves = moving.C
	}
	for {
		r.release()
		if due, ok := r.held.Next(); ok {
			timer.Reset(r.options.Clock.until(due))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return r.options.Log.Flush()
		case d := <-r.inbox:
			r.take(d)
		case <-timer.C:
		case <-sweep.C:
			r.sweep()
		case <-moves:
			for _, f := range r.flows {
				r.rebind(f)
			}
		}
	}
}

func (r *Relay) post(d relayed) bool {
	select {
	case r.inbox <- d:
		return true
	case <-r.gone:
		return false
	}
}

// end closes all sockets and logs the figures.
func (r *Relay) end() {
	close(r.gone)
	_ = r.conn.Close() // no data is buffered in it
	for _, f := range r.flows {
		f.close()
	}
	r.readers.Wait()
	for i, c := range r.counts {
		r.options.Log.Tell(r.options.Clock.Now(), "relay", sim.Line{
			"event": "final", "dir": directionWords[i], "datagrams_in": c.in, "datagrams_out": c.out,
			"dropped": c.lost, "duplicated": c.doubled, "refused": c.refused,
		})
	}
}

// take draws the fate of a datagram that arrived.
func (r *Relay) take(d relayed) {
	now := r.options.Clock.Now()
	if d.flow == nil {
		if d.flow = r.flow(d.client, now); d.flow == nil {
			r.counts[0].refused++
			return
		}
	}
	f, c := d.flow, &r.counts[d.back]
	f.heard = now
	c.in++
	if d.back == 0 {
		r.see(now, f.client, r.Addr(), d.bytes)
	} else {
		r.see(now, r.options.Target, d.to, d.bytes)
		if d.to != f.own {
			c.lost++
			r.tell(now, "dropped", d)
			return
		}
	}
	fate := f.paths[d.back].Datagram(now, len(d.bytes))
	if fate.Lost || fate.Dropped {
		c.lost++
		r.tell(now, "dropped", d)
	} else {
		r.hold(d, fate.Leaves.Add(fate.Travel))
	}
	if fate.Twice {
		c.doubled++
		r.tell(now, "duplicated", d)
		r.hold(d, fate.Leaves.Add(fate.CopyTravel))
	}
}

func (r *Relay) tell(now machine.Instant, event string, d relayed) {
	r.options.Log.Tell(now, "relay", sim.Line{
		"event": event, "dir": directionWords[d.back], "conn": d.flow.number, "udp_bytes": len(d.bytes),
		"head": hex.EncodeToString(d.bytes[:min(len(d.bytes), 12)]),
	})
}

func (r *Relay) hold(d relayed, at machine.Instant) {
	if r.held.Len() >= maxHeld {
		r.counts[d.back].refused++
		return
	}
	r.held.Add(at, d)
}

// release sends everything that is due.
func (r *Relay) release() {
	for {
		if due, ok := r.held.Next(); !ok || due > r.options.Clock.Now() {
			return
		}
		d := r.held.Take()
		f := d.flow
		now := r.options.Clock.Now()
		var err error
		if d.back == 0 {
			_, err = f.up.Write(d.bytes)
			r.see(now, f.own, r.options.Target, d.bytes)
		} else {
			_, err = r.conn.WriteToUDPAddrPort(d.bytes, f.client)
			r.see(now, r.Addr(), f.client, d.bytes)
		}
		if err != nil {
			r.counts[d.back].refused++ // as when a network loses it: no socket listens there
			continue
		}
		r.counts[d.back].out++
	}
}

func (r *Relay) see(at machine.Instant, from, to netip.AddrPort, b []byte) {
	if r.options.Tap != nil {
		r.options.Tap(Observation{At: at, From: from, To: to, Kind: machine.SendDatagram, Bytes: b})
	}
}

// flow returns a client's flow. It creates a flow for a new client if that is
// allowed, and otherwise returns nil.
func (r *Relay) flow(client netip.AddrPort, now machine.Instant) *relayFlow {
	if f := r.flows[client]; f != nil {
		return f
	}
	if len(r.flows) >= maxFlows || !r.options.allows(client.Addr()) {
		return nil
	}
	f := &relayFlow{number: r.count, client: client}
	if !r.dial(f) {
		return nil
	}
	f.paths = r.impair(f.number, sim.Impair)
	r.count++
	r.flows[client] = f
	r.tellFlow(now, f.number, client, f.own)
	return f
}

// dial gives a flow a port of its own towards the server. It reports whether the system has one.
func (r *Relay) dial(f *relayFlow) bool {
	// The socket is connected: the kernel accepts only what the server sends.
	up, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(r.source()), net.UDPAddrFromAddrPort(r.options.Target))
	if err != nil {
		return false
	}
	own := plain(up.LocalAddr().(*net.UDPAddr).AddrPort())
	f.up, f.own = up, own
	r.readers.Go(func() {
		readUDP(up, func(_ netip.AddrPort, b []byte) bool { return r.post(relayed{flow: f, back: 1, to: own, bytes: b}) })
	})
	return true
}

// rebind gives a flow another port towards the server.
func (r *Relay) rebind(f *relayFlow) {
	former := f.up
	if !r.dial(f) {
		return
	}
	if f.former = append(f.former, former); len(f.former) > formerMost {
		_ = f.former[0].Close() // no data is buffered in it
		f.former = f.former[1:]
	}
	r.tellFlow(r.options.Clock.Now(), f.number, f.client, f.own)
}

// close closes the sockets of a flow. No data is buffered in them.
func (f *relayFlow) close() {
	_ = f.up.Close()
	for _, up := range f.former {
		_ = up.Close()
	}
}

// source returns the relay's address towards the server, with any port. When
// both sides are on loopback, it is the address that clients use, so that the
// relay looks like one machine. Otherwise the system chooses it.
func (r *Relay) source() netip.AddrPort {
	listen := r.options.Listen.Addr()
	if listen.IsLoopback() && r.options.Target.Addr().IsLoopback() && listen.Is4() == r.options.Target.Addr().Is4() {
		return netip.AddrPortFrom(listen, 0)
	}
	own, err := sourceFor(r.options.Target)
	if err != nil {
		return netip.AddrPort{} // the dial will fail for the same reason
	}
	return own
}

func (r *Relay) tellFlow(now machine.Instant, n int, client, own netip.AddrPort) {
	r.options.Log.Tell(now, "relay",
		sim.Line{"event": "flow", "flow": n, "client": client.String(), "relay_toward_server": own.String()})
}

// sweep removes flows that were silent in both directions.
func (r *Relay) sweep() {
	now := r.options.Clock.Now()
	for client, f := range r.flows {
		if now.Sub(f.heard) > flowIdle {
			f.close()
			delete(r.flows, client)
		}
	}
}
