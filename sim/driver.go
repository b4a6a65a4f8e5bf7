package sim

import (
	"cmp"
	"math/rand/v2"

	"github.com/ackscope/ackscope/machine"
)

// Driver runs one endpoint and its application, frame by frame. It has no clock
// and no socket: its owner passes it the time, and carries what the endpoint
// sends. World is the owner in virtual time, package lab in real time.
//
// In each frame, the owner makes these calls:
//
//  1. Step with machine.Wake.
//  2. Step with each input that has arrived.
//  3. Turn.
type Driver struct {
	Endpoint machine.Endpoint
	App      App        // nil if there is none
	Rand     *rand.Rand // for the application
	// Refuse is the share of packets that the application refuses. Chance draws
	// which ones.
	Refuse float64
	Chance *rand.Rand
	// EventDriven endpoints are woken at their deadline. Other endpoints check
	// their deadline in every frame.
	EventDriven bool
	Owner       Owner
	Counts      Counts

	out       machine.Effects
	step      Step
	frame     Frame
	frames    int
	delivered []machine.Delivery
}

// Owner drives an endpoint.
type Owner interface {
	// Do calls Step with an input of the application, at the present time. An
	// error ends the run.
	Do(in machine.Input) error
	// Carry carries out the effects of a step. It must not keep any part of s.
	Carry(s *Step)
	// WakeAt asks for machine.Wake at an instant and replaces the previous
	// request. When ok is false, no wake is needed. Only event-driven endpoints
	// ask.
	WakeAt(at machine.Instant, ok bool)
}

// Counts are the figures of one endpoint.
type Counts struct {
	Sent   uint64                        // datagrams, and writes to streams
	Events [machine.EventProtocol]uint64 // by kind, for the kinds that all protocols share
}

// App is an application. The driver calls it once a frame, after the endpoint
// has taken what arrived.
type App func(f *Frame)

// Frame is one frame of an application. It is valid during the call.
type Frame struct {
	Now       machine.Instant
	Number    int                // counted from 0
	Rand      *rand.Rand         // for the application
	Peers     int                // known peers: 0 to Peers-1
	Delivered []machine.Delivery // since the last frame
	driver    *Driver
	done      bool
	refused   error // an error of the endpoint
	trouble   error // an error of the application
}

// Do passes an input to the endpoint at once. After an error of the endpoint it
// does nothing.
func (f *Frame) Do(in machine.Input) {
	if f.refused == nil {
		f.refused = f.driver.Owner.Do(in)
	}
}

// Endpoint returns the endpoint, for applications that need its state.
func (f *Frame) Endpoint() machine.Endpoint { return f.driver.Endpoint }

// Done reports that the application has nothing more to do for now.
func (f *Frame) Done() { f.done = true }

// Fail reports that the application cannot continue. A later error replaces it.
func (f *Frame) Fail(err error) { f.trouble = err }

// Step passes one input to the endpoint. It has the owner carry out the
// effects, and keeps deliveries for the application.
func (d *Driver) Step(now machine.Instant, in machine.Input) error {
	d.out.Reset()
	if err := d.Endpoint.Step(now, in, &d.out); err != nil {
		return err
	}
	for i := range d.out.Events {
		if kind := d.out.Events[i].Kind; kind < machine.EventProtocol {
			d.Counts.Events[kind]++
		}
	}
	d.Counts.Sent += uint64(len(d.out.Transmit))
	d.step = Step{At: now, In: in, Out: &d.out}
	d.Owner.Carry(&d.step)
	if d.App != nil {
		for _, x := range d.out.Deliver {
			x.Payload = append([]byte(nil), x.Payload...)
			d.delivered = append(d.delivered, x)
		}
	}
	if d.EventDriven {
		d.Owner.WakeAt(d.Endpoint.Deadline())
	}
	return nil
}

// Arrived returns an input from the network as the endpoint must get it: the
// application refuses a share of the datagrams.
func (d *Driver) Arrived(in machine.Input) machine.Input {
	if a, ok := in.(machine.Arrive); ok && d.Refuse > 0 {
		a.Refuse = d.Chance.Float64() < d.Refuse
		return a
	}
	return in
}

// Turn runs the application once. peers is how many peers the endpoint knows.
// more is false when the application has nothing more to do.
func (d *Driver) Turn(now machine.Instant, peers int) (more bool, err error) {
	if d.App != nil {
		d.frame = Frame{Now: now, Number: d.frames, Rand: d.Rand, Peers: peers, Delivered: d.delivered, driver: d}
		d.App(&d.frame)
		d.frames++
		more, err = !d.frame.done, cmp.Or(d.frame.refused, d.frame.trouble)
	}
	d.Rest()
	return more, err
}

// Rest ends a frame without its application. It drops what was delivered.
func (d *Driver) Rest() {
	clear(d.delivered)
	d.delivered = d.delivered[:0]
}
