package machinetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// Tracker tests the laws on fresh trackers, with the datagrams of a flow.
func Tracker(t *testing.T, fresh func() machine.Tracker, flow []machine.Datagram) {
	t.Helper()
	if len(flow) == 0 {
		t.Fatal("no datagrams: nothing would be tested")
	}
	want := observe(fresh(), flow, true)
	t.Run("deterministic", func(t *testing.T) {
		compare(t, "a second tracker", want, observe(fresh(), flow, true))
	})
	t.Run("keeps no borrowed bytes", func(t *testing.T) {
		tr := fresh()
		var got []string
		for i := range flow {
			d := flow[i]
			d.Bytes = bytes.Clone(d.Bytes)
			got = append(got, observe(tr, []machine.Datagram{d}, false)...)
			for j := range d.Bytes {
				d.Bytes[j] ^= 0xa5
			}
		}
		compare(t, "a tracker whose datagrams were overwritten", want, append(got, finish(tr)))
	})
	t.Run("clone", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for range 8 {
			at := rng.IntN(len(flow))
			tr := fresh()
			observe(tr, flow[:at], false)
			c := tr.Clone()
			before := sides(c)
			if drawn := sides(tr); drawn != before {
				t.Fatalf("after %d datagrams the clone draws\n%s\nand the original\n%s", at, before, drawn)
			}
			compare(t, fmt.Sprintf("a tracker cloned after %d datagrams", at), want[at:], observe(tr, flow[at:], true))
			if after := sides(c); after != before {
				t.Fatalf("stepping the original changed its clone of %d datagrams:\n%s\nbefore\n%s", at, after, before)
			}
			compare(t, fmt.Sprintf("the clone taken after %d datagrams", at), want[at:], observe(c, flow[at:], true))
		}
	})
	t.Run("packed", func(t *testing.T) {
		if _, ok := fresh().(machine.Packer); !ok {
			t.Skip("the tracker is kept as a clone")
		}
		rng := rand.New(rand.NewPCG(9, 10))
		var scratch []byte
		for i := range 8 {
			at := rng.IntN(len(flow))
			if i == 0 {
				at = min(3, len(flow)-1) // the run has hardly begun
			}
			tr := fresh()
			observe(tr, flow[:at], false)
			before := sides(tr)
			p := tr.(machine.Packer).Pack(&scratch)
			compare(t, fmt.Sprintf("a tracker packed after %d datagrams", at), want[at:], observe(tr, flow[at:], true))
			for range 2 { // unpacking must not change what is packed
				c := p.Unpack()
				if drawn := sides(c); drawn != before {
					t.Fatalf("unpacked after %d datagrams it draws\n%s\nand the original\n%s", at, drawn, before)
				}
				compare(t, fmt.Sprintf("what was packed after %d datagrams", at), want[at:], observe(c, flow[at:], true))
			}
		}
	})
	t.Run("hostile bytes", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		tr := fresh()
		var out machine.Effects
		var v machine.View
		for i := range flow {
			d := flow[i]
			out.Reset()
			tr.Observe(&d, &out)
			d.Bytes = mutate(rng, machine.Arrive{Bytes: d.Bytes})
			d.Length = len(d.Bytes)
			if rng.IntN(8) == 0 {
				d.Length += rng.IntN(100) // as if a snap length had cut it
			}
			if rng.IntN(4) == 0 {
				d.From = d.From.Other()
			}
			out.Reset()
			tr.Observe(&d, &out)
			tr.Inspect(d.From, &v)
		}
		out.Reset()
		tr.Finish(&out)
	})
}

func observe(tr machine.Tracker, flow []machine.Datagram, last bool) (got []string) {
	var out machine.Effects
	for i := range flow {
		out.Reset()
		d := flow[i]
		tr.Observe(&d, &out)
		got = append(got, fmt.Sprintf("%v %v %v", out.Events, anomalies(&out), out.NewSession))
	}
	if last {
		got = append(got, finish(tr))
	}
	return got
}

func finish(tr machine.Tracker) string {
	var out machine.Effects
	tr.Finish(&out)
	return fmt.Sprintf("%v %v %v %v", out.Events, anomalies(&out), tr.Summary(machine.A), tr.Summary(machine.B))
}

func anomalies(out *machine.Effects) (text string) {
	for _, a := range out.Anomalies {
		text += fmt.Sprintf("[%s %v %v %v %v]", a.Rule.ID, a.Side, a.Ref, a.About, a.Figures)
	}
	return text
}

func sides(tr machine.Tracker) string {
	var a, b machine.View
	tr.Inspect(machine.A, &a)
	tr.Inspect(machine.B, &b)
	return fmt.Sprintf("%+v\n%+v", a, b)
}
