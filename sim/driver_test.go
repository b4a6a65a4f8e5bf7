package sim

import (
	"errors"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// owning is an owner that records what it is asked for.
type owning struct {
	driver  *Driver
	refuse  error
	done    int
	carried int
	asked   int
}

func (o *owning) Do(in machine.Input) error {
	o.done++
	if o.refuse != nil {
		return o.refuse
	}
	return o.driver.Step(7, in)
}
func (o *owning) Carry(*Step)                  { o.carried++ }
func (o *owning) WakeAt(machine.Instant, bool) { o.asked++ }

func driven(app App) (*Driver, *owning) {
	o := &owning{}
	o.driver = &Driver{Endpoint: &counting{}, App: app, Owner: o}
	return o.driver, o
}

// A frame's application gets what arrived in that frame only, and none of the
// endpoint's memory.
func TestDriverDelivers(t *testing.T) {
	var got [][]byte
	var frames []int
	d, o := driven(func(f *Frame) {
		frames = append(frames, f.Number)
		for _, x := range f.Delivered {
			got = append(got, append([]byte(nil), x.Payload...))
		}
		f.Do(machine.Submit{Payload: []byte{1}})
	})
	datagram := []byte{9, 0, 0, 0}
	if err := d.Step(1, machine.Arrive{Bytes: datagram}); err != nil {
		t.Fatal(err)
	}
	datagram[0] = 8 // the buffer is reused before the application runs
	for range 2 {
		if more, err := d.Turn(1, 1); !more || err != nil {
			t.Fatalf("more %t, %v; expected that it goes on", more, err)
		}
	}
	if len(got) != 1 || got[0][0] != 9 || len(frames) != 2 || frames[1] != 1 {
		t.Errorf("frames %v were handed %v, expected one datagram, 9, in the first", frames, got)
	}
	if o.carried != 3 || d.Counts.Sent != 2 || o.asked != 0 {
		t.Errorf("%d steps were carried with %d datagrams, %d deadlines asked for; expected 3, 2 and none", o.carried,
			d.Counts.Sent, o.asked)
	}
	if err := d.Step(2, machine.Arrive{Bytes: datagram}); err != nil {
		t.Fatal(err)
	}
	d.Rest()
	if d.Turn(2, 1); len(got) != 1 {
		t.Errorf("%v was handed over after a frame without the application", got[1:])
	}
	d.EventDriven = true
	if err := d.Step(3, machine.Wake{}); err != nil || o.asked != 1 {
		t.Errorf("%d deadlines asked for, %v; expected one of an event-driven endpoint", o.asked, err)
	}
}

// An endpoint's error ends the frame's inputs and precedes the application's
// error.
func TestDriverEnds(t *testing.T) {
	refused, own := errors.New("refused"), errors.New("own")
	d, o := driven(func(f *Frame) {
		f.Fail(own)
		f.Do(machine.Wake{})
		f.Do(machine.Wake{})
		f.Done()
	})
	if more, err := d.Turn(1, 0); more || !errors.Is(err, own) || o.done != 2 {
		t.Errorf("more %t, %v, %d inputs; expected the application's error, its end and both inputs", more, err, o.done)
	}
	o.refuse, o.done = refused, 0
	if _, err := d.Turn(2, 0); !errors.Is(err, refused) || o.done != 1 {
		t.Errorf("%v, %d inputs; expected the endpoint's error, and no input after it", err, o.done)
	}
	reader, _ := driven(nil)
	if more, err := reader.Turn(1, 0); more || err != nil {
		t.Errorf("more %t, %v of no application", more, err)
	}
}
