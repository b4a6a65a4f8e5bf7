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

// Settings are what all parts of a run share.
type Settings struct {
	Clock   Clock
	Seed    uint64
	Log     *sim.Log // nil for no log
	Journal *Journal // nil for no journal
	// Allow reports whether the host may answer an unknown address; nil means
	// Nearby.
	Allow func(netip.Addr) bool
}

func (s *Settings) allows(addr netip.Addr) bool {
	if s.Allow == nil {
		return Nearby(addr)
	}
	return s.Allow(addr)
}

// HostOptions configures a host.
type HostOptions struct {
	Settings
	Kit  sim.Kit
	Role sim.Role
	// N is the number of a client; a server has 0.
	N int
	// Transport is UDP or TCP.
	Transport Transport
	// Listen is where a server or a proxy accepts its clients. Connect is the
	// server's address for a client or a proxy: a client sends to no other
	// address.
	Listen, Connect netip.AddrPort
	// Buffer is the size in bytes that a host asks the system for, for the receive and the send buffer of
	// a socket for datagrams. The system may give less. 0 leaves its own size.
	Buffer int
	// Poll is the time between two times that the host empties a socket for datagrams. What comes
	// meanwhile waits in the socket's buffer, or is lost when that is full. 0: it reads at once.
	Poll time.Duration
	// Duration is how long the application runs, from the start of the run. 0
	// means as long as it has something to do.
	Duration time.Duration
}

const (
	maxPeers   = 1 << 14 // unknown addresses that a server remembers at a time
	maxEnds    = 256     // endpoints of one peer each
	maxCounts  = 1 << 10 // dropped endpoints whose counts the host keeps
	maxWaiting = 1 << 12 // datagrams that it reads in one frame
)

// Host runs the endpoints of one role at one address. One goroutine owns them
// all.
type Host struct {
	options HostOptions
	rhythm  sim.Rhythm
	network network
	inbox   chan arrival
	done    chan struct{} // closed when the application has nothing more to do

	known   map[place]*peer
	turned  int // unknown peers that were refused
	ends    []*running
	made    int       // ends made so far
	past    []Counts  // of ends that were dropped
	waiting []arrival // what arrived since the last frame
	random  *rand.Rand
	over    bool
	gone    chan struct{} // closed when no goroutine reads the inbox any more
}

// place is a peer's address. UDP and TCP have separate ports.
type place struct {
	addr   netip.AddrPort
	stream bool
}

// peer is a remote end.
type peer struct {
	place  place
	stream *stream         // its open stream; nil if there is none
	end    *running        // the end that talks to it
	number machine.Peer    // that end's number for it
	heard  machine.Instant // when it last sent something
}

// running is an end that the host runs.
type running struct {
	*sim.End
	host   *Host
	n      int // its number within the role
	name   string
	driver sim.Driver
	peers  []*peer // by the endpoint's number
	idle   bool    // its application has nothing more to do
	waking *time.Timer
}

// Counts are the figures of one endpoint.
type Counts struct {
	sim.Counts
	Name string
	N    int // its number within the role
}

// arrival is what a socket received.
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
	arrivedDeadline // of an event-driven host: a timer expired
)

// NewHost opens the host's socket. Run uses it and closes it.
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

// Addr returns the host's own address. A client over TCP has no port of its own
// until it has connected.
func (h *Host) Addr() netip.AddrPort { return h.network.addr() }

// Done returns a channel that is closed when the applications have nothing more
// to do.
func (h *Host) Done() <-chan struct{} { return h.done }

// Run runs the host until the context ends. It returns an error when an
// endpoint refuses an input.
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
			inbox = nil // the rest waits in the socket, or is lost
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
			// Count from when it was due, so that lateness does not accumulate.
			// A machine that slept skips the frames that it missed.
			due = max(due.Add(h.rhythm.Frame), h.options.Clock.Now().Add(-h.rhythm.Frame))
			frame.Reset(h.options.Clock.until(due))
		}
		if err != nil {
			return err
		}
	}
}

// Counts returns the figures of each endpoint. Call it after Run has returned.
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
		// Read what is in the sockets now.
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

// leave passes each endpoint its farewell inputs and ends the run.
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
