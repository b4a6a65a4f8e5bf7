package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// HostOptions say how a host runs its endpoint.
type HostOptions struct {
	// Frame is the time between two frames of the game; it must be positive.
	Frame time.Duration
	// Phase is when the first frame comes.
	Phase time.Duration
	// FrameJitter delays each frame by a uniform time up to this.
	FrameJitter time.Duration
	// EventDriven hosts hand a datagram to the endpoint when it arrives. The
	// others read their socket once a frame, as games do: Wake first, then all
	// that has arrived, then what the application does.
	EventDriven bool
	// ReadDelay is the time between a datagram's passing a tap at this host and
	// its being in the socket.
	ReadDelay time.Duration
	// Refuse is the probability with which the application refuses a packet.
	Refuse float64
	// App is the game; nil for one that does nothing.
	App App
	// Stop is when the host reads and sends no more; zero for never.
	Stop machine.Instant
}

// App is called once a frame, after the host has read its socket.
type App func(f *Frame)

// Frame is one frame of a host's game.
type Frame struct {
	Now       machine.Instant
	Number    int
	Rand      *rand.Rand         // the application's own
	Delivered []machine.Delivery // since the last frame; valid during the call
	host      *Host
}

// Do hands an input to the endpoint at once.
func (f *Frame) Do(in machine.Input) { f.host.step(in) }

// Endpoint gives the host's endpoint, for applications that look before they act.
func (f *Frame) Endpoint() machine.Endpoint { return f.host.endpoint }

// Host is one machine of the world: an endpoint, its application and its socket.
type Host struct {
	Name    string
	Index   int // in World.Hosts
	world   *World
	options HostOptions

	endpoint  machine.Endpoint
	peers     []sender // by machine.Peer
	out       machine.Effects
	socket    []machine.Input
	delivered []machine.Delivery
	number    int
	app       *rand.Rand
	own       *rand.Rand
	wakeAt    machine.Instant // the deadline that is on the agenda
	waking    bool
}

// sender takes what a host puts on its link to one peer.
type sender interface {
	send(kind machine.TransmitKind, b []byte)
}

// AddHost puts an endpoint into the world. The name tells hosts apart in
// journals and seeds the host's own random numbers.
func (w *World) AddHost(name string, endpoint machine.Endpoint, options HostOptions) *Host {
	if options.Frame <= 0 {
		options.Frame = time.Second / 60
	}
	h := &Host{
		Name: name, Index: len(w.hosts), world: w, options: options, endpoint: endpoint,
		app: w.Rand("app " + name), own: w.Rand("host " + name),
	}
	w.hosts = append(w.hosts, h)
	w.at(machine.Instant(options.Phase), func() { h.frame(machine.Instant(options.Phase)) })
	return h
}

// Endpoint gives the host's endpoint: to look at, not to step.
func (h *Host) Endpoint() machine.Endpoint { return h.endpoint }

func (h *Host) stopped() bool { return h.options.Stop > 0 && h.world.now >= h.options.Stop }

// frame runs one frame; due is when it should have come, so that jitter does
// not add up.
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
	if h.options.App != nil {
		h.options.App(&Frame{Now: h.world.now, Number: h.number, Rand: h.app, Delivered: h.delivered, host: h})
	}
	clear(h.delivered)
	h.delivered = h.delivered[:0]
	h.number++
	due = due.Add(h.options.Frame)
	at := due
	if j := h.options.FrameJitter; j > 0 {
		at = at.Add(time.Duration(h.own.Int64N(int64(j) + 1)))
	}
	h.world.at(at, func() { h.frame(due) })
}

// arrive takes what came off the wire.
func (h *Host) arrive(in machine.Input) {
	h.world.at(h.world.now.Add(h.options.ReadDelay), func() {
		if h.stopped() {
			return
		}
		if a, ok := in.(machine.Arrive); ok && h.options.Refuse > 0 {
			a.Refuse = h.own.Float64() < h.options.Refuse
			in = a
		}
		if h.options.EventDriven {
			h.step(in)
		} else {
			h.socket = append(h.socket, in)
		}
	})
}

// step hands one input to the endpoint and carries out what comes of it.
func (h *Host) step(in machine.Input) {
	if h.world.err != nil {
		return
	}
	h.out.Reset()
	if err := h.endpoint.Step(h.world.now, in, &h.out); err != nil {
		h.world.fail(h, in, err)
		return
	}
	s := Step{At: h.world.now, Host: h, In: in, Out: &h.out}
	for _, f := range h.world.watchers {
		f(&s)
	}
	for _, t := range h.out.Transmit {
		if int(t.To) < len(h.peers) {
			h.peers[t.To].send(t.Kind, t.Bytes)
		}
	}
	if h.options.App != nil {
		for _, d := range h.out.Deliver {
			d.Payload = append([]byte(nil), d.Payload...)
			h.delivered = append(h.delivered, d)
		}
	}
	if h.options.EventDriven {
		h.schedule()
	}
}

// schedule puts the endpoint's deadline on the agenda of an event-driven host;
// the others look at theirs every frame.
func (h *Host) schedule() {
	at, ok := h.endpoint.Deadline()
	if !ok || h.waking && h.wakeAt <= at {
		return
	}
	// A deadline that has passed already is due at once, yet not within this
	// very step: an endpoint that never lets go of one must not stop the world.
	at = max(at, h.world.now+1)
	h.waking, h.wakeAt = true, at
	h.world.at(at, func() {
		if h.waking && h.wakeAt == h.world.now && !h.stopped() {
			h.waking = false
			h.step(machine.Wake{})
		}
	})
}
