package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// HostOptions configures how a host runs its endpoint.
type HostOptions struct {
	// Frame is the time between two frames of the application; it must be positive.
	Frame time.Duration
	// Phase is the time of the first frame.
	Phase time.Duration
	// FrameJitter delays each frame by a uniform time of at most this.
	FrameJitter time.Duration
	// EventDriven hosts pass a datagram to the endpoint when it arrives. Other
	// hosts read their socket once a frame, as games do: first Wake, then
	// everything that has arrived, then the application.
	EventDriven bool
	// ReadDelay is the time from when a datagram passes a tap at this host
	// until it is in the socket.
	ReadDelay time.Duration
	// Refuse is the probability with which the application refuses a packet.
	Refuse float64
	// App is the application; nil if there is none.
	App App
	// Stop is when the host stops reading and sending; zero means never.
	Stop machine.Instant
}

// Host is one machine of the world: an endpoint, its application and its socket.
type Host struct {
	Name    string
	Index   int // in World.Hosts
	world   *World
	options HostOptions

	driver Driver
	peers  []sender // by machine.Peer
	socket []machine.Input
	own    *rand.Rand
	wakeAt machine.Instant // the deadline in the queue of the world
	waking bool
}

// sender sends what a host puts on its link to one peer.
type sender interface {
	send(kind machine.TransmitKind, b []byte)
}

// AddHost adds an endpoint to the world. The name identifies the host in
// journals, and seeds the host's random numbers.
func (w *World) AddHost(name string, endpoint machine.Endpoint, options HostOptions) *Host {
	if options.Frame <= 0 {
		options.Frame = time.Second / 60
	}
	h := &Host{Name: name, Index: len(w.hosts), world: w, options: options, own: w.Rand("host " + name)}
	h.driver = Driver{
		Endpoint: endpoint, App: options.App, Rand: w.Rand("app " + name), Refuse: options.Refuse, Chance: h.own,
		EventDriven: options.EventDriven, Owner: (*owner)(h),
	}
	w.hosts = append(w.hosts, h)
	w.at(machine.Instant(options.Phase), func() { h.frame(machine.Instant(options.Phase)) })
	return h
}

// Endpoint returns the host's endpoint, to read only.
func (h *Host) Endpoint() machine.Endpoint { return h.driver.Endpoint }

// Counts returns the endpoint's figures so far.
func (h *Host) Counts() *Counts { return &h.driver.Counts }

func (h *Host) stopped() bool { return h.options.Stop > 0 && h.world.now >= h.options.Stop }

// frame runs one frame. due is when it should have come, so that jitter does
// not accumulate.
func (h *Host) frame(due machine.Instant) {
	if h.stopped() {
		return
	}
	h.step(machine.Wake{})
	for _, in := range h.socket {
		h.step(in)
	}
	clear(h.socket)
	h.socket = h.socket[:0]
	if _, err := h.driver.Turn(h.world.now, len(h.peers)); err != nil && h.world.err == nil {
		h.world.trouble = err
	}
	due = due.Add(h.options.Frame)
	at := due
	if j := h.options.FrameJitter; j > 0 {
		at = at.Add(time.Duration(h.own.Int64N(int64(j) + 1)))
	}
	h.world.at(at, func() { h.frame(due) })
}

// arrive takes what arrived from the network.
func (h *Host) arrive(in machine.Input) {
	h.world.at(h.world.now.Add(h.options.ReadDelay), func() {
		if h.stopped() {
			return
		}
		in := h.driver.Arrived(in)
		if h.options.EventDriven {
			h.step(in)
		} else {
			h.socket = append(h.socket, in)
		}
	})
}

// step passes one input to the endpoint, unless the run has failed.
func (h *Host) step(in machine.Input) {
	if h.world.err != nil {
		return
	}
	if err := h.driver.Step(h.world.now, in); err != nil {
		h.world.fail(h, in, err)
	}
}

// owner is a host in the role of its driver's owner.
type owner Host

// Do implements Owner.
func (o *owner) Do(in machine.Input) error {
	(*Host)(o).step(in)
	return o.world.err
}

// Carry implements Owner.
func (o *owner) Carry(s *Step) {
	s.Host = (*Host)(o)
	for _, f := range o.world.watchers {
		f(s)
	}
	for _, t := range s.Out.Transmit {
		if int(t.To) < len(o.peers) {
			o.peers[t.To].send(t.Kind, t.Bytes)
		}
	}
}

// WakeAt implements Owner: it schedules the endpoint's deadline.
func (o *owner) WakeAt(at machine.Instant, ok bool) {
	if !ok || o.waking && o.wakeAt <= at {
		return
	}
	// A deadline in the past is due now, but not within this step: an endpoint
	// that never clears its deadline must not stop the world.
	at = max(at, o.world.now+1)
	o.waking, o.wakeAt = true, at
	o.world.at(at, func() {
		h := (*Host)(o)
		if h.waking && h.wakeAt == h.world.now && !h.stopped() {
			h.waking = false
			h.step(machine.Wake{})
		}
	})
}
