// Package machinetest tests the laws that every machine must keep. Each
// protocol runs these tests over its own endpoints and trackers.
//
//	Endpoint  the same inputs cause the same effects; a clone continues as the
//	          original would and does not change it; borrowed bytes are not kept;
//	          bytes from the network never cause an error, whatever they are;
//	          a Wake at the deadline moves the deadline on.
//	Tracker   the same for datagrams, and for the views that it draws.
package machinetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// Timed is an input and the time at which it happens.
type Timed struct {
	At machine.Instant
	In machine.Input
}

// Endpoint tests the laws on fresh endpoints, with a script of inputs such as
// one host's part of a simulation's journal. The script must not be empty. It
// should make the endpoint do everything that it can do.
func Endpoint(t *testing.T, fresh func() machine.Endpoint, script []Timed) {
	t.Helper()
	if len(script) == 0 {
		t.Fatal("no inputs: nothing would be tested")
	}
	want := run(t, fresh(), script)
	t.Run("deterministic", func(t *testing.T) {
		compare(t, "a second endpoint", want, run(t, fresh(), script))
	})
	t.Run("keeps no borrowed bytes", func(t *testing.T) {
		e := fresh()
		var got []string
		for i, s := range script {
			in, borrowed := private(s.In)
			got = append(got, step(t, e, i, s.At, in))
			for j := range borrowed {
				borrowed[j] ^= 0xa5
			}
		}
		compare(t, "an endpoint whose inputs were overwritten after each step", want, got)
	})
	t.Run("clone", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 8 {
			at := rng.IntN(len(script))
			e := fresh()
			for i, s := range script[:at] {
				step(t, e, i, s.At, s.In)
			}
			c := e.Clone()
			before := draw(c)
			if drawn := draw(e); drawn != before {
				t.Fatalf("after %d inputs the clone draws\n%s\nand the original\n%s", at, before, drawn)
			}
			got := run(t, e, script[at:])
			compare(t, fmt.Sprintf("an endpoint cloned after %d inputs", at), want[at:], got)
			if after := draw(c); after != before {
				t.Fatalf("stepping the original changed its clone of %d inputs:\n%s\nbefore\n%s", at, after, before)
			}
			compare(t, fmt.Sprintf("the clone taken after %d inputs", at), want[at:], run(t, c, script[at:]))
		}
	})
	t.Run("hostile bytes", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		e := fresh()
		var out machine.Effects
		for _, s := range script {
			out.Reset()
			// Mutated bytes may bring an endpoint to refuse what its
			// application asks for. It must never refuse what the network
			// delivers.
			if err := e.Step(s.At, s.In, &out); err != nil && fromNetwork(s.In) {
				t.Fatalf("%T gave an error: %v", s.In, err)
			}
			out.Reset()
			if err := e.Step(s.At, machine.Arrive{Bytes: mutate(rng, s.In)}, &out); err != nil {
				t.Fatalf("bytes from the network gave an error: %v", err)
			}
		}
	})
	t.Run("deadlines move on", func(t *testing.T) {
		e := fresh()
		var out machine.Effects
		for i, s := range script {
			step(t, e, i, s.At, s.In)
			at, ok := e.Deadline()
			if !ok || i+1 < len(script) && at > script[i+1].At {
				continue
			}
			c := e.Clone()
			at = max(at, s.At)
			out.Reset()
			if err := c.Step(at, machine.Wake{}, &out); err != nil {
				t.Fatalf("wake at the deadline: %v", err)
			}
			if next, ok := c.Deadline(); ok && next <= at {
				t.Fatalf("after input %d a wake at the deadline %v left one at %v", i, at, next)
			}
		}
	})
}

func run(t *testing.T, e machine.Endpoint, script []Timed) (out []string) {
	t.Helper()
	for i, s := range script {
		out = append(out, step(t, e, i, s.At, s.In))
	}
	return out
}

// step returns a step's effects and the endpoint's state after it, as text.
func step(t *testing.T, e machine.Endpoint, i int, at machine.Instant, in machine.Input) string {
	t.Helper()
	var out machine.Effects
	if err := e.Step(at, in, &out); err != nil {
		t.Fatalf("input %d (%T): %v", i, in, err)
	}
	deadline, ok := e.Deadline()
	return fmt.Sprintf("%x %+v %v %v %v", out.Transmit, out.Deliver, out.Events, deadline, ok)
}

func draw(e machine.Endpoint) string {
	var v machine.View
	e.Inspect(&v)
	return fmt.Sprintf("%+v", v)
}

func compare(t *testing.T, who string, want, got []string) {
	t.Helper()
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("%s went another way at input %d:\n%s\nexpected\n%s", who, i, got[i], want[i])
		}
	}
}

// private returns the input with its own copy of the bytes, and those bytes.
func private(in machine.Input) (machine.Input, []byte) {
	switch in := in.(type) {
	case machine.Arrive:
		in.Bytes = bytes.Clone(in.Bytes)
		return in, in.Bytes
	case machine.Submit:
		in.Payload = bytes.Clone(in.Payload)
		return in, in.Payload
	case machine.Command:
		in.Payload = bytes.Clone(in.Payload)
		return in, in.Payload
	case machine.Bytes:
		in.Bytes = bytes.Clone(in.Bytes)
		return in, in.Bytes
	}
	return in, nil
}

func fromNetwork(in machine.Input) bool {
	switch in.(type) {
	case machine.Submit, machine.Command:
		return false
	}
	return true
}

// mutate returns bytes that resemble those of in: cut, changed or random.
func mutate(rng *rand.Rand, in machine.Input) []byte {
	_, b := private(in)
	if len(b) == 0 || rng.IntN(4) == 0 {
		b = make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	if rng.IntN(2) == 0 {
		b = b[:rng.IntN(len(b)+1)]
	}
	for range rng.IntN(4) {
		if len(b) > 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
	}
	return slices.Clip(b)
}
