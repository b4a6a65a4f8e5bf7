package sim

import (
	"cmp"
	"math/rand/v2"

	"github.com/ackscope/ackscope/machine"
)

// Driver runs one endpoint and its application, frame by frame. It has no clock
// and no socket: its owner says what time it is and carries what the endpoint
// sends. World drives its hosts so in virtual time, and package lab in real time.
//
// A frame has three parts, which the owner calls in this order: Step with
// machine.Wake, Step with each input that has arrived, Turn.
type Driver struct {
	Endpoint machine.Endpoint
	App      App        // nil for none
	Rand     *rand.Rand // the application's own
	// Refuse is the share of packets that the application refuses; Chance draws
	// which.
	Refuse float64
	Chance *rand.Rand
	// EventDriven endpoints are woken at their deadline. The others look at it
	// every frame.
	EventDriven bool
	Owner       Owner
	Counts      Counts

	out       machine.Effects
	step      Step
	frame     Frame
	frames    int
	delivered []machine.Delivery
}

// Owner is who drives an endpoint.
type Owner interface {
	// Do calls Step with an input of the application, at the present time. An error
	// ends the run.
	Do(in machine.Input) error
	// Carry takes what a step made. It may keep nothing of it.
	Carry(s *Step)
	// WakeAt asks for machine.Wake at an instant, instead of what it asked for
	// before; ok is false for never. Only event-driven endpoints ask.
	WakeAt(at machine.Instant, ok bool)
}

// Counts are what an endpoint did.
type Counts struct {
	Sent   uint64                        // datagrams, and what it gave to streams
	Events [machine.EventProtocol]uint64 // by the kinds that all protocols share
}

// App is an application. It is called once a frame, after its endpoint has taken
// what arrived.
type App func(f *Frame)

// Frame is one frame of an application. It is valid during the call.
type Frame struct {
	Now       machine.Instant
	Number    int                // of frames before this one
	Rand      *rand.Rand         // the application's own
	Peers     int                // that are known: 0 to Peers-1
	Delivered []machine.Delivery // since the last frame
	driver    *Driver
	done      bool
	refused   error // by the endpoint
	trouble   error // of the application
}

// Do hands an input to the endpoint at once. After an endpoint's error it does
// nothing.
func (f *Frame) Do(in machine.Input) {
	if f.refused == nil {
		f.refused = f.driver.Owner.Do(in)
	}
}

// Endpoint returns the endpoint, for applications that look before they act.
func (f *Frame) Endpoint() machine.Endpoint { return f.driver.Endpoint }

// Done says that the application has nothing more to do, as far as it knows.
func (f *Frame) Done() { f.done = true }

// Fail says that the application cannot go on; the last error counts.
func (f *Frame) Fail(err error) { f.trouble = err }

// Step hands one input to the endpoint, has the owner carry what comes of it, and
// keeps what is delivered for the application.
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

// Arrived returns what came off the network as the endpoint is to get it: the
// application refuses a share of the datagrams.
func (d *Driver) Arrived(in machine.Input) machine.Input {
	if a, ok := in.(machine.Arrive); ok && d.Refuse > 0 {
		a.Refuse = d.Chance.Float64() < d.Refuse
		return a
	}
	return in
}

// Turn runs the application once. Peers is how many the endpoint knows. More is
// false of an application that has nothing more to do.
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

// Rest is a frame without its application: what was delivered is dropped.
func (d *Driver) Rest() {
	clear(d.delivered)
	d.delivered = d.delivered[:0]
}
