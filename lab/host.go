package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Settings are what the parts of a run have in common.
type Settings struct {
	Clock   Clock
	Seed    uint64
	Log     *Log     // nil for none
	Journal *Journal // nil for none
	// Allow reports whether a stranger may be answered; nil is Nearby.
	Allow func(netip.Addr) bool
}

func (s *Settings) allows(addr netip.Addr) bool {
	if s.Allow == nil {
		return Nearby(addr)
	}
	return s.Allow(addr)
}

// HostOptions set up a host.
type HostOptions struct {
	Settings
	Kit  Kit
	Role Role
	// N tells clients apart; a server is 0.
	N int
	// Transport is UDP or TCP.
	Transport Transport
	// Listen is where a server, or a proxy, takes its clients. Connect is where a
	// client finds its server, the only address that it sends to, and a proxy too.
	Listen, Connect netip.AddrPort
	// Duration is how long the application runs, counted from the start of the
	// run; 0 for as long as it has something to do.
	Duration time.Duration
}

const (
	maxPeers   = 1 << 14 // strangers that a server remembers in one run
	maxWaiting = 1 << 12 // datagrams that are read in one frame
)

// Host runs the endpoints of one role at one address: one goroutine, which owns
// them all.
type Host struct {
	options HostOptions
	rhythm  Rhythm
	network network
	inbox   chan arrival
	done    chan struct{} // closed once the application has nothing more to do

	peers   []peer        // by number in order of appearance
	known   map[place]int // index in peers
	turned  int           // strangers that were turned away
	ends    []*running
	waiting []arrival // what came since the last frame
	random  *rand.Rand
	over    bool
	gone    chan struct{} // closed when nobody reads the inbox any more
}

// place is where a peer speaks from; the ports of UDP and TCP are not the same.
type place struct {
	addr   netip.AddrPort
	stream bool
}

// peer is a remote end.
type peer struct {
	addr   netip.AddrPort
	stream *stream         // its standing stream; nil for none
	end    *running        // who speaks with it
	number machine.Peer    // what that end calls it
	heard  machine.Instant // when it spoke last
	let    bool            // it was silent for too long and is answered no more
}

// running is an end at work.
type running struct {
	*End
	n         int // among those of its role
	name      string
	label     *sim.Host // what sim's facts name
	out       machine.Effects
	peers     []int // indexes in Host.peers, by the endpoint's numbers
	delivered []machine.Delivery
	random    *rand.Rand
	turns     int
	idle      bool // its application has nothing more to do
	let       bool // its only peer is gone
	waking    *time.Timer
	counts    Counts
}

// Counts are what an endpoint did: what it put on the network, and its events of
// each kind.
type Counts struct {
	Name   string
	N      int
	Sent   uint64                        // datagrams and pieces of streams
	Events [machine.EventProtocol]uint64 // by the shared kinds
}

// arrival is what a socket gave.
type arrival struct {
	from   netip.AddrPort
	stream *stream
	kind   arrivalKind
	bytes  []byte
}

type arrivalKind uint8

const (
	arrivedDatagram arrivalKind = iota
	arrivedOpen
	arrivedBytes
	arrivedClose
	arrivedDeadline // of an event-driven host: a timer has come
)

// NewHost opens the host's socket. Run has it work, and closes it.
func NewHost(o HostOptions) (*Host, error) {
	h := &Host{
		options: o, rhythm: o.Kit.Rhythm(o.Role), known: map[place]int{},
		inbox: make(chan arrival, 1024), done: make(chan struct{}), gone: make(chan struct{}),
		random: sim.Rand(o.Seed, "host "+o.Kit.Name(o.Role, o.N)),
	}
	if h.rhythm.Frame <= 0 {
		h.rhythm.Frame = time.Second / 60
	}
	if o.Role != Server {
		if err := Sendable(o.Connect); err != nil {
			return nil, err
		}
	}
	network, err := h.open()
	if err != nil {
		return nil, err
	}
	h.network = network
	o.Journal.place(journalHost(o.Role, o.N), h.Addr())
	return h, nil
}

// Addr gives the host's own address. A client over TCP has none before it has
// connected.
func (h *Host) Addr() netip.AddrPort { return h.network.addr() }

// Done is closed once the applications have nothing more to do.
func (h *Host) Done() <-chan struct{} { return h.done }

// Run has the host work until the context ends, or one of its endpoints refuses
// what it is asked.
func (h *Host) Run(ctx context.Context) (err error) {
	defer func() {
		close(h.gone)
		h.network.close()
		for _, e := range h.ends {
			if !e.let {
				h.tell(e, h.options.Clock.Now(), e.Log.Final())
			}
		}
	}()
	h.network.start()
	if h.options.Role == Client {
		if err := h.begin(h.options.N, h.meet(place{h.options.Connect, h.options.Transport != UDP})); err != nil {
			return err
		}
	} else if h.rhythm.Shared {
		e, err := h.add(h.options.N)
		if err != nil {
			return err
		}
		if h.options.Role == Proxy {
			h.join(e, h.meet(place{h.options.Connect, false}))
		}
	}
	due := h.options.Clock.Now()
	frame := time.NewTimer(0)
	defer frame.Stop()
	for {
		inbox := h.inbox
		if len(h.waiting) >= maxWaiting {
			inbox = nil // what more there is waits in the socket, or is lost
		}
		select {
		case <-ctx.Done():
			return h.leave()
		case a := <-inbox:
			if !h.rhythm.EventDriven {
				h.waiting = append(h.waiting, a)
				continue
			}
			err = h.take(a)
		case <-frame.C:
			err = h.frame()
			// From when it was due, so that lateness does not add up; but a machine
			// that slept does not owe the frames that it missed.
			due = max(due.Add(h.rhythm.Frame), h.options.Clock.Now().Add(-h.rhythm.Frame))
			frame.Reset(h.options.Clock.until(due))
		}
		if err != nil {
			return err
		}
	}
}

// Counts tells what each endpoint did; once Run has ended.
func (h *Host) Counts() (list []Counts) {
	for _, e := range h.ends {
		c := e.counts
		c.Name, c.N = e.name, e.n
		list = append(list, c)
	}
	return list
}

// meet gives the index of the peer at a place, a new one if need be.
func (h *Host) meet(at place) int {
	if i, ok := h.known[at]; ok {
		return i
	}
	h.peers = append(h.peers, peer{addr: at.addr, heard: h.options.Clock.Now()})
	h.known[at] = len(h.peers) - 1
	return len(h.peers) - 1
}

// add makes the nth endpoint of the host's role.
func (h *Host) add(n int) (*running, error) {
	o := &h.options
	end, err := o.Kit.End(o.Role, n, h.Addr())
	if err != nil {
		return nil, err
	}
	e := &running{End: end, n: n, name: o.Kit.Name(o.Role, n), random: sim.Rand(o.Seed, fmt.Sprintf("app %v %d", o.Role, n))}
	e.label = &sim.Host{Name: e.name, Index: journalHost(o.Role, n)}
	h.ends = append(h.ends, e)
	own := h.Addr()
	if o.Transport == TCP && o.Role == Client {
		own = netip.AddrPort{} // it has none before it has connected
	}
	for _, line := range e.Log.Opening(own, o.Connect) {
		h.tell(e, o.Clock.Now(), line)
	}
	return e, nil
}

// join lets an end speak with a peer.
func (h *Host) join(e *running, i int) {
	p := &h.peers[i]
	p.end, p.number = e, machine.Peer(len(e.peers))
	e.peers = append(e.peers, i)
	if line := e.Log.Met(p.number, p.addr); line != nil {
		h.tell(e, h.options.Clock.Now(), line)
	}
}

// begin gives a peer an endpoint of its own.
func (h *Host) begin(n, i int) error {
	e, err := h.add(n)
	if err == nil {
		h.join(e, i)
	}
	return err
}

// frame runs one frame of every end.
func (h *Host) frame() error {
	now := h.options.Clock.Now()
	if !h.rhythm.EventDriven {
		for _, e := range h.ends {
			if e.let {
				continue
			}
			if err := h.step(e, machine.Wake{}); err != nil {
				return err
			}
		}
		// What is in the sockets now is read now.
		for more := true; more && len(h.waiting) < maxWaiting; {
			select {
			case a := <-h.inbox:
				h.waiting = append(h.waiting, a)
			default:
				more = false
			}
		}
		for i := range h.waiting {
			if err := h.take(h.waiting[i]); err != nil {
				return err
			}
			h.waiting[i] = arrival{}
		}
		h.waiting = h.waiting[:0]
	}
	h.letGo(now)
	idle := len(h.ends) > 0
	for _, e := range h.ends {
		if err := h.turn(e, now); err != nil {
			return err
		}
		idle = idle && e.idle
	}
	if !h.over && (idle || h.late(now)) {
		h.over = true
		close(h.done)
	}
	return nil
}

func (h *Host) late(now machine.Instant) bool {
	return h.options.Duration > 0 && now >= machine.Instant(h.options.Duration)
}

// turn runs the application of an end once.
func (h *Host) turn(e *running, now machine.Instant) error {
	e.idle = true
	if e.App != nil && !e.let && !h.late(now) {
		t := Turn{Now: now, Number: e.turns, Rand: e.random, Peers: len(e.peers), Delivered: e.delivered}
		t.Do = func(in machine.Input) error { return h.step(e, in) }
		more, err := e.App(&t)
		if err != nil {
			return err
		}
		e.turns++
		e.idle = !more
	}
	clear(e.delivered)
	e.delivered = e.delivered[:0]
	return nil
}

// letGo lets go of endpoints whose only peer has been silent for too long: a
// forged address must not be sent to for ever.
func (h *Host) letGo(now machine.Instant) {
	if h.rhythm.Shared || h.rhythm.Idle <= 0 || h.options.Role == Client {
		return
	}
	for i := range h.peers {
		p := &h.peers[i]
		if !p.let && p.end != nil && now.Sub(p.heard) > h.rhythm.Idle {
			p.let, p.end.let = true, true
			h.tell(p.end, now, p.end.Log.Final())
		}
	}
}

// take hands on what a socket gave.
func (h *Host) take(a arrival) error {
	if a.kind == arrivedDeadline {
		for _, e := range h.ends {
			if at, ok := e.Endpoint.Deadline(); !ok || at > h.options.Clock.Now() {
				h.schedule(e) // it came for an earlier one
			} else if err := h.step(e, machine.Wake{}); err != nil {
				return err
			}
		}
		return nil
	}
	from := place{a.from, a.kind != arrivedDatagram}
	i, known := h.known[from]
	if !known {
		if h.options.Role == Client || len(h.peers) >= maxPeers || !h.options.allows(a.from.Addr()) ||
			a.kind == arrivedDatagram && !h.options.Kit.Greets(a.bytes) {
			h.turned++
			if a.stream != nil {
				a.stream.close()
			}
			return nil
		}
		i = h.meet(from)
	}
	p := &h.peers[i]
	p.heard = h.options.Clock.Now()
	switch {
	case p.let:
		return nil
	case p.end != nil:
	case h.rhythm.Shared:
		h.join(h.ends[0], i)
	default:
		if err := h.begin(len(h.ends), i); err != nil {
			return err
		}
		p = &h.peers[i]
	}
	switch a.kind {
	case arrivedOpen:
		p.stream = a.stream
		if h.options.Role == Client {
			h.tell(p.end, p.heard, p.end.Log.Opened(a.stream.own()))
		}
		return h.step(p.end, machine.Open{Peer: p.number})
	case arrivedBytes:
		if p.stream == a.stream {
			return h.step(p.end, machine.Bytes{From: p.number, Bytes: a.bytes})
		}
	case arrivedClose:
		if p.stream == a.stream {
			p.stream = nil
			return h.step(p.end, machine.Close{Peer: p.number})
		}
	default:
		refuse := p.end.Refuse > 0 && h.random.Float64() < p.end.Refuse
		return h.step(p.end, machine.Arrive{From: p.number, Bytes: a.bytes, Refuse: refuse})
	}
	return nil
}

// step hands one input to an endpoint and carries out what comes of it.
func (h *Host) step(e *running, in machine.Input) error {
	now := h.options.Clock.Now()
	e.out.Reset()
	if err := e.Endpoint.Step(now, in, &e.out); err != nil {
		return fmt.Errorf("%s: %T: %w", e.name, in, err)
	}
	for i := range e.out.Transmit {
		h.transmit(e, &e.out.Transmit[i], now)
	}
	h.options.Journal.record(e.label.Index, now, in, &e.out)
	if h.options.Log != nil {
		s := sim.Step{At: now, Host: e.label, In: in, Out: &e.out}
		for _, line := range e.Log.Tell(&s) {
			h.tell(e, now, line)
		}
	}
	for i := range e.out.Events {
		if kind := e.out.Events[i].Kind; kind < machine.EventProtocol {
			e.counts.Events[kind]++
		}
	}
	e.counts.Sent += uint64(len(e.out.Transmit))
	for _, d := range e.out.Deliver {
		d.Payload = append([]byte(nil), d.Payload...)
		e.delivered = append(e.delivered, d)
	}
	if h.rhythm.EventDriven {
		h.schedule(e)
	}
	return nil
}

// schedule has the endpoint's deadline come back through the inbox.
func (h *Host) schedule(e *running) {
	at, ok := e.Endpoint.Deadline()
	switch {
	case !ok:
		if e.waking != nil {
			e.waking.Stop()
		}
	case e.waking == nil:
		e.waking = time.AfterFunc(h.options.Clock.until(at), func() { h.post(arrival{kind: arrivedDeadline}) })
	default:
		e.waking.Reset(h.options.Clock.until(at))
	}
}

// post gives the host something to take; false once nobody takes it any more.
func (h *Host) post(a arrival) bool {
	select {
	case h.inbox <- a:
		return true
	case <-h.gone:
		return false
	}
}

// transmit puts something on the network.
func (h *Host) transmit(e *running, t *machine.Transmission, now machine.Instant) {
	if int(t.To) >= len(e.peers) {
		return
	}
	p := &h.peers[e.peers[t.To]]
	if err := h.network.send(p, t); err != nil {
		h.tell(e, now, Line{"event": "send_failed", "error": err.Error()})
	}
}

// leave says farewell and ends.
func (h *Host) leave() error {
	var trouble error
	for _, e := range h.ends {
		for _, in := range e.Farewell {
			if !e.let && trouble == nil {
				trouble = h.step(e, in)
			}
		}
		if e.waking != nil {
			e.waking.Stop()
		}
	}
	if h.turned > 0 {
		h.options.Log.Tell(h.options.Clock.Now(), h.options.Kit.Name(h.options.Role, h.options.N), Line{"event": "turned_away", "count": h.turned})
	}
	return errors.Join(trouble, h.options.Log.Flush())
}

func (h *Host) tell(e *running, at machine.Instant, line Line) {
	if line != nil {
		h.options.Log.Tell(at, e.name, line)
	}
}
