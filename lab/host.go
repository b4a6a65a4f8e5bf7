package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Settings are what the parts of a run have in common.
type Settings struct {
	Clock   Clock
	Seed    uint64
	Log     *sim.Log // nil for none
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
	Kit  sim.Kit
	Role sim.Role
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
	maxPeers   = 1 << 14 // strangers that a server remembers at a time
	maxEnds    = 256     // endpoints of one peer each
	maxCounts  = 1 << 10 // endpoints of whose past the host tells
	maxWaiting = 1 << 12 // datagrams that are read in one frame
)

// Host runs the endpoints of one role at one address: one goroutine, which owns
// them all.
type Host struct {
	options HostOptions
	rhythm  sim.Rhythm
	network network
	inbox   chan arrival
	done    chan struct{} // closed once the application has nothing more to do

	known   map[place]*peer
	turned  int // strangers that were turned away
	ends    []*running
	made    int       // ends so far
	past    []Counts  // of ends that were let go
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
	place  place
	stream *stream         // its standing stream; nil for none
	end    *running        // who speaks with it
	number machine.Peer    // what that end calls it
	heard  machine.Instant // when it spoke last
}

// running is an end at work.
type running struct {
	*sim.End
	host   *Host
	n      int // among those of its role
	name   string
	driver sim.Driver
	peers  []*peer // by the endpoint's numbers
	idle   bool    // its application has nothing more to do
	waking *time.Timer
}

// Counts are what one endpoint did.
type Counts struct {
	sim.Counts
	Name string
	N    int // among those of its role
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
		options: o, rhythm: o.Kit.Rhythm(o.Role), known: map[place]*peer{},
		inbox: make(chan arrival, 1024), done: make(chan struct{}), gone: make(chan struct{}),
		random: sim.Rand(o.Seed, "host "+o.Kit.Name(o.Role, o.N)),
	}
	if h.rhythm.Frame <= 0 {
		h.rhythm.Frame = time.Second / 60
	}
	if o.Role != sim.Server {
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

// Addr returns the host's own address. A client over TCP has none before it has
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
			h.tell(e, h.options.Clock.Now(), e.Log.Final())
		}
	}()
	h.network.start()
	if h.options.Role == sim.Client {
		if err := h.begin(h.options.N, h.meet(place{h.options.Connect, h.options.Transport != UDP})); err != nil {
			return err
		}
	} else if h.rhythm.Shared {
		e, err := h.add(h.options.N)
		if err != nil {
			return err
		}
		if h.options.Role == sim.Proxy {
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
func (h *Host) Counts() []Counts {
	list := slices.Clone(h.past)
	for _, e := range h.ends {
		list = append(list, e.tally())
	}
	return list
}

func (e *running) tally() Counts { return Counts{e.driver.Counts, e.name, e.n} }

// frame runs one frame of every end.
func (h *Host) frame() error {
	now := h.options.Clock.Now()
	if !h.rhythm.EventDriven {
		for _, e := range h.ends {
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
	h.dropIdle(now)
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
	if h.late(now) {
		e.idle = true
		e.driver.Rest()
		return nil
	}
	more, err := e.driver.Turn(now, len(e.peers))
	e.idle = !more
	return err
}

// leave says farewell and ends.
func (h *Host) leave() error {
	var trouble error
	for _, e := range h.ends {
		for _, in := range e.Farewell {
			if trouble == nil {
				trouble = h.step(e, in)
			}
		}
		if e.waking != nil {
			e.waking.Stop()
		}
	}
	if h.turned > 0 {
		h.options.Log.Tell(h.options.Clock.Now(), h.options.Kit.Name(h.options.Role, h.options.N),
			sim.Line{"event": "turned_away", "count": h.turned})
	}
	return errors.Join(trouble, h.options.Log.Flush())
}

func (h *Host) tell(e *running, at machine.Instant, line sim.Line) {
	if line != nil {
		h.options.Log.Tell(at, e.name, line)
	}
}
